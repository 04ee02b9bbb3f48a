package item

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

type countInput struct {
	endpoint.Matching
}

func (s *Service) countItems(ctx context.Context, in *countInput) (*endpoint.Output[wire.ItemCounts], error) {
	q, faults := in.Query()
	if err := endpoint.Invalid("the items were not counted", faults...); err != nil {
		return nil, err
	}
	states, err := s.Registry.CountItems(ctx, registry.ItemQuery{Match: q})
	if err != nil {
		return nil, err
	}
	counts := wire.ItemCounts{States: states}
	for _, n := range states {
		counts.Total += n
	}
	return &endpoint.Output[wire.ItemCounts]{Body: counts}, nil
}
