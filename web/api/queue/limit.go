package queue

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) limitRoutes() {
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-limits", Method: http.MethodGet, Path: "/queue/limits", Summary: "List the limits on what runs at once"}, s.limits)
	endpoint.Register(s.Server, endpoint.Operation{ID: "set-limit", Method: http.MethodPut, Path: "/queue/limits", Summary: "Limit how many items of a stage, a function or a collection run at once"}, s.setLimit)
	endpoint.Register(s.Server, endpoint.Operation{ID: "remove-limit", Method: http.MethodDelete, Path: "/queue/limits", Summary: "Remove a limit"}, s.removeLimit)
}

func (s *Service) limits(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[registry.Limit]], error) {
	all, err := s.Registry.Limits(ctx)
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(all), nil
}

type setLimitInput struct{ Body wire.LimitRequest }

func (s *Service) setLimit(ctx context.Context, in *setLimitInput) (*endpoint.Output[registry.Limit], error) {
	l := registry.Limit{
		Scope: registry.HoldScope(in.Body.Scope), Key: in.Body.Key, Most: in.Body.Most, Weight: in.Body.Weight, Actor: access.Actor(ctx),
	}
	faults := valid.Text("body.key", l.Key, valid.MaxText)
	if err := l.Check(); err != nil {
		location := "body"
		if field := (*registry.FieldError)(nil); errors.As(err, &field) {
			location += "." + field.Field
		}
		faults = append(faults, wire.Fault{Location: location, Message: err.Error()})
	}
	if err := endpoint.Invalid("the limit was not set", faults...); err != nil {
		return nil, err
	}
	if l.Scope == registry.HoldCollection {
		if _, err := lookup.Collection(ctx, s.Registry, l.Key); err != nil {
			return nil, err
		}
	}
	if err := s.Registry.SetLimit(ctx, l); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "limit set", "scope", string(l.Scope), "key", l.Key, "most", l.Most, "weight", l.Weight, "actor", l.Actor)
	all, err := s.Registry.Limits(ctx)
	if err != nil {
		return nil, err
	}
	for _, other := range all {
		if other.Scope == l.Scope && other.Key == l.Key {
			l = other
		}
	}
	return &endpoint.Output[registry.Limit]{Body: l}, nil
}

type removeLimitInput struct {
	Scope registry.HoldScope `query:"scope" required:"true"`
	Key   string             `query:"key" required:"true" maxLength:"200"`
}

func (s *Service) removeLimit(ctx context.Context, in *removeLimitInput) (*struct{}, error) {
	err := s.Registry.RemoveLimit(ctx, in.Scope, in.Key, access.Actor(ctx))
	if errors.Is(err, registry.ErrNotFound) {
		return nil, endpoint.NotFound("no limit was set for %s %s; list the limits to see the existing ones, and set one in place of one that a program announced", in.Scope, in.Key)
	}
	if err == nil {
		s.Log.InfoContext(ctx, "limit removed", "scope", string(in.Scope), "key", in.Key, "actor", access.Actor(ctx))
	}
	return nil, err
}
