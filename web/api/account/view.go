package account

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) viewRoutes() {
	const path = "/views/{id}"
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-views", Method: http.MethodGet, Path: "/views", Summary: "List your saved views of items, and the shared ones of others"}, s.views)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-view", Method: http.MethodGet, Path: path, Summary: "Show a saved view"}, s.view)
	endpoint.Register(s.Server, endpoint.Operation{ID: "add-view", Method: http.MethodPost, Path: "/views", Status: http.StatusCreated, Refuses: []int{http.StatusConflict}, Summary: "Save a view of items under a new name"}, s.addView)
	endpoint.Register(s.Server, endpoint.Operation{ID: "edit-view", Method: http.MethodPut, Path: path, Summary: "Rename, share or replace one of your views"}, s.editView)
	endpoint.Register(s.Server, endpoint.Operation{ID: "remove-view", Method: http.MethodDelete, Path: path, Summary: "Remove one of your views or, as an admin, a shared one"}, s.removeView)
}

// ViewID names a view in a path.
type ViewID struct {
	ID string `path:"id" maxLength:"200"`
}

func (s *Service) views(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[registry.View]], error) {
	all, err := s.Registry.Views(ctx, access.Actor(ctx))
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(all), nil
}

func (s *Service) view(ctx context.Context, in *ViewID) (*endpoint.Output[registry.View], error) {
	return endpoint.Answered(s.Registry.View(ctx, in.ID))
}

// viewOf returns the view of a request, with the query in its normal form.
func (s *Service) viewOf(ctx context.Context, r wire.ViewRequest) (registry.View, error) {
	q, faults := valid.Query("body.query", r.Query)
	faults = append(faults, valid.Text("body.name", r.Name, valid.MaxText)...)
	if err := endpoint.Invalid("the view was not saved", faults...); err != nil {
		return registry.View{}, err
	}
	if r.Shared {
		if err := s.Permit(ctx, access.ShareView); err != nil {
			return registry.View{}, err
		}
	}
	return registry.View{
		Name: strings.TrimSpace(r.Name), Owner: access.Actor(ctx), Shared: r.Shared, Query: q.String(), Columns: r.Columns, Oldest: r.Oldest, Version: r.Version,
	}, nil
}

type addViewInput struct{ Body wire.ViewRequest }

func (s *Service) addView(ctx context.Context, in *addViewInput) (*endpoint.Output[registry.View], error) {
	v, err := s.viewOf(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	if v, err = s.Registry.AddView(ctx, v); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "view saved", "view", v.ID, "shared", v.Shared, "actor", v.Owner)
	return &endpoint.Output[registry.View]{Body: v}, nil
}

type editViewInput struct {
	ViewID
	Body wire.ViewRequest
}

func (s *Service) editView(ctx context.Context, in *editViewInput) (*endpoint.Output[registry.View], error) {
	have, err := s.Registry.View(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if have.Owner != access.Actor(ctx) {
		return nil, notOwner(have)
	}
	v, err := s.viewOf(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	v.ID = have.ID
	if v, err = s.Registry.EditView(ctx, v); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "view changed", "view", v.ID, "shared", v.Shared, "actor", v.Owner)
	return &endpoint.Output[registry.View]{Body: v}, nil
}

func notOwner(v registry.View) error {
	return wire.NewProblem(http.StatusForbidden, wire.CodeForbidden, fmt.Sprintf("view %q belongs to %s; save one of your own", v.Name, v.Owner))
}

func (s *Service) removeView(ctx context.Context, in *ViewID) (*struct{}, error) {
	have, err := s.Registry.View(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if caller := access.Of(ctx).Token; have.Owner != caller.Name && caller.Role != registry.RoleAdmin {
		return nil, notOwner(have)
	}
	if err := s.Registry.RemoveView(ctx, have.ID, access.Actor(ctx)); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "view removed", "view", have.ID, "owner", have.Owner, "actor", access.Actor(ctx))
	return nil, nil //nolint:nilnil // an answer without a body
}
