package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

type searchOrphansInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"A repeat with the same key gets the first one's answer"`
	Body wire.OrphanRequest
}

func (s *Service) searchOrphans(ctx context.Context, in *searchOrphansInput) (*endpoint.Output[registry.WorkItem], error) {
	search := registry.OrphanSearch{
		Older: registry.DefaultOrphanAge, Storages: in.Body.Storages, Remove: in.Body.Remove, Reason: in.Body.Reason,
	}
	faults := append(valid.Text("header.Idempotency-Key", in.Key, valid.MaxText), valid.Text("body.reason", in.Body.Reason, valid.MaxText)...)
	if in.Body.OlderHours != nil {
		search.Older = time.Duration(*in.Body.OlderHours) * time.Hour
	}
	if err := search.Check(); err != nil {
		faults = append(faults, wire.Fault{Location: "body.older_hours", Message: err.Error(), Found: fmt.Sprint(*in.Body.OlderHours)})
	}
	if err := endpoint.Invalid("the search was not started", faults...); err != nil {
		return nil, err
	}
	it, err := s.Registry.SearchOrphans(ctx, registry.OrphanRequest{Search: search, Actor: access.Actor(ctx), IdempotencyKey: in.Key})
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "search for orphaned data enqueued", "item", it.ID, "remove", search.Remove, "actor", access.Actor(ctx))
	return endpoint.Item(it)
}
