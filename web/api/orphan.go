package api

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

type searchOrphansInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"A repeat with the same key answers what the first one did"`
	Body wire.OrphanRequest
}

func (s *server) searchOrphans(ctx context.Context, in *searchOrphansInput) (*output[registry.WorkItem], error) {
	search := registry.OrphanSearch{
		Older: registry.DefaultOrphanAge, Storages: in.Body.Storages, Remove: in.Body.Remove, Reason: in.Body.Reason,
	}
	faults := append(textFault("header.Idempotency-Key", in.Key, maxText), textFault("body.reason", in.Body.Reason, maxText)...)
	if in.Body.OlderHours != nil {
		search.Older = time.Duration(*in.Body.OlderHours) * time.Hour
	}
	if err := search.Check(); err != nil {
		faults = append(faults, wire.Fault{Location: "body.older_hours", Message: err.Error(), Found: fmt.Sprint(*in.Body.OlderHours)})
	}
	if err := invalid("nothing is looked for", faults...); err != nil {
		return nil, err
	}
	it, err := s.registry.SearchOrphans(ctx, registry.OrphanRequest{Search: search, Actor: actor(ctx), IdempotencyKey: in.Key})
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "search for orphans asked for", "item", it.ID, "remove", search.Remove, "actor", actor(ctx))
	return shown(it)
}
