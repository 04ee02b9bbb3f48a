package item

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

type countInput struct {
	endpoint.Matching

	Most int `query:"most" minimum:"1" doc:"Count no more items than this, which is much faster where many match"`
}

func (s *Service) countItems(ctx context.Context, in *countInput) (*endpoint.Output[wire.ItemCounts], error) {
	q, faults := in.Query()
	if err := endpoint.Invalid("the items were not counted", faults...); err != nil {
		return nil, err
	}
	states, err := s.Registry.CountItems(ctx, registry.ItemQuery{Match: q, Most: in.Most})
	if err != nil {
		return nil, err
	}
	counts := wire.ItemCounts{States: states}
	for _, n := range states {
		counts.Total += n
	}
	counts.More = in.Most > 0 && counts.Total >= int64(in.Most)
	return &endpoint.Output[wire.ItemCounts]{Body: counts}, nil
}
