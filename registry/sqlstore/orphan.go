package sqlstore

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// SearchOrphans implements registry.Administering.
func (s *Store) SearchOrphans(ctx context.Context, r registry.OrphanRequest) (it registry.WorkItem, err error) {
	r.Search.Reason = clean(r.Search.Reason)
	args, err := fingerprint(r.Search)
	if err == nil {
		err = r.Search.Check()
	}
	if err == nil {
		err = s.write(ctx, func(t *tx) error {
			it, err = t.searchOrphans(r, args)
			return err
		})
	}
	if err != nil {
		return registry.WorkItem{}, fmt.Errorf("look for orphans: %w", err)
	}
	return it, nil
}

func (t *tx) searchOrphans(r registry.OrphanRequest, args string) (it registry.WorkItem, err error) {
	id, known, err := t.keyed(r.IdempotencyKey, args)
	if err != nil {
		return it, err
	}
	if !known {
		route, _ := registry.RouteOf(registry.Tidy)
		n := newItem{
			id: newID(), tenant: Tenant, action: registry.Tidy, stage: route.First(), status: registry.Pending,
			priority: registry.DefaultPriority, name: r.Search.Title(), actor: r.Actor, input: registry.TidySpec{Orphans: &r.Search},
		}
		if err := t.insert(n); err != nil {
			return it, err
		}
		id = n.id
		if err := t.answer(r.IdempotencyKey, args, id, registry.Act(registry.Tidy), r.Actor); err != nil {
			return it, err
		}
	}
	return t.item(id)
}
