package work

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// feedWindow is how many events one statement reads at most. A reader who filters out most events
// must not hold a read for long (R25).
const feedWindow = 10_000

// feedPoll is how often AwaitFeed looks without a signal: on PostgreSQL another process may have
// written.
const feedPoll = 500 * time.Millisecond

const selectEvent = `SELECT id, feed_seq, item_id, collection, attempt, type, actor, audit_id, at, data FROM event`

// Events implements registry.ItemReader.
func (e *Engine) Events(ctx context.Context, itemID string, after int64, limit int) ([]registry.Event, error) {
	return e.Feed(ctx, registry.FeedQuery{ItemID: itemID, After: after, Limit: limit})
}

// Feed implements registry.Feeds.
func (e *Engine) Feed(ctx context.Context, q registry.FeedQuery) ([]registry.Event, error) {
	limit := sqldb.PageSize(q.Limit)
	if q.ItemID != "" {
		return e.feedBetween(ctx, q, 0, limit)
	}
	end, err := e.FeedEnd(ctx)
	if err != nil {
		return nil, err
	}
	var out []registry.Event
	for q.After = max(q.After, 0); q.After < end && len(out) < limit; q.After += feedWindow {
		more, err := e.feedBetween(ctx, q, q.After+feedWindow, limit-len(out))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// feedBetween lists events after q.After, up to a cursor; 0 means no upper bound.
func (e *Engine) feedBetween(ctx context.Context, q registry.FeedQuery, upTo int64, limit int) ([]registry.Event, error) {
	var w sqldb.Where
	w.Add("feed_seq > ?", q.After)
	if upTo > 0 {
		w.Add("feed_seq <= ?", upTo)
	}
	if q.ItemID != "" {
		w.Add("item_id = ?", q.ItemID)
	}
	if len(q.Types) > 0 {
		w.AddIn("type", q.Types)
	}
	w.Within("collection", q.Within)
	return e.events(ctx, selectEvent+w.String()+` ORDER BY feed_seq LIMIT `+strconv.Itoa(limit), w.Args...)
}

func (e *Engine) events(ctx context.Context, query string, args ...any) (out []registry.Event, err error) {
	return sqldb.Collect(e.db.Read.Ask(ctx, query, args...), "list events", func(row sqldb.Scanner) (registry.Event, error) {
		var e registry.Event
		var at int64
		var data string
		if err := row.Scan(&e.ID, &e.Seq, &e.ItemID, &e.Collection, &e.Attempt, &e.Type, &e.Actor, &e.AuditID, &at, &data); err != nil {
			return e, err
		}
		e.At, e.Data = sqldb.FromMicros(at), []byte(data)
		return e, nil
	})
}

// FeedEnd implements registry.Feeds.
func (e *Engine) FeedEnd(ctx context.Context) (int64, error) {
	var end sql.NullInt64
	if err := e.db.Read.QueryRowContext(ctx, `SELECT MAX(feed_seq) FROM event`).Scan(&end); err != nil {
		return 0, fmt.Errorf("find the feed's end: %w", err)
	}
	return end.Int64, nil
}

// AwaitFeed implements registry.Feeds.
func (e *Engine) AwaitFeed(ctx context.Context, after int64) error {
	again := time.NewTicker(feedPoll)
	defer again.Stop()
	for {
		news := e.news.Wait() // before reading the end, so that no signal is missed
		end, err := e.FeedEnd(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || end > after {
			return err
		}
		select {
		case <-news:
		case <-again.C:
		case <-e.db.Closed():
			return sqldb.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Audit implements registry.Feeds.
func (e *Engine) Audit(ctx context.Context, q registry.AuditQuery) (page registry.Page[registry.Event], err error) {
	var w sqldb.Where
	w.Add("audited = 1")
	if q.Actor != "" {
		w.Add("actor = ?", q.Actor)
	}
	if len(q.Types) > 0 {
		w.AddIn("type", q.Types)
	}
	if !q.Since.IsZero() {
		w.Add("at >= ?", sqldb.Micros(q.Since))
	}
	if !q.Until.IsZero() {
		w.Add("at < ?", sqldb.Micros(q.Until))
	}
	if q.After != "" && q.Before != "" {
		return page, fmt.Errorf("%w: a page is after one entry or before one", registry.ErrInvalid)
	}
	from := int64(math.MaxInt64)
	if cursor := cmp.Or(q.After, q.Before); cursor != "" {
		if from, _, err = sqldb.ParseCursor(cursor); err != nil {
			return page, err
		}
	}
	beyond, order := "<", " DESC"
	if q.Before != "" {
		beyond, order = ">", ""
	}
	w.Add("feed_seq "+beyond+" ?", from)
	limit := sqldb.PageSize(q.Limit)
	rows, err := e.events(ctx, selectEvent+w.String()+` ORDER BY feed_seq`+order+` LIMIT `+strconv.Itoa(limit+1), w.Args...)
	page = sqldb.PageOf(rows, limit, func(last registry.Event) string { return sqldb.Cursor(last.Seq, "") })
	if cmp.Or(q.After, q.Before) != "" && len(page.Rows) > 0 {
		page.Prev = sqldb.Cursor(page.Rows[0].Seq, "")
	}
	if q.Before != "" {
		slices.Reverse(page.Rows)
		page.Next, page.Prev = page.Prev, page.Next
	}
	return page, err
}

// Refused implements registry.TokenKeeper.
func (e *Engine) Refused(ctx context.Context, r registry.Refusal) error {
	r.Operation, r.Code, r.Detail, r.Remote, r.RequestID = sqldb.Clean(r.Operation), sqldb.Clean(r.Code), sqldb.Clean(r.Detail), sqldb.Clean(r.Remote), sqldb.Clean(r.RequestID)
	err := e.Write(ctx, func(t *Tx) error {
		return t.Note(Entry{Kind: registry.EventRefused, Actor: r.Actor, Data: r})
	})
	if err != nil {
		return fmt.Errorf("note that %s was refused: %w", r.Operation, err)
	}
	return nil
}

// NoteAccess implements registry.Accessing.
func (e *Engine) NoteAccess(ctx context.Context, a registry.Access) error {
	a.Form, a.Export, a.File, a.Remote = sqldb.Clean(a.Form), sqldb.Clean(a.Export), sqldb.Clean(a.File), sqldb.Clean(a.Remote)
	err := e.Write(ctx, func(t *Tx) error {
		return t.Note(Entry{ItemID: a.ObjectID, Kind: a.Kind, Actor: a.Actor, Data: a})
	})
	if err != nil {
		return fmt.Errorf("note that %s was read: %w", a.ObjectID, err)
	}
	return nil
}

// NoteBackup implements registry.BackupNoting.
func (e *Engine) NoteBackup(ctx context.Context, b registry.Backup) error {
	b.Name, b.Place = sqldb.Clean(b.Name), sqldb.Clean(b.Place)
	err := e.Write(ctx, func(t *Tx) error {
		return t.Note(Entry{ItemID: b.Name, Kind: registry.EventBackupMade, Actor: ActorRegistry, Data: b})
	})
	if err != nil {
		return fmt.Errorf("note the backup %s: %w", b.Name, err)
	}
	return nil
}

// Source returns the Registry's permanent identifier: urn:uuid: and the UUID that its database got
// when it was created.
func (e *Engine) Source(ctx context.Context) (source string, err error) {
	if err = e.db.Read.QueryRowContext(ctx, selectSource).Scan(&source); err != nil {
		return "", fmt.Errorf("read the Registry's identifier: %w", err)
	}
	return source, nil
}

const selectSource = `SELECT value FROM setting WHERE name = 'source'`

// Source is [Engine.Source] inside the transaction.
func (t *Tx) Source() (source string, err error) {
	if err := t.Get(selectSource, nil, &source); err != nil {
		return "", fmt.Errorf("read the Registry's identifier: %w", err)
	}
	return source, nil
}
