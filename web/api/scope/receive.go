package scope

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/registry"
)

// isSender reports whether the caller sent an upload. An incoming upload belongs to its sender's
// token name, which no other token ever has. Admins count as senders of all uploads.
func (v sight) isSender(createdBy string) bool {
	return v.seesAllUploads() || v.token.Name != "" && v.token.Name == createdBy
}

func (v sight) seesAllUploads() bool {
	return v.token.Role == registry.RoleAdmin
}

// BeginUpload implements registry.Receiving.
func (s scoped) BeginUpload(ctx context.Context, u registry.NewUpload) (registry.Incoming, error) {
	if !s.sight(ctx).isSender(u.CreatedBy) {
		return registry.Incoming{}, absent("upload", u.ID)
	}
	return s.all.BeginUpload(ctx, u)
}

// IncomingByID implements registry.Uploads.
func (s scoped) IncomingByID(ctx context.Context, id string) (registry.Incoming, error) {
	in, err := s.all.IncomingByID(ctx, id)
	if errors.Is(err, registry.ErrNotFound) || err == nil && !s.sight(ctx).isSender(in.CreatedBy) {
		return registry.Incoming{}, absent("upload", id)
	}
	return in, err
}

// IncomingOf implements registry.Receiving.
func (s scoped) IncomingOf(ctx context.Context, createdBy string) ([]registry.Incoming, error) {
	v := s.sight(ctx)
	switch {
	case v.seesAllUploads():
		return s.all.IncomingOf(ctx, createdBy)
	case v.token.Name == "" || createdBy != "" && createdBy != v.token.Name:
		return nil, nil
	}
	return s.all.IncomingOf(ctx, v.token.Name)
}

// TakeUpload implements registry.Receiving.
func (s scoped) TakeUpload(ctx context.Context, id string, offset int64) (registry.Incoming, error) {
	if in, err := s.IncomingByID(ctx, id); err != nil {
		return in, err
	}
	return s.all.TakeUpload(ctx, id, offset)
}

// SaveUpload implements registry.Receiving.
func (s scoped) SaveUpload(ctx context.Context, p registry.UploadPart) (registry.Incoming, error) {
	if _, err := s.IncomingByID(ctx, p.ID); errors.Is(err, registry.ErrNotFound) {
		return registry.Incoming{}, registry.ErrClaimLost
	} else if err != nil {
		return registry.Incoming{}, err
	}
	return s.all.SaveUpload(ctx, p)
}

// FinishUpload implements registry.Receiving.
func (s scoped) FinishUpload(ctx context.Context, u registry.Upload) error {
	if !s.sight(ctx).isSender(u.CreatedBy) {
		return absent("upload", u.ID)
	}
	return s.all.FinishUpload(ctx, u)
}

// DropUpload implements registry.Receiving. A dropped upload no longer exists for its sender.
func (s scoped) DropUpload(ctx context.Context, id string) error {
	if !s.sight(ctx).seesAllUploads() {
		if _, err := s.IncomingByID(ctx, id); err != nil {
			return err
		}
	}
	return s.all.DropUpload(ctx, id)
}

// StoredUploads implements registry.Receiving.
func (s scoped) StoredUploads(ctx context.Context, createdBy, after string) (registry.Page[registry.Upload], error) {
	v := s.sight(ctx)
	switch {
	case v.seesAllUploads():
		return s.all.StoredUploads(ctx, createdBy, after)
	case v.token.Name == "" || createdBy != "" && createdBy != v.token.Name:
		return registry.Page[registry.Upload]{}, nil
	}
	return s.all.StoredUploads(ctx, v.token.Name, after)
}

// UploadUse implements registry.Receiving.
func (s scoped) UploadUse(ctx context.Context, createdBy string) ([]registry.UploadUse, error) {
	v := s.sight(ctx)
	switch {
	case v.seesAllUploads():
		return s.all.UploadUse(ctx, createdBy)
	case v.token.Name == "" || createdBy != "" && createdBy != v.token.Name:
		return nil, nil
	}
	return s.all.UploadUse(ctx, v.token.Name)
}

// DroppedUploads implements registry.Receiving. Only the sweep of staging needs them.
func (s scoped) DroppedUploads(ctx context.Context) ([]registry.DroppedUpload, error) {
	if !s.sight(ctx).seesAllUploads() {
		return nil, nil
	}
	return s.all.DroppedUploads(ctx)
}

// ForgetUpload implements registry.Receiving.
func (s scoped) ForgetUpload(ctx context.Context, id string) error {
	if !s.sight(ctx).seesAllUploads() {
		return nil
	}
	return s.all.ForgetUpload(ctx, id)
}
