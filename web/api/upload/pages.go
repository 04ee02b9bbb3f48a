package upload

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/wire"
)

// Pages lists and removes uploads for the pages, on behalf of the caller in each call's context
// (web/api/access).
type Pages struct{ uploads *Service }

// Pages returns the uploads for the pages.
func (s *Service) Pages() Pages { return Pages{s} }

// MaySee reports whether the caller may list uploads at all.
func (p Pages) MaySee(ctx context.Context) bool {
	return p.uploads.Permit(ctx, "list-uploads") == nil
}

// List returns a page of the caller's own uploads, or of all uploads for an admin: incoming ones
// first.
func (p Pages) List(ctx context.Context, after string) (registry.Page[wire.UploadStatus], error) {
	s := p.uploads
	if err := s.Permit(ctx, "list-uploads"); err != nil {
		return registry.Page[wire.UploadStatus]{}, err
	}
	out, err := s.listUploads(ctx, &List{All: true, After: after})
	if err != nil {
		return registry.Page[wire.UploadStatus]{}, err
	}
	return out.Body, nil
}

// Upload returns one of these uploads; registry.ErrNotFound if there is none.
func (p Pages) Upload(ctx context.Context, id string) (wire.UploadStatus, error) {
	s := p.uploads
	if err := s.Permit(ctx, "read-upload"); err != nil {
		return wire.UploadStatus{}, err
	}
	out, err := s.readUpload(ctx, &PathID{id})
	if err != nil {
		return wire.UploadStatus{}, err
	}
	return out.Body, nil
}

// Remove removes one of these uploads. It returns a *wire.Problem with status 409 if a batch uses
// the upload.
func (p Pages) Remove(ctx context.Context, id string) error {
	s := p.uploads
	if err := s.Permit(ctx, "remove-upload"); err != nil {
		return err
	}
	_, err := s.dropUpload(ctx, &Removal{PathID: PathID{id}})
	return err
}

// Use returns the room and limits of the uploads of the caller's token; for an admin, those of all
// tokens and collections.
func (p Pages) Use(ctx context.Context) ([]registry.UploadUse, error) {
	s := p.uploads
	if err := s.Permit(ctx, "list-uploads"); err != nil {
		return nil, err
	}
	used, err := s.Registry.UploadUse(ctx, "")
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

// uploadLimits returns the limits of the tenant, and of the tokens and collections that the caller
// sees, by scope and key.
func (s *Service) uploadLimits(ctx context.Context) (map[registry.UploadLimit]registry.UploadLimit, error) {
	space, _, err := s.measured(ctx)
	if err != nil {
		return nil, err
	}
	limits := map[registry.UploadLimit]registry.UploadLimit{}
	add := func(l registry.UploadLimit) { limits[registry.UploadLimit{Scope: l.Scope, Key: l.Key}] = l }
	add(s.Limits.tenant())
	tokens := []registry.Token{access.Of(ctx).Token}
	if tokens[0].Role == registry.RoleAdmin {
		if tokens, err = s.All.Tokens(ctx); err != nil {
			return nil, fmt.Errorf("look up tokens: %w", err)
		}
	}
	for _, t := range tokens {
		if t.Role == registry.RoleDepositor {
			add(s.Limits.token(t.Name, space.Total))
		}
	}
	collections, err := s.Registry.Collections(ctx)
	for _, c := range collections {
		add(s.Limits.Collection(c))
	}
	return limits, err
}
