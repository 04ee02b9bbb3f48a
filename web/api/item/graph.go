package item

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/redact"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) graphRoutes() {
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-graph", Method: http.MethodGet, Path: "/graphs/{id}", Summary: "Show a graph's items and what they require"}, s.graph)
	endpoint.Register(s.Server, endpoint.Operation{ID: "item-edges", Method: http.MethodGet, Path: "/items/{id}/edges", Summary: "Show what an item requires and what requires it"}, s.edges)
}

func (s *Service) graph(ctx context.Context, in *lookup.ItemID) (*endpoint.Output[registry.GraphView], error) {
	g, err := s.Registry.Graph(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	for i := range g.Items {
		if err := redact.Item(&g.Items[i]); err != nil {
			return nil, err
		}
	}
	g.Items, g.Edges = append([]registry.WorkItem{}, g.Items...), append([]registry.Edge{}, g.Edges...) // never null
	return &endpoint.Output[registry.GraphView]{Body: g}, nil
}

func (s *Service) edges(ctx context.Context, in *lookup.ItemID) (*endpoint.Output[wire.EdgesResponse], error) {
	requires, required, err := s.Registry.Edges(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &endpoint.Output[wire.EdgesResponse]{Body: wire.EdgesResponse{
		Requires: append([]registry.Edge{}, requires...), RequiredBy: append([]registry.Edge{}, required...),
	}}, nil
}
