package upload

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/wire"
)

// Limits bound uploads. A limit of 0 means none.
type Limits struct {
	// Full is the share of staging, 0 to 1, that uploads may fill; 0: all of it.
	Full float64
	// TokenBytes and TokenOpen limit the uploads of a depositor's token. TokenBytes below 0 means
	// half of what uploads may fill.
	TokenBytes, TokenOpen int64
	// CollectionBytes and CollectionOpen limit the uploads of a collection whose profile has no
	// limits.
	CollectionBytes, CollectionOpen int64
	// TenantBytes and TenantOpen limit all uploads together.
	TenantBytes, TenantOpen int64
}

// Threshold is the share of staging that uploads may fill.
func (l Limits) Threshold() float64 {
	if l.Full <= 0 {
		return 1
	}
	return l.Full
}

// measured returns the room of staging; bounded is false if it is unlimited.
func (s *Service) measured(ctx context.Context) (space storage.Space, bounded bool, err error) {
	space, err = s.Staging.Space(ctx)
	if errors.Is(err, storage.ErrUnlimited) {
		return storage.Space{}, false, nil
	} else if err != nil {
		return space, false, fmt.Errorf("measure staging: %w", err)
	}
	return space, true, nil
}

// limitsOf returns the limits that apply to an upload now, and its room.
func (s *Service) limitsOf(ctx context.Context, in registry.Incoming) (limits []registry.UploadLimit, room registry.UploadRoom, err error) {
	space, _, err := s.measured(ctx)
	if err != nil {
		return nil, room, err
	}
	l := s.Limits
	room = registry.UploadRoom{Volume: registry.DefaultStaging, Used: space.Used, Total: space.Total, Threshold: l.Threshold()}
	add := func(l registry.UploadLimit) {
		if l.Bytes > 0 || l.Open > 0 {
			limits = append(limits, l)
		}
	}
	if token := access.Of(ctx).Token; token.Role == registry.RoleDepositor && token.Name == in.CreatedBy {
		add(l.token(in.CreatedBy, space.Total))
	}
	if in.Collection != "" {
		c, err := s.All.Collection(ctx, in.Collection)
		if err != nil {
			return nil, room, err
		}
		add(l.Collection(c))
	}
	add(l.tenant())
	return limits, room, nil
}

// token returns the limit of a depositor's token. total is the size of the staging volume in bytes.
func (l Limits) token(name string, total int64) registry.UploadLimit {
	limit := registry.UploadLimit{Scope: registry.UploadsOfToken, Key: name, Bytes: l.TokenBytes, Open: l.TokenOpen}
	if limit.Bytes < 0 {
		limit.Bytes = int64(l.Threshold() * float64(total) / 2)
	}
	return limit
}

// tenant returns the limit of all uploads together.
func (l Limits) tenant() registry.UploadLimit {
	return registry.UploadLimit{Scope: registry.UploadsOfTenant, Bytes: l.TenantBytes, Open: l.TenantOpen}
}

// Collection returns the limit of a collection's uploads.
func (l Limits) Collection(c registry.Collection) registry.UploadLimit {
	limit := registry.UploadLimit{Scope: registry.UploadsOfCollection, Key: c.Mnemonic, Bytes: l.CollectionBytes, Open: l.CollectionOpen}
	if c.Profile.UploadBytes != nil {
		limit.Bytes = *c.Profile.UploadBytes
	}
	if c.Profile.UploadsOpen != nil {
		limit.Open = int64(*c.Profile.UploadsOpen)
	}
	return limit
}

// uploadCollection returns the collection of an upload: the named one, which the caller must be
// allowed to see, or else the only collection of the caller's token.
func (s *Service) uploadCollection(ctx context.Context, named string) (string, error) {
	if named == "" {
		if of := access.Of(ctx).Token.Within(); len(of) == 1 {
			return of[0], nil
		}
		return "", nil
	}
	c, err := lookup.Collection(ctx, s.Registry, named)
	return c.Mnemonic, err
}

// checkRoom refuses an upload that cannot fit before it is sent. size is -1 if unknown.
func (s *Service) checkRoom(ctx context.Context, size int64) error {
	space, bounded, err := s.measured(ctx)
	if err != nil || !bounded {
		return err
	}
	size = max(size, 0)
	if left := int64(s.Limits.Threshold()*float64(space.Total)) - space.Used; size > left || left <= 0 {
		return wire.NewProblem(http.StatusInsufficientStorage, wire.CodeNoSpace, fmt.Sprintf(
			"the upload needs %s, but staging has only %s left for uploads; nothing of this request was stored; "+
				"wait until batches are completed, or ask an operator to free space on the volume", registry.SizeText(size), registry.SizeText(max(left, 0))))
	}
	return nil
}
