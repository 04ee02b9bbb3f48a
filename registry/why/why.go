// Package why explains why an item waits, and what would let it continue. It reads the facts by
// which the engine decides, and writes nothing.
package why

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/remedy"
	"github.com/holdfast/holdfast/registry/search"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Reasons explains why items wait. Its methods may be called concurrently.
type Reasons struct {
	db   *sqldb.DB
	work *work.Engine
	find *search.Search
}

// New returns the explanations of a Registry.
func New(db *sqldb.DB, engine *work.Engine, find *search.Search) *Reasons {
	return &Reasons{db: db, work: engine, find: find}
}

// Why implements registry.ItemReader.
func (s *Reasons) Why(ctx context.Context, id string) (registry.Why, error) {
	it, err := s.work.Item(ctx, id)
	if err != nil {
		return registry.Why{}, err
	}
	w := registry.Why{ItemID: id, Since: it.UpdatedAt}
	switch {
	case it.Status == registry.Running:
		err = s.whyRunning(ctx, it, &w)
	case it.Status.Settled():
		err = s.whySettled(ctx, it, &w)
	case it.Status == registry.Prepare:
		whyPrepared(it, &w)
	default:
		err = s.whyPending(ctx, it, &w)
	}
	if err != nil {
		return w, fmt.Errorf("explain item %s: %w", id, err)
	}
	return w, nil
}

func (s *Reasons) whySettled(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	w.Reason, w.Sentence = registry.ReasonSettled, fmt.Sprintf("it is %s and waits for nothing", it.State)
	if it.FinishedAt != nil {
		w.Since = *it.FinishedAt
	}
	if it.Status != registry.Failed {
		return nil
	}
	w.Sentence = fmt.Sprintf("it failed at %s: %s", it.Stage, it.Note)
	known, _, err := s.remedy(ctx, it)
	if err != nil {
		return err
	}
	var code string
	err = s.db.Read.QueryRowContext(ctx, `SELECT cause_code FROM work_item WHERE id = $1`, it.ID).Scan(&code)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil // the item was purged meanwhile
	}
	w.Act = remedy.Of(it, code, known).Text
	if a, asked := it.Abandonment(); asked && a.Waits(s.db.Now()) {
		w.Sentence += fmt.Sprintf("; abandoning its version was %s", a.Text())
		w.Act = "another admin confirms the abandonment, or requeues the item to complete the version"
	}
	return err
}

// remedy returns the advice of the last attempt's worker ("" for none), and the attempts that its
// step has.
func (s *Reasons) remedy(ctx context.Context, it registry.WorkItem) (remedy string, most int, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT remedy, max_attempts FROM attempt WHERE item_id = $1 AND n = $2`, it.ID, it.Attempt).
		Scan(&remedy, &most)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return remedy, most, err
}

// orByItself combines a worker's advice with what happens without it.
func orByItself(remedy, itself string) string {
	if remedy == "" {
		return "nothing: it is " + itself
	}
	return remedy + "; it is " + itself
}

// orNow adds to the advice for a waiting item that it can be retried at once, if it can.
func orNow(act string, it registry.WorkItem) string {
	if !slices.Contains(it.AllowedActs, registry.ActRetryNow) {
		return act
	}
	return act + ", or at once: retry item " + it.ID
}

func (s *Reasons) whyPending(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	if it.HeldBy != nil {
		whyHeld(it, w)
		return nil
	}
	var isBlocked, isLocked bool
	var wait registry.Reason
	err := s.db.Read.QueryRowContext(ctx, `SELECT `+work.Blocked+`, `+work.LockedOut+`, i.wait_reason FROM work_item i WHERE i.id = $1`, it.ID).
		Scan(&isBlocked, &isLocked, &wait)
	switch {
	case err != nil:
		return err
	case isBlocked:
		return s.whyBlocked(ctx, it, w)
	case isLocked:
		return s.whyLocked(ctx, it, w)
	case it.RunAt.After(s.db.Now()) && wait != "":
		return s.whySnoozed(ctx, it, wait, w)
	case it.RunAt.After(s.db.Now()):
		return s.whyNotDue(ctx, it, w)
	}
	return s.whyQueued(ctx, it, w)
}

func whyHeld(it registry.WorkItem, w *registry.Why) {
	w.Reason, w.Actor, w.Since = registry.ReasonHeld, it.HeldBy.Actor, it.HeldBy.CreatedAt
	w.Sentence, w.Act = holdSentence(*it.HeldBy, it), releaseAct(*it.HeldBy)
}

// heldWhat says what a hold keeps back, seen from an item.
func heldWhat(h registry.Hold, it registry.WorkItem) string {
	switch h.Scope {
	case registry.HoldAll:
		return "everything is paused"
	case registry.HoldIngest:
		return "queue paused"
	case registry.HoldStage, registry.HoldCollection, registry.HoldVolume, registry.HoldWorker:
		return fmt.Sprintf("%s %s is held", h.Scope, h.Key)
	case registry.HoldBatch:
		if h.Key != it.ID {
			return "its batch is held"
		}
	case registry.HoldItem:
	}
	return "held"
}

// holdSentence says who holds an item, since when, and why.
func holdSentence(h registry.Hold, it registry.WorkItem) string {
	return fmt.Sprintf("%s by %s since %s (%s)", heldWhat(h, it), h.Actor, h.CreatedAt.Format(time.RFC3339), h.Reason)
}

func releaseAct(h registry.Hold) string {
	if h.Scope.Keyless() {
		return "resume the queue"
	}
	return fmt.Sprintf("release the hold on %s %s", h.Scope, h.Key)
}

// moment formats a time for people: only the time of day if it is today.
func (s *Reasons) moment(t time.Time) string {
	if now := s.db.Now().UTC(); t.UTC().Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.UTC().Format(time.TimeOnly) + " UTC"
	}
	return t.UTC().Format(time.DateTime) + " UTC"
}

// span formats a duration for people: 42 s, 4 m, 3 h 20 m.
func span(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d m", d/time.Minute)
	}
	return fmt.Sprintf("%d h %d m", d/time.Hour, d%time.Hour/time.Minute)
}

// called returns an item's name and id for a sentence.
func called(it registry.WorkItem) string {
	return strings.TrimSpace(it.Name + " " + it.ID)
}
