package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Bulk implements registry.Administering. What matches is counted before the transaction: it may take long, and nobody
// may write meanwhile.
func (s *Store) Bulk(ctx context.Context, b registry.BulkRequest) (registry.WorkItem, error) {
	it, err := s.bulk(ctx, b)
	if err != nil {
		return registry.WorkItem{}, fmt.Errorf("%s in bulk: %w", b.Act, err)
	}
	return it, nil
}

func (s *Store) bulk(ctx context.Context, b registry.BulkRequest) (it registry.WorkItem, err error) {
	spec, err := bulkSpec(b)
	spec.AskedAt = s.now()
	if err != nil {
		return it, err
	}
	asked := spec
	asked.AskedAt = time.Time{}
	args, err := fingerprint(asked)
	if err != nil {
		return it, err
	}
	w, err := s.bulkWhere(spec)
	if err != nil {
		return it, err
	}
	if err := s.addText(ctx, w, registry.ItemQuery{Match: spec.Match, Within: spec.Within}); err != nil {
		return it, err
	}
	if err := s.read.QueryRowContext(ctx, `SELECT COUNT(*) FROM work_item i`+w.String(), w.args...).Scan(&spec.Matched); err != nil {
		return it, fmt.Errorf("count what matches: %w", err)
	}
	err = s.write(ctx, func(t *tx) error {
		id, known, err := t.keyed(b.IdempotencyKey, args)
		if err != nil {
			return err
		}
		if !known {
			if id, err = t.addBulk(spec, b.Actor); err != nil {
				return err
			}
			if err := t.answer(b.IdempotencyKey, args, id, "bulk", b.Actor); err != nil {
				return err
			}
		}
		it, err = t.item(id)
		return err
	})
	return it, err
}

func bulkSpec(b registry.BulkRequest) (registry.BulkSpec, error) {
	if len(b.Match.Terms) == 0 {
		return registry.BulkSpec{}, registry.ErrEmptyQuery
	}
	if acts := registry.AdminActs(); !slices.Contains(acts, b.Act) {
		return registry.BulkSpec{}, fmt.Errorf("%w: %q is not one of %v", registry.ErrInvalid, b.Act, acts)
	}
	if b.Act == registry.ActAbandon {
		return registry.BulkSpec{}, fmt.Errorf("%w: %s", registry.ErrInvalid, registry.AbandonOneByOne)
	}
	return registry.BulkSpec{
		Match: b.Match, Within: b.Within, Act: b.Act, From: b.From, Priority: b.Priority, Reason: clean(b.Reason), Confirm: b.Confirmed,
	}, nil
}

// bulkWhere is what a bulk act is about. What the query says of ages is meant as of the moment it was asked.
func (s *Store) bulkWhere(b registry.BulkSpec) (*where, error) {
	w, err := itemWhere(registry.ItemQuery{Match: b.Match, Within: b.Within, ParentID: b.Parent}, s.dialect.name(), micros(b.AskedAt))
	if err != nil {
		return w, err
	}
	if b.Parent == "" {
		return w, nil
	}
	switch b.Act {
	case registry.ActDelete: // what is done stays; what cannot be stopped any more is refused
		w.add("i.status NOT IN ('completed', 'deleted')")
	case registry.ActCancel, registry.ActAbort:
		w.add("i.status IN ('prepare', 'pending', 'running')")
	default:
	}
	return w, nil
}

// addText lets the text index find what a query selects, as far as it can.
func (s *Store) addText(ctx context.Context, w *where, q registry.ItemQuery) error {
	words, err := s.searchFor(ctx, q, reachOf(q))
	if err != nil || len(words.terms) == 0 || len(words.ids) > 0 {
		return err
	}
	w.conds = append(w.conds, "i.seq IN (SELECT x."+words.key()+" FROM item_text x WHERE "+words.cond(w)+")")
	return nil
}

// addBulk makes the item that carries a bulk act out. Its first event is the one audit entry of all that it does.
func (t *tx) addBulk(spec registry.BulkSpec, actor string) (id string, err error) {
	id, spec.AskedAt = newID(), fromMicros(t.now)
	route, _ := registry.RouteOf(registry.Bulk)
	return id, t.insert(newItem{
		id: id, tenant: Tenant, action: registry.Bulk, stage: route.First(), status: registry.Pending,
		priority: registry.DefaultPriority, name: spec.Title(), actor: actor, input: spec,
	})
}

// family lets a batch's jobs share its fate: those that are open when it is stopped, all that have not completed when it
// is deleted.
func (t *tx) family(batch registry.WorkItem, c registry.Command) error {
	if batch.Action != registry.Batch {
		return nil
	}
	spec := registry.BulkSpec{Parent: batch.ID, Act: c.Act, Reason: clean(c.Reason), Confirm: true}
	w, err := t.store.bulkWhere(spec)
	if err != nil {
		return err
	}
	if err := t.get(`SELECT COUNT(*) FROM work_item i`+w.String(), w.args, &spec.Matched); err != nil {
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
