package api

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Uploads are what the pages show of uploads, and how they remove one, for whoever has logged in. The
// contexts must be those that [New]'s handler makes.
type Uploads struct{}

// MaySee says whether who asks may list uploads at all.
func (Uploads) MaySee(ctx context.Context) bool {
	s := callOf(ctx).server
	return s != nil && s.permit(ctx, "list-uploads") == nil
}

// List returns a page of the asker's own uploads, everybody's for an admin: those on their way first.
func (Uploads) List(ctx context.Context, after string) (registry.Page[wire.UploadStatus], error) {
	s := callOf(ctx).server
	if err := s.permit(ctx, "list-uploads"); err != nil {
		return registry.Page[wire.UploadStatus]{}, err
	}
	out, err := s.listUploads(ctx, &UploadList{All: true, After: after})
	if err != nil {
		return registry.Page[wire.UploadStatus]{}, err
	}
	return out.Body, nil
}

// Upload returns one of them. registry.ErrNotFound when there is none.
func (Uploads) Upload(ctx context.Context, id string) (wire.UploadStatus, error) {
	s := callOf(ctx).server
	if err := s.permit(ctx, "read-upload"); err != nil {
		return wire.UploadStatus{}, err
	}
	out, err := s.readUpload(ctx, &UploadID{id})
	if err != nil {
		return wire.UploadStatus{}, err
	}
	return out.Body, nil
}

// Remove removes one of them. The error is a *wire.Problem with status 409 when it is a batch's.
func (Uploads) Remove(ctx context.Context, id string) error {
	s := callOf(ctx).server
	if err := s.permit(ctx, "remove-upload"); err != nil {
		return err
	}
	_, err := s.dropUpload(ctx, &UploadRemoval{UploadID: UploadID{id}})
	return err
}

// Use returns what the uploads of the asker's token come to and what they may come to; for an admin
// those of all tokens and collections.
func (Uploads) Use(ctx context.Context) ([]registry.UploadUse, error) {
	s := callOf(ctx).server
	if err := s.permit(ctx, "list-uploads"); err != nil {
		return nil, err
	}
	used, err := s.registry.UploadUse(ctx, "")
	if err != nil {
		return nil, err
	}
	limits, err := s.uploadLimits(ctx)
	if err != nil {
		return nil, err
	}
	for i := range used {
		l := limits[registry.UploadLimit{Scope: used[i].Scope, Key: used[i].Key}]
		used[i].Bytes, used[i].Open = l.Bytes, l.Open
	}
	return used, nil
}

// uploadLimits are the limits of the tenant, and of the tokens and collections that the asker sees, by
// their scopes.
func (s *server) uploadLimits(ctx context.Context) (map[registry.UploadLimit]registry.UploadLimit, error) {
	space, _, err := s.measured(ctx)
	if err != nil {
		return nil, err
	}
	limits := map[registry.UploadLimit]registry.UploadLimit{}
	add := func(l registry.UploadLimit) { limits[registry.UploadLimit{Scope: l.Scope, Key: l.Key}] = l }
	add(s.uploads.tenant())
	tokens := []registry.Token{callOf(ctx).token}
	if tokens[0].Role == registry.RoleAdmin {
		if tokens, err = s.all.Tokens(ctx); err != nil {
			return nil, fmt.Errorf("look up tokens: %w", err)
		}
	}
	for _, t := range tokens {
		if t.Role == registry.RoleDepositor {
			add(s.uploads.token(t.Name, space.Total))
		}
	}
	collections, err := s.registry.Collections(ctx)
	for _, c := range collections {
		add(s.uploads.collection(c))
	}
	return limits, err
}
