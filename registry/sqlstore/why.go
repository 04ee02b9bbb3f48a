package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Why implements registry.Reading.
func (s *Store) Why(ctx context.Context, id string) (registry.Why, error) {
	it, err := s.Item(ctx, id)
	if err != nil {
		return registry.Why{}, err
	}
	w := registry.Why{ItemID: id, Since: it.UpdatedAt}
	switch {
	case it.Status == registry.Running:
		err = s.whyRunning(ctx, it, &w)
	case it.Status.Settled():
		whySettled(it, &w)
	default:
		err = s.whyPending(ctx, it, &w)
	}
	if err != nil {
		return w, fmt.Errorf("explain item %s: %w", id, err)
	}
	return w, nil
}

func whySettled(it registry.WorkItem, w *registry.Why) {
	w.Reason, w.Sentence = registry.ReasonSettled, fmt.Sprintf("it is %s and waits for nothing", it.State)
	if it.FinishedAt != nil {
		w.Since = *it.FinishedAt
	}
	if it.Status != registry.Failed {
		return
	}
	w.Sentence = fmt.Sprintf("it failed at %s: %s", it.Stage, it.Note)
	switch it.ErrorClass {
	case registry.ContentFault:
		w.Act = "the producer corrects the deposit and submits it again"
	case registry.JobsFault:
		w.Act = "requeue the failed jobs, then ask the batch for an updated report"
	default:
		w.Act = "an admin looks at the cause and requeues the item"
	}
}

func (s *Store) whyRunning(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	a, err := scanAttempt(s.read.QueryRowContext(ctx, selectAttempt+`WHERE item_id = $1 AND n = $2`, it.ID, it.Attempt))
	if err != nil {
		return err
	}
	w.Reason, w.Since, w.Actor = registry.ReasonRunning, a.StartedAt, a.Worker
	w.Sentence = fmt.Sprintf("running %s on %s for %s, lease until %s", a.Stage, a.Worker,
		s.now().Sub(a.StartedAt).Round(time.Second), clock(a.LeaseUntil))
	return nil
}

func (s *Store) whyPending(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	var isBlocked, isLocked bool
	var wait registry.Reason
	err := s.read.QueryRowContext(ctx, `SELECT `+blocked+`, `+lockedOut+`, i.wait_reason FROM work_item i WHERE i.id = $1`, it.ID).
		Scan(&isBlocked, &isLocked, &wait)
	if err != nil {
		return err
	}
	switch {
	case it.State == registry.StateHeld:
		return s.whyHeld(ctx, it, w)
	case isBlocked:
		w.Reason = registry.ReasonBlocked
		w.Sentence = "waits for " + count(it.BlockerCount, "item") + " to settle"
		return nil
	case isLocked:
		return s.whyLocked(ctx, it, w)
	case it.RunAt.After(s.now()):
		w.Reason = registry.ReasonNotDue
		if wait != "" {
			w.Reason = wait
			w.Sentence = fmt.Sprintf("%s; looked at again at %s", it.Note, clock(it.RunAt))
			return nil
		}
		w.Sentence = fmt.Sprintf("retry at %s (%s so far: %s)", clock(it.RunAt), count(int64(it.Tries), "counted failure"), it.Note)
		return nil
	}
	return s.whyQueued(ctx, it, w)
}

func (s *Store) whyHeld(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	var h registry.Hold
	var at int64
	err := s.read.QueryRowContext(ctx, `SELECT scope, key, reason, actor, created_at FROM hold WHERE scope = 'all'
		OR (scope = 'stage' AND key = $1) OR (scope = 'collection' AND key = $2)
		OR (scope = 'batch' AND key IN ($3, $4)) OR (scope = 'item' AND key = $4) ORDER BY created_at LIMIT 1`,
		it.Stage, it.Collection, it.ParentID, it.ID).Scan(&h.Scope, &h.Key, &h.Reason, &h.Actor, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return s.whyQueued(ctx, it, w) // released between two reads
	} else if err != nil {
		return err
	}
	w.Reason, w.Actor, w.Since = registry.ReasonHeld, h.Actor, fromMicros(at)
	w.Sentence = fmt.Sprintf("held by %s since %s (%s)", h.Actor, w.Since.Format(time.RFC3339), h.Reason)
	w.Act = strings.TrimSpace(fmt.Sprintf("release the hold on %s %s", h.Scope, h.Key))
	return nil
}

func (s *Store) whyLocked(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	var key, holder string
	err := s.read.QueryRowContext(ctx, `SELECT w.key, COALESCE((SELECT l.item_id FROM lock l WHERE l.key = w.key),
			(SELECT v.item_id FROM lock_wait v WHERE v.key = w.key ORDER BY v.submitted_at, v.item_id LIMIT 1))
		FROM lock_wait w WHERE w.item_id = $1 ORDER BY w.key LIMIT 1`, it.ID).Scan(&key, &holder)
	if errors.Is(err, sql.ErrNoRows) {
		return s.whyQueued(ctx, it, w)
	} else if err != nil {
		return err
	}
	w.Reason, w.Actor = registry.ReasonLocked, holder
	w.Sentence = fmt.Sprintf("waits for item %s, which works on the same object (%s)", holder, key)
	return nil
}

func (s *Store) whyQueued(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	var before, ready int64
	err := s.read.QueryRowContext(ctx, `SELECT COUNT(CASE WHEN (i.rank, i.id) <= (m.rank, m.id) THEN 1 END), COUNT(*)
		FROM work_item i, work_item m WHERE m.id = $1 AND i.stage = m.stage AND i.ready = 1
			AND NOT `+heldBy, it.ID).Scan(&before, &ready)
	if err != nil {
		return err
	}
	w.Reason = registry.ReasonQueued
	w.Sentence = fmt.Sprintf("position %d of %d for %s", before, ready, it.Stage)
	return nil
}

// clock is a time of day as people are told it.
func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) + " UTC" }

// count is a number with its noun.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
