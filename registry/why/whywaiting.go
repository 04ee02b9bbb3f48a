package why

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// whyJobsOpen names the first jobs that a batch waits for, and what they need.
func (s *Reasons) whyJobsOpen(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	const shown = 3
	required, err := s.work.ReadItems(ctx, `SELECT `+work.ItemColumns+` FROM work_dep d JOIN work_item i ON i.id = d.requires_id
		WHERE d.item_id = $1 AND d.satisfied_at IS NULL ORDER BY d.requires_id LIMIT $2`, it.ID, shown)
	if err != nil {
		return err
	}
	open := registry.Statement{Says: registry.SaysJobsOpen, N: it.BlockerCount}
	for _, r := range required {
		open.Items = append(open.Items, obstacle(r))
		for _, s := range lets(r) { // several may wait for one hold
			if !slices.ContainsFunc(w.Helps, func(have registry.Statement) bool { return reflect.DeepEqual(have, s) }) {
				w.Helps = append(w.Helps, s)
			}
		}
	}
	w.Because = []registry.Statement{open}
	if len(w.Helps) == 0 {
		w.Helps = []registry.Statement{{Says: registry.SaysJobsSettle}}
	}
	return nil
}

// lets says what a person can do to let a required item continue; nil if it continues on its own.
func lets(it registry.WorkItem) []registry.Statement {
	switch {
	case it.Status == registry.Failed || it.Status == registry.Cancelled:
		return []registry.Statement{{Says: registry.SaysRequeue, Items: []registry.Obstacle{obstacle(it)}}}
	case it.Status == registry.Prepare:
		return []registry.Statement{{Says: registry.SaysSeal, GraphID: it.GraphID}}
	case it.HeldBy != nil && it.Status == registry.Pending:
		return []registry.Statement{release(*it.HeldBy)}
	}
	return nil
}

// whyLocked names the item that has the lock, or that stands earlier in its line.
func (s *Reasons) whyLocked(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	var key, holder string
	err := s.db.Read.QueryRowContext(ctx, `SELECT key, holder FROM (SELECT w.key AS key,
				COALESCE((SELECT l.item_id FROM lock l WHERE l.key = w.key),
					(SELECT v.item_id FROM lock_wait v WHERE v.key = w.key ORDER BY v.submitted_at, v.item_id LIMIT 1)) AS holder
			FROM lock_wait w WHERE w.item_id = $1) k
		WHERE holder <> $1 ORDER BY key LIMIT 1`, it.ID).Scan(&key, &holder)
	if errors.Is(err, sql.ErrNoRows) {
		return s.whyQueued(ctx, it, w) // the lock became free between two reads
	} else if err != nil {
		return err
	}
	other, err := s.work.Item(ctx, holder)
	if err != nil {
		return err
	}
	w.Reason, w.Actor = registry.ReasonLocked, holder
	w.Because = []registry.Statement{{Says: registry.SaysLocked, Name: key, Items: []registry.Obstacle{obstacle(other)}}}
	if w.Helps = lets(other); len(w.Helps) == 0 {
		w.Helps = []registry.Statement{{Says: registry.SaysLockFreed}}
	}
	return nil
}

// whySnoozed explains what a worker found missing.
func (s *Reasons) whySnoozed(ctx context.Context, it registry.WorkItem, wait registry.Reason, w *registry.Why) error {
	var since sql.NullInt64
	// Since the first of consecutive snoozes.
	err := s.db.Read.QueryRowContext(ctx, `SELECT MIN(at) FROM event WHERE item_id = $1 AND type = 'snooze' AND feed_seq >
		(SELECT COALESCE(MAX(feed_seq), 0) FROM event WHERE item_id = $1 AND type IN ('advance', 'retry', 'release', 'lose', 'requeue'))`,
		it.ID).Scan(&since)
	if err != nil {
		return err
	}
	if since.Valid {
		w.Since = sqldb.FromMicros(since.Int64)
	}
	w.Reason = wait
	w.Because = []registry.Statement{{Says: registry.SaysNoted, Text: it.Note}, {Says: registry.SaysNextCheck, Until: &it.RunAt}}
	if it.Note == "" {
		w.Because = w.Because[1:]
	}
	advice, _, err := s.remedy(ctx, it)
	if err != nil {
		return err
	}
	w.Helps = itself(registry.SaysChecked, advice, it)
	switch wait {
	case registry.ReasonNoSpace:
		w.Helps = append([]registry.Statement{{Says: registry.SaysFreeRoom}}, itself(registry.SaysChecked, "", it)...)
	case registry.ReasonNoMemory:
		w.Helps = append([]registry.Statement{{Says: registry.SaysMoreMemory}}, itself(registry.SaysChecked, "", it)...)
	case registry.ReasonThawing:
		w.Helps = []registry.Statement{{Says: registry.SaysThaws}}
	case registry.ReasonLocked:
		w.Helps = []registry.Statement{{Says: registry.SaysLockFreed}}
	default:
	}
	return nil
}

// whyNotDue explains when the step is tried again, and why.
func (s *Reasons) whyNotDue(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	advice, most, err := s.remedy(ctx, it)
	if err != nil {
		return err
	}
	w.Reason, w.Helps = registry.ReasonNotDue, itself(registry.SaysRetried, advice, it)
	retry := registry.Statement{Says: registry.SaysRetry, Until: &it.RunAt, Text: it.Note}
	if it.Tries > 0 {
		retry.N, retry.Of = int64(it.Tries)+1, int64(max(most, 0))
	}
	w.Because = []registry.Statement{retry}
	return nil
}
