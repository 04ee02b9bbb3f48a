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

// Limits bound uploads. A limit of 0 is none.
type Limits struct {
	// Full is the share of staging, 0 to 1, up to which uploads fill it; 0: all of it.
	Full float64
	// Token is what the uploads of a depositor's token come to. TokenBytes below 0 is half of what
	// uploads may fill.
	TokenBytes, TokenOpen int64
	// Collection is what those for one collection come to, unless its profile says something else.
	CollectionBytes, CollectionOpen int64
	// Tenant is what all uploads come to.
	TenantBytes, TenantOpen int64
}

// Threshold is the share of staging up to which uploads fill it.
func (l Limits) Threshold() float64 {
	if l.Full <= 0 {
		return 1
	}
	return l.Full
}

// measured is the room of staging; bounded is false where there is no end of it.
func (s *Service) measured(ctx context.Context) (space storage.Space, bounded bool, err error) {
	space, err = s.Staging.Space(ctx)
	if errors.Is(err, storage.ErrUnlimited) {
		return storage.Space{}, false, nil
	} else if err != nil {
		return space, false, fmt.Errorf("measure staging: %w", err)
	}
	return space, true, nil
}

// limited are the limits that an upload obeys at this moment, and the room that it has.
func (s *Service) limited(ctx context.Context, in registry.Incoming) (limits []registry.UploadLimit, room registry.UploadRoom, err error) {
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

// token is what the uploads of a depositor's token come to, with staging on a volume of total
// bytes.
func (l Limits) token(name string, total int64) registry.UploadLimit {
	limit := registry.UploadLimit{Scope: registry.UploadsOfToken, Key: name, Bytes: l.TokenBytes, Open: l.TokenOpen}
	if limit.Bytes < 0 {
		limit.Bytes = int64(l.Threshold() * float64(total) / 2)
	}
	return limit
}

// tenant is what all uploads come to.
func (l Limits) tenant() registry.UploadLimit {
	return registry.UploadLimit{Scope: registry.UploadsOfTenant, Bytes: l.TenantBytes, Open: l.TenantOpen}
}

// Collection is what the uploads for a collection come to.
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

// uploadCollection is the collection that an upload is meant for: the one that it names, which the
// asker must see, else the only one that the asker's token is good for.
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

// roomFor refuses what cannot fit before it is sent. size is -1 when it is not known.
func (s *Service) roomFor(ctx context.Context, size int64) error {
	space, bounded, err := s.measured(ctx)
	if err != nil || !bounded {
		return err
	}
	size = max(size, 0)
	if left := int64(s.Limits.Threshold()*float64(space.Total)) - space.Used; size > left || left <= 0 {
		return wire.NewProblem(http.StatusInsufficientStorage, wire.CodeNoSpace, fmt.Sprintf(
			"the upload has %s to come and staging has %s left for uploads; wait until batches are completed, or have an operator free space on the volume; "+
				"nothing of this request was kept", registry.SizeText(size), registry.SizeText(max(left, 0))))
	}
	return nil
}
