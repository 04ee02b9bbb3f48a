package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

const refusalsShown = 20

// applied is the progress of a bulk act, stored as its durable result. Items before the cursor are
// done.
type applied struct {
	registry.BulkProgress
	Cursor int64 `json:"cursor"` // seq of the last item read
}

// found is an item that matched when it was read.
type found struct {
	id  string
	seq int64
}

// errMoved: another call continued the bulk act meanwhile.
var errMoved = errors.New("another call continued the bulk act")

// ApplyNext implements registry.Working. It searches for the next items outside the transaction,
// because a search may take long. In the transaction it checks each item again.
func (s *Acts) ApplyNext(ctx context.Context, l registry.Lease) (registry.BulkProgress, error) {
	for {
		p, err := s.applyNext(ctx, l)
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return registry.BulkProgress{}, fmt.Errorf("continue bulk act %s: %w", l.ItemID, err)
		}
		return p, nil
	}
}

func (s *Acts) applyNext(ctx context.Context, l registry.Lease) (registry.BulkProgress, error) {
	bulk, err := s.work.Item(ctx, l.ItemID)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return registry.BulkProgress{}, err
	}
	if bulk.Status != registry.Running || bulk.Attempt != l.N {
		return registry.BulkProgress{}, fmt.Errorf("attempt %d of item %s: %w", l.N, l.ItemID, registry.ErrClaimLost)
	}
	spec, from, err := decodeBulk(bulk)
	if err != nil {
		return registry.BulkProgress{}, err
	}
	next, err := s.nextOf(ctx, bulk.ID, spec, from)
	if err != nil {
		return registry.BulkProgress{}, fmt.Errorf("look for items: %w", err)
	}
	var p applied
	err = s.write(ctx, func(t *tx) error {
		bulk, err := t.Live(l)
		if err != nil {
			return err
		}
		spec, is, err := decodeBulk(bulk)
		if err != nil {
			return err
		}
		if is.Cursor != from.Cursor {
			return errMoved
		}
		t.Audit = bulk.ID
		defer func() { t.Audit = "" }()
		p, err = t.applyTo(bulk, spec, is, next)
		return err
	})
	return p.BulkProgress, err
}

func decodeBulk(it registry.WorkItem) (spec registry.BulkSpec, p applied, err error) {
	if it.Action != registry.Bulk {
		return spec, p, fmt.Errorf("%w: item %s is not a bulk act", registry.ErrInvalid, it.ID)
	}
	if err := json.Unmarshal(it.Spec, &spec); err != nil {
		return spec, p, fmt.Errorf("decode spec of item %s: %w", it.ID, err)
	}
	if raw, begun := it.Results[registry.ResultBulk]; begun {
		if err := json.Unmarshal(raw, &p); err != nil {
			return spec, p, fmt.Errorf("decode progress of item %s: %w", it.ID, err)
		}
	}
	p.Matched = spec.Matched
	return spec, p, nil
}

// nextOf returns the next items that match.
func (s *Acts) nextOf(ctx context.Context, bulkID string, spec registry.BulkSpec, from applied) (out []found, err error) {
	w, err := s.matches(ctx, spec)
	if err != nil {
		return nil, err
	}
	w.Add("i.id <> ?", bulkID)
	w.Add("+i.created_at <= ?", sqldb.Micros(spec.AskedAt)) // the sign keeps SQLite from using an index for this condition
	w.Add("i.seq > ?", from.Cursor)
	return sqldb.Collect(s.db.Read.Ask(ctx, `SELECT i.id, i.seq FROM work_item i`+w.String()+
		` ORDER BY i.seq LIMIT `+strconv.Itoa(work.AtOnce), w.Args...), "", func(row sqldb.Scanner) (found, error) {
		var f found
		err := row.Scan(&f.id, &f.seq)
		return f, err
	})
}

// applyTo carries out the act on each item that still matches. It records its progress in the same
// transaction.
func (t *tx) applyTo(bulk registry.WorkItem, spec registry.BulkSpec, p applied, next []found) (applied, error) {
	for _, f := range next {
		p.Cursor = f.seq
		it, err := t.matching(spec, f.id)
		if err != nil {
			return p, err
		}
		if it.ID == "" {
			continue
		}
		refused, err := t.Try(func() error { return t.applyOne(bulk, spec, it) })
		switch {
		case err != nil:
			return p, fmt.Errorf("%s item %s: %w", spec.Act, f.id, err)
		case refused == nil:
			p.Applied++
		default:
			p.Refused++
			if len(p.Refusals) < refusalsShown {
				p.Refusals = append(p.Refusals, sqldb.Clean(fmt.Sprintf("%s: %v", f.id, refused)))
			}
		}
	}
	p.Done = len(next) < work.AtOnce
	if p.Done && spec.Parent != "" && spec.Act == registry.ActPurge {
		if err := t.purgeRest(spec, bulk.CreatedBy, &p); err != nil {
			return p, err
		}
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return p, fmt.Errorf("encode progress: %w", err)
	}
	return p, t.SetResult(bulk, registry.ResultBulk, raw)
}

// matching returns the item if it still matches, and otherwise an empty item.
func (t *tx) matching(spec registry.BulkSpec, id string) (it registry.WorkItem, err error) {
	w, err := t.store.bulkWhere(spec)
	if err != nil {
		return it, err
	}
	w.Add("i.id = ?", id)
	var n int64
	if err := t.Get(`SELECT COUNT(*) FROM work_item i`+w.String(), w.Args, &n); err != nil || n == 0 {
		return it, err
	}
	return t.Item(id)
}

// applyOne carries out the act on one item. It stops a job before it deletes it with its batch.
func (t *tx) applyOne(bulk registry.WorkItem, spec registry.BulkSpec, it registry.WorkItem) error {
	c := registry.Command{
		ItemID: it.ID, Act: spec.Act, From: spec.From, Priority: spec.Priority, Reason: spec.Reason, Actor: bulk.CreatedBy,
		Confirmed: spec.Confirm,
	}
	if spec.Parent != "" && spec.Act == registry.ActPurge {
		return t.PurgeRows(it, c)
	}
	if spec.Parent != "" && spec.Act == registry.ActDelete && !it.Status.Settled() {
		stop := c
		if it.Commitment == registry.Preserved && slices.Contains(it.AllowedActs, registry.ActGiveUp) {
			stop.Act = registry.ActGiveUp // its object stays, and the job completes
			return t.CarryOut(it, stop)
		}
		stop.Act = registry.ActAbort
		if err := t.CarryOut(it, stop); err != nil {
			return err
		}
		var err error
		if it, err = t.Item(it.ID); err != nil {
			return err
		}
	}
	return t.CarryOut(it, c)
}
