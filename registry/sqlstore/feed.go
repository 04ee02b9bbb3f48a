package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// feedWindow is how many events one statement looks through: a reader who wants few of many must not read for long at a
// time (R25).
const feedWindow = 10_000

// feedPoll is how often the feed's end is looked for although the bell did not ring: on PostgreSQL another process may
// have written.
const feedPoll = 500 * time.Millisecond

const selectEvent = `SELECT id, feed_seq, item_id, collection, attempt, type, actor, audit_id, at, data FROM event`

// Events implements registry.Reading.
func (s *Store) Events(ctx context.Context, itemID string, after int64, limit int) ([]registry.Event, error) {
	return s.Feed(ctx, registry.FeedQuery{ItemID: itemID, After: after, Limit: limit})
}

// Feed implements registry.Reading.
func (s *Store) Feed(ctx context.Context, q registry.FeedQuery) ([]registry.Event, error) {
	limit := pageSize(q.Limit)
	if q.ItemID != "" {
		return s.feedBetween(ctx, q, 0, limit)
	}
	end, err := s.FeedEnd(ctx)
	if err != nil {
		return nil, err
	}
	var out []registry.Event
	for q.After = max(q.After, 0); q.After < end && len(out) < limit; q.After += feedWindow {
		more, err := s.feedBetween(ctx, q, q.After+feedWindow, limit-len(out))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// feedBetween lists events after q.After and up to a cursor, 0 being no bound.
func (s *Store) feedBetween(ctx context.Context, q registry.FeedQuery, upTo int64, limit int) ([]registry.Event, error) {
	var w where
	w.add("feed_seq > ?", q.After)
	if upTo > 0 {
		w.add("feed_seq <= ?", upTo)
	}
	if q.ItemID != "" {
		w.add("item_id = ?", q.ItemID)
	}
	if len(q.Types) > 0 {
		w.addIn("type", q.Types)
	}
	w.within("collection", q.Within)
	return s.events(ctx, selectEvent+w.String()+` ORDER BY feed_seq LIMIT `+strconv.Itoa(limit), w.args...)
}

func (s *Store) events(ctx context.Context, query string, args ...any) (out []registry.Event, err error) {
	return collect(s.read.ask(ctx, query, args...), "list events", func(row scanner) (registry.Event, error) {
		var e registry.Event
		var at int64
		var data string
		if err := row.Scan(&e.ID, &e.Seq, &e.ItemID, &e.Collection, &e.Attempt, &e.Type, &e.Actor, &e.AuditID, &at, &data); err != nil {
			return e, err
		}
		e.At, e.Data = fromMicros(at), []byte(data)
		return e, nil
	})
}

// FeedEnd implements registry.Reading.
func (s *Store) FeedEnd(ctx context.Context) (int64, error) {
	var end sql.NullInt64
	if err := s.read.QueryRowContext(ctx, `SELECT MAX(feed_seq) FROM event`).Scan(&end); err != nil {
		return 0, fmt.Errorf("find the feed's end: %w", err)
	}
	return end.Int64, nil
}

// AwaitFeed implements registry.Reading.
func (s *Store) AwaitFeed(ctx context.Context, after int64) error {
	again := time.NewTicker(feedPoll)
	defer again.Stop()
	for {
		news := s.news.wait() // before looking, so that nothing comes between
		end, err := s.FeedEnd(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || end > after {
			return err
		}
		select {
		case <-news:
		case <-again.C:
		case <-s.closed:
			return errClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Audit implements registry.Reading.
func (s *Store) Audit(ctx context.Context, q registry.AuditQuery) (page registry.Page[registry.Event], err error) {
	var w where
	w.add("audited = 1")
	if q.Actor != "" {
		w.add("actor = ?", q.Actor)
	}
	if len(q.Types) > 0 {
		w.addIn("type", q.Types)
	}
	before := int64(math.MaxInt64)
	if q.After != "" {
		if before, _, err = parseCursor(q.After); err != nil {
			return page, err
		}
	}
	w.add("feed_seq < ?", before)
	limit := pageSize(q.Limit)
	page.Rows, err = s.events(ctx, selectEvent+w.String()+` ORDER BY feed_seq DESC LIMIT `+strconv.Itoa(limit+1), w.args...)
	if len(page.Rows) > limit {
		page.Rows = page.Rows[:limit]
		page.Next = cursor(page.Rows[limit-1].Seq, "")
	}
	return page, err
}

// Refused implements registry.Administering.
func (s *Store) Refused(ctx context.Context, r registry.Refusal) error {
	r.Operation, r.Code, r.Detail, r.Remote, r.RequestID = clean(r.Operation), clean(r.Code), clean(r.Detail), clean(r.Remote), clean(r.RequestID)
	err := s.write(ctx, func(t *tx) error {
		return t.note(entry{kind: registry.EventRefused, actor: r.Actor, data: r})
	})
	if err != nil {
		return fmt.Errorf("note that %s was refused: %w", r.Operation, err)
	}
	return nil
}
