package why

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

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
	var names, acts []string
	for _, r := range required {
		names = append(names, fmt.Sprintf("%s (%s)", called(r), r.StateText(s.db.Now().UTC())))
		if act := lets(r); act != "" {
			acts = append(acts, act)
		}
	}
	w.Sentence = "waits for " + registry.Count(it.BlockerCount, "item")
	if len(names) > 0 {
		w.Sentence += ": " + strings.Join(names, ", ")
	}
	if more := it.BlockerCount - int64(len(names)); more > 0 && len(names) > 0 {
		w.Sentence += fmt.Sprintf(" and %d more", more)
	}
	w.Act = strings.Join(acts, "; ")
	if w.Act == "" {
		w.Act = "nothing: it continues when they have settled"
	}
	return nil
}

// lets returns what a person can do to let a required item continue; "" if it continues on its own.
func lets(it registry.WorkItem) string {
	switch {
	case it.Status == registry.Failed || it.Status == registry.Cancelled:
		return "requeue item " + it.ID
	case it.Status == registry.Prepare:
		return "seal the graph of item " + it.ID
	case it.HeldBy != nil && it.Status == registry.Pending:
		return releaseAct(*it.HeldBy)
	}
	return ""
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
	w.Sentence = fmt.Sprintf("waits for item %s (%s), which was submitted earlier or has begun already, and works on the same object (%s)",
		called(other), other.StateText(s.db.Now().UTC()), key)
	w.Act = lets(other)
	if w.Act == "" {
		w.Act = "nothing: it continues when that item has settled"
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
	w.Sentence = fmt.Sprintf("%s; next check at %s", it.Note, s.moment(it.RunAt))
	remedy, _, err := s.remedy(ctx, it)
	if err != nil {
		return err
	}
	w.Act = orNow(orByItself(remedy, "checked again automatically"), it)
	switch wait {
	case registry.ReasonNoSpace:
		w.Act = orNow("free room on the volume, or let items that have room reserved there complete; it is checked again automatically", it)
	case registry.ReasonNoMemory:
		w.Act = orNow("nothing, or raise HOLDFAST_UNPACK_MEMORY of the process workers; it is checked again automatically", it)
	case registry.ReasonThawing:
		w.Act = "nothing: it continues when the archive has restored the files"
	case registry.ReasonLocked:
		w.Act = "nothing: it continues when the item that has the lock has settled"
	default:
	}
	return nil
}

// whyNotDue explains when the step is tried again, and why.
func (s *Reasons) whyNotDue(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	remedy, most, err := s.remedy(ctx, it)
	if err != nil {
		return err
	}
	w.Reason, w.Act = registry.ReasonNotDue, orNow(orByItself(remedy, "retried automatically"), it)
	note := it.Note
	if it.Tries > 0 {
		try := fmt.Sprintf("attempt %d", it.Tries+1)
		if most > 0 {
			try += fmt.Sprintf(" of %d", most)
		}
		note = strings.TrimSuffix(try+": "+note, ": ")
	}
	w.Sentence = "retry at " + s.moment(it.RunAt)
	if note != "" {
		w.Sentence += " (" + note + ")"
	}
	return nil
}
