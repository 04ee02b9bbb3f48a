package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) deletionRoutes(api huma.API) {
	register(s, api, operation{
		id: "list-deletions", method: http.MethodGet, path: "/deletions",
		summary: "List the deletions that wait for another person to approve them, those that were asked for first come first",
	}, s.listDeletions)
	const path = "/objects/{id}/deletion"
	register(s, api, operation{id: "ask-deletion", method: http.MethodPost, path: path, summary: "Ask to delete an object, which somebody else must approve"}, s.askDeletion)
	register(s, api, operation{id: "approve-deletion", method: http.MethodPost, path: path + "/approval", summary: "Approve that an object is deleted, as another person has asked"}, s.approveDeletion)
	register(s, api, operation{id: "withdraw-deletion", method: http.MethodDelete, path: path, summary: "Ask no longer to delete an object"}, s.withdrawDeletion)
}

func (s *server) listDeletions(ctx context.Context, in *Paging) (*output[registry.Page[registry.Deletion]], error) {
	rows, err := s.registry.Deletions(ctx, registry.DeletionQuery{After: in.After, Limit: in.size()})
	if err != nil {
		return nil, in.badCursor(err)
	}
	return page(rows), nil
}

type deletionInput struct {
	ObjectID
	Body wire.DeletionRequest
}

func (s *server) askDeletion(ctx context.Context, in *deletionInput) (*output[registry.Deletion], error) {
	reason := strings.TrimSpace(in.Body.Reason)
	if reason == "" {
		return nil, invalid("nothing was asked", wire.Fault{Location: "body.reason", Message: "missing: why the object is to be deleted"})
	}
	o, err := s.known(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.decided(ctx, "deletion asked for")(s.registry.AskDeletion(ctx, o.ID, reason, actor(ctx)))
}

func (s *server) approveDeletion(ctx context.Context, in *ObjectID) (*output[registry.Deletion], error) {
	o, err := s.known(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.decided(ctx, "deletion approved")(s.registry.ApproveDeletion(ctx, o.ID, actor(ctx)))
}

func (s *server) withdrawDeletion(ctx context.Context, in *ObjectID) (*output[registry.Deletion], error) {
	o, err := s.known(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.decided(ctx, "deletion withdrawn")(s.registry.WithdrawDeletion(ctx, o.ID, actor(ctx)))
}

func (s *server) decided(ctx context.Context, what string) func(registry.Deletion, error) (*output[registry.Deletion], error) {
	return func(d registry.Deletion, err error) (*output[registry.Deletion], error) {
		if err != nil {
			return nil, err
		}
		s.log.InfoContext(ctx, "object decided on", "what", what, "object", d.ObjectID, "item", d.ItemID, "actor", actor(ctx))
		return &output[registry.Deletion]{Body: d}, nil
	}
}
