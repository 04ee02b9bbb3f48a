// Package bulk carries out an act on every item that a query finds. Each transaction handles some
// items and moves a cursor, so that a killed process neither skips nor repeats one.
package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/search"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Acts carries out bulk acts. Its methods may be called concurrently.
type Acts struct {
	db   *sqldb.DB
	work *work.Engine
	find *search.Search
}

// New returns bulk acts.
func New(db *sqldb.DB, engine *work.Engine, find *search.Search) *Acts {
	return &Acts{db: db, work: engine, find: find}
}

// tx is the open transaction.
type tx struct {
	*work.Tx
	store *Acts
}

func (s *Acts) in(t *work.Tx) *tx { return &tx{Tx: t, store: s} }

func (s *Acts) write(ctx context.Context, fn func(*tx) error) error {
	return s.work.Write(ctx, func(t *work.Tx) error { return fn(s.in(t)) })
}

// Bulk implements registry.Commanding. It counts the matching items before the transaction:
// counting may take long and must not block writers.
func (s *Acts) Bulk(ctx context.Context, b registry.BulkRequest) (registry.WorkItem, error) {
	it, err := s.bulk(ctx, b)
	if err != nil {
		return registry.WorkItem{}, fmt.Errorf("%s in bulk: %w", b.Act, err)
	}
	return it, nil
}

func (s *Acts) bulk(ctx context.Context, b registry.BulkRequest) (it registry.WorkItem, err error) {
	spec, err := bulkSpec(b)
	spec.AskedAt = s.db.Now()
	if err != nil {
		return it, err
	}
	asked := spec
	asked.AskedAt = time.Time{}
	args, err := work.Fingerprint(asked)
	if err != nil {
		return it, err
	}
	w, err := s.matches(ctx, spec)
	if err != nil {
		return it, err
	}
	if err := s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM work_item i`+w.String(), w.Args...).Scan(&spec.Matched); err != nil {
		return it, fmt.Errorf("count matching items: %w", err)
	}
	err = s.write(ctx, func(t *tx) error {
		id, known, err := t.Keyed(b.IdempotencyKey, args)
		if err != nil {
			return err
		}
		if !known {
			if id, err = t.addBulk(spec, b.Actor); err != nil {
				return err
			}
			if err := t.Answer(b.IdempotencyKey, args, id, "bulk", b.Actor); err != nil {
				return err
			}
		}
		it, err = t.Item(id)
		return err
	})
	return it, err
}

func bulkSpec(b registry.BulkRequest) (registry.BulkSpec, error) {
	if len(b.Match.Terms) == 0 {
		return registry.BulkSpec{}, registry.ErrEmptyQuery
	}
	if acts := registry.AdminActs(); !slices.Contains(acts, b.Act) {
		return registry.BulkSpec{}, fmt.Errorf("%w: %q is not one of %v", registry.ErrInvalid, b.Act, registry.OneOf(acts))
	}
	if b.Act == registry.ActAbandon {
		return registry.BulkSpec{}, fmt.Errorf("%w: %s", registry.ErrInvalid, registry.AbandonOneByOne)
	}
	if b.GraceSeconds < 0 || b.GraceSeconds > registry.MostGrace {
		return registry.BulkSpec{}, fmt.Errorf("%w: the grace of %d s is not between 0 and %d s", registry.ErrInvalid, b.GraceSeconds, registry.MostGrace)
	}
	return registry.BulkSpec{
		GraceSeconds: b.GraceSeconds, Match: b.Match, Within: b.Within, Act: b.Act, From: b.From, Priority: b.Priority, Reason: sqldb.Clean(b.Reason), Confirm: b.Confirmed,
	}, nil
}

// matches returns the condition for all items of a bulk act, for one statement.
func (s *Acts) matches(ctx context.Context, spec registry.BulkSpec) (*sqldb.Where, error) {
	w, err := s.bulkWhere(spec)
	if err != nil {
		return w, err
	}
	return w, s.find.AddText(ctx, w, registry.ItemQuery{Match: spec.Match, Within: spec.Within})
}

// bulkWhere returns the condition for the items of a bulk act. Ages in the query are relative to
// the time of the request.
func (s *Acts) bulkWhere(b registry.BulkSpec) (*sqldb.Where, error) {
	w, err := search.ItemWhere(registry.ItemQuery{Match: b.Match, Within: b.Within, ParentID: b.Parent}, s.db.Dialect.Name(), sqldb.Micros(b.AskedAt))
	if err != nil {
		return w, err
	}
	if b.Parent == "" {
		return w, nil
	}
	switch b.Act {
	case registry.ActDelete: // completed jobs stay; acts on jobs that cannot be stopped are refused
		w.Add("i.status NOT IN ('completed', 'deleted')")
	case registry.ActCancel, registry.ActAbort:
		w.Add("i.status IN ('prepare', 'pending', 'running')")
	default:
	}
	return w, nil
}

// addBulk inserts the item that carries out a bulk act. Its first event is the only audit entry of
// the whole act.
func (t *tx) addBulk(spec registry.BulkSpec, actor string) (id string, err error) {
	id, spec.AskedAt = sqldb.NewID(), sqldb.FromMicros(t.Now)
	route, _ := registry.RouteOf(registry.Bulk)
	return id, t.Insert(work.NewItem{
		ID: id, Tenant: sqldb.Tenant, Action: registry.Bulk, Stage: route.First(), Status: registry.Pending,
		Priority: registry.DefaultPriority, Name: spec.Title(), Actor: actor, Input: spec,
		Delay: (time.Duration(spec.GraceSeconds) * time.Second).Microseconds(),
	})
}

// family carries out an act on a batch's jobs: on open jobs if the batch is stopped, on all that
// have not completed if it is deleted.
func (t *tx) family(batch registry.WorkItem, c registry.Command) error {
	if batch.Action != registry.Batch {
		return nil
	}
	spec := registry.BulkSpec{Parent: batch.ID, Act: c.Act, Reason: sqldb.Clean(c.Reason), Confirm: true}
	w, err := t.store.bulkWhere(spec)
	if err != nil {
		return err
	}
	if err := t.Get(`SELECT COUNT(*) FROM work_item i`+w.String(), w.Args, &spec.Matched); err != nil {
		return fmt.Errorf("count jobs of batch %s: %w", batch.ID, err)
	}
	if spec.Matched == 0 {
		return nil
	}
	if _, err := t.addBulk(spec, c.Actor); err != nil {
		return errors.Join(fmt.Errorf("%s the jobs of batch %s", c.Act, batch.ID), err)
	}
	return nil
}

// Join registers the hook that carries out acts on a batch's jobs.
func (s *Acts) Join(h *work.Hooks) {
	h.Family = func(t *work.Tx, batch registry.WorkItem, c registry.Command) error { return s.in(t).family(batch, c) }
}
