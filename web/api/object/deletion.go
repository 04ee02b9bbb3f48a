package object

import (
	"context"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) deletionRoutes() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "list-deletions", Method: http.MethodGet, Path: "/deletions",
		Summary: "List the deletions that wait for another person's approval, oldest request first",
	}, s.listDeletions)
	const path = "/objects/{id}/deletion"
	endpoint.Register(s.Server, endpoint.Operation{ID: "ask-deletion", Method: http.MethodPost, Path: path, Summary: "Request the deletion of an object; another person must approve it"}, s.askDeletion)
	endpoint.Register(s.Server, endpoint.Operation{ID: "approve-deletion", Method: http.MethodPost, Path: path + "/approval", Summary: "Approve another person's request to delete an object"}, s.approveDeletion)
	endpoint.Register(s.Server, endpoint.Operation{ID: "withdraw-deletion", Method: http.MethodDelete, Path: path, Summary: "Withdraw or decline the deletion of an object"}, s.withdrawDeletion)
}

func (s *Service) listDeletions(ctx context.Context, in *endpoint.Paging) (*endpoint.Output[registry.Page[registry.Deletion]], error) {
	rows, err := s.Registry.Deletions(ctx, registry.DeletionQuery{After: in.After, Limit: in.Size()})
	if err != nil {
		return nil, in.BadCursor(err)
	}
	return endpoint.Page(rows), nil
}

type deletionInput struct {
	lookup.ObjectID
	Body wire.DeletionRequest
}

func (s *Service) askDeletion(ctx context.Context, in *deletionInput) (*endpoint.Output[registry.Deletion], error) {
	reason := strings.TrimSpace(in.Body.Reason)
	if reason == "" {
		return nil, endpoint.Invalid("no deletion was requested", wire.Fault{Location: "body.reason", Message: "missing: give the reason; it is kept permanently"})
	}
	o, err := lookup.Object(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	return s.decided(ctx, "deletion requested")(s.Registry.AskDeletion(ctx, o.ID, reason, access.Actor(ctx)))
}

func (s *Service) approveDeletion(ctx context.Context, in *lookup.ObjectID) (*endpoint.Output[registry.Deletion], error) {
	o, err := lookup.Object(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	return s.decided(ctx, "deletion approved")(s.Registry.ApproveDeletion(ctx, o.ID, access.Actor(ctx)))
}

func (s *Service) withdrawDeletion(ctx context.Context, in *lookup.ObjectID) (*endpoint.Output[registry.Deletion], error) {
	o, err := lookup.Object(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	return s.decided(ctx, "deletion withdrawn")(s.Registry.WithdrawDeletion(ctx, o.ID, access.Actor(ctx)))
}

func (s *Service) decided(ctx context.Context, what string) func(registry.Deletion, error) (*endpoint.Output[registry.Deletion], error) {
	return func(d registry.Deletion, err error) (*endpoint.Output[registry.Deletion], error) {
		if err != nil {
			return nil, err
		}
		s.Log.InfoContext(ctx, "object decided on", "what", what, "object", d.ObjectID, "item", d.ItemID, "actor", access.Actor(ctx))
		return &endpoint.Output[registry.Deletion]{Body: d}, nil
	}
}
