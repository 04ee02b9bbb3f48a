// Package why explains why an item waits, and what would let it continue. It reads the facts by
// which the engine decides, and writes nothing.
package why

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/remedy"
	"github.com/holdfast/holdfast/registry/search"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/wording"
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
	w := registry.Why{ItemID: id, Since: it.UpdatedAt, At: s.db.Now()}
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
	wording.Say(&w)
	return w, nil
}

func (s *Reasons) whySettled(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	w.Reason, w.Because = registry.ReasonSettled, []registry.Statement{{Says: registry.SaysSettled, State: it.State}}
	if it.FinishedAt != nil {
		w.Since = *it.FinishedAt
	}
	if it.Status != registry.Failed {
		return nil
	}
	w.Because[0] = registry.Statement{Says: registry.SaysFailed, Stage: it.Stage, Text: it.Note}
	known, _, err := s.remedy(ctx, it)
	if err != nil {
		return err
	}
	var code string
	err = s.db.Read.QueryRowContext(ctx, `SELECT cause_code FROM work_item WHERE id = $1`, it.ID).Scan(&code)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil // the item was purged meanwhile
	}
	if fix := remedy.Of(it, code, known); fix.Text != "" {
		w.Helps = []registry.Statement{{Says: registry.SaysAdvice, Text: fix.Text, Remedy: &fix.Remedy}}
	}
	if a, asked := it.Abandonment(); asked && a.Waits(w.At) {
		w.Because = append(w.Because, registry.Statement{Says: registry.SaysAbandonAsked, Name: a.AskedBy, Since: &a.AskedAt, Text: a.Reason})
		w.Helps = []registry.Statement{{Says: registry.SaysConfirmAbandon}}
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

// itself says that a waiting item goes on without anybody, and that it can be retried at once, if it
// can. A worker's advice comes first.
func itself(says registry.Says, advice string, it registry.WorkItem) (helps []registry.Statement) {
	if advice != "" {
		helps = append(helps, registry.Statement{Says: registry.SaysAdvice, Text: advice})
	}
	s := registry.Statement{Says: says}
	if slices.Contains(it.AllowedActs, registry.ActRetryNow) {
		s.ItemID = it.ID
	}
	return append(helps, s)
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
	w.Because, w.Helps = []registry.Statement{{Says: registry.SaysHeld, Hold: it.HeldBy}}, []registry.Statement{release(*it.HeldBy)}
}

// release says that a hold must be released. It says no more of the hold, which may be of another
// collection.
func release(h registry.Hold) registry.Statement {
	return registry.Statement{Says: registry.SaysRelease, Hold: &registry.Hold{Scope: h.Scope, Key: h.Key}}
}

// obstacle returns an item as one that another one waits for.
func obstacle(it registry.WorkItem) registry.Obstacle {
	return registry.Obstacle{ID: it.ID, Name: it.Name, State: it.State, NextTry: it.NextTry}
}
