package upload

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
)

// Use returns the room and limits of the uploads of the caller's token; for an admin, those of all
// tokens and collections.
func (s *Service) Use(ctx context.Context) ([]registry.UploadUse, error) {
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
