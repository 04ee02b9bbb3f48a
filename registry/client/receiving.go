package client

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// BeginUpload implements registry.Receiving.
func (s *Store) BeginUpload(ctx context.Context, u registry.NewUpload) (registry.Incoming, error) {
	return call[registry.Incoming](ctx, s, "begin-upload", u)
}

// IncomingByID implements registry.Receiving.
func (s *Store) IncomingByID(ctx context.Context, id string) (registry.Incoming, error) {
	return call[registry.Incoming](ctx, s, "incoming", wire.ByID{ID: id})
}

// IncomingOf implements registry.Receiving.
func (s *Store) IncomingOf(ctx context.Context, createdBy string) ([]registry.Incoming, error) {
	return list[registry.Incoming](ctx, s, "incoming-of", wire.Somebody{Name: createdBy})
}

// TakeUpload implements registry.Receiving.
func (s *Store) TakeUpload(ctx context.Context, id string, offset int64) (registry.Incoming, error) {
	return call[registry.Incoming](ctx, s, "take-upload", wire.UploadTaking{ID: id, Offset: offset})
}

// SaveUpload implements registry.Receiving.
func (s *Store) SaveUpload(ctx context.Context, p registry.UploadPart) (registry.Incoming, error) {
	return call[registry.Incoming](ctx, s, "save-upload", p)
}

// FinishUpload implements registry.Receiving.
func (s *Store) FinishUpload(ctx context.Context, u registry.Upload) error {
	return s.tell(ctx, "finish-upload", u)
}

// DropUpload implements registry.Receiving.
func (s *Store) DropUpload(ctx context.Context, id string) error {
	return s.tell(ctx, "drop-upload", wire.ByID{ID: id})
}

// UploadUse implements registry.Receiving.
func (s *Store) UploadUse(ctx context.Context, createdBy string) ([]registry.UploadUse, error) {
	out, err := call[wire.Rows[registry.UploadUse]](ctx, s, "upload-use", wire.Somebody{Name: createdBy})
	return out.Rows, err
}

// StoredUploads implements registry.Receiving.
func (s *Store) StoredUploads(ctx context.Context, createdBy, after string) (registry.Page[registry.Upload], error) {
	return call[registry.Page[registry.Upload]](ctx, s, "stored-uploads", wire.StoredUploads{Name: createdBy, After: after})
}

// DroppedUploads implements registry.Receiving.
func (s *Store) DroppedUploads(ctx context.Context) ([]registry.DroppedUpload, error) {
	return list[registry.DroppedUpload](ctx, s, "dropped-uploads", wire.Nothing{})
}

// ForgetUpload implements registry.Receiving.
func (s *Store) ForgetUpload(ctx context.Context, id string) error {
	return s.tell(ctx, "forget-upload", wire.ByID{ID: id})
}
