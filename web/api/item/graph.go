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
	endpoint.Register(s.Server, endpoint.Operation{ID: "graph-nodes", Method: http.MethodGet, Path: "/graphs/{id}/nodes", Summary: "List a graph's nodes by key, with what they require and how far they are"}, s.graphNodes)
	endpoint.Register(s.Server, endpoint.Operation{ID: "item-around", Method: http.MethodGet, Path: "/items/{id}/around", Summary: "List what an item waits for, and what waits for it, directly or not"}, s.around)
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

type graphNodesInput struct {
	lookup.ItemID
	After string `query:"after" maxLength:"200" doc:"next of the previous page"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" doc:"Nodes per page; 50 when absent"`
}

func (s *Service) graphNodes(ctx context.Context, in *graphNodesInput) (*endpoint.Output[registry.GraphPart], error) {
	return partOf(s.Registry.GraphNodes(ctx, in.ID, in.After, in.Limit))
}

type aroundInput struct {
	lookup.ItemID
	Limit int `query:"limit" minimum:"1" maximum:"500" doc:"Items in each direction, the nearest first; 50 when absent"`
}

func (s *Service) around(ctx context.Context, in *aroundInput) (*endpoint.Output[registry.GraphPart], error) {
	return partOf(s.Registry.Around(ctx, in.ID, in.Limit))
}

func partOf(p registry.GraphPart, err error) (*endpoint.Output[registry.GraphPart], error) {
	if err != nil {
		return nil, err
	}
	p.Nodes, p.Edges = append([]registry.GraphNode{}, p.Nodes...), append([]registry.Edge{}, p.Edges...) // never null
	return &endpoint.Output[registry.GraphPart]{Body: p}, nil
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
