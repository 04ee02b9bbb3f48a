package catalog

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// SearchOrphans implements registry.Requesting.
func (s *Catalog) SearchOrphans(ctx context.Context, r registry.OrphanRequest) (it registry.WorkItem, err error) {
	r.Search.Reason = sqldb.Clean(r.Search.Reason)
	args, err := work.Fingerprint(r.Search)
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
	id, known, err := t.Keyed(r.IdempotencyKey, args)
	if err != nil {
		return it, err
	}
	if !known {
		route, _ := registry.RouteOf(registry.Tidy)
		n := work.NewItem{
			ID: sqldb.NewID(), Tenant: sqldb.Tenant, Action: registry.Tidy, Stage: route.First(), Status: registry.Pending,
			Priority: registry.DefaultPriority, Name: r.Search.Title(), Actor: r.Actor, Input: registry.TidySpec{Orphans: &r.Search},
		}
		if err := t.Insert(n); err != nil {
			return it, err
		}
		id = n.ID
		if err := t.Answer(r.IdempotencyKey, args, id, registry.Act(registry.Tidy), r.Actor); err != nil {
			return it, err
		}
	}
	return t.Item(id)
}
