package client

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// AddUpload implements registry.Submitting.
func (s *Store) AddUpload(ctx context.Context, u registry.Upload) error {
	return s.tell(ctx, "add-upload", u)
}

// UploadByID implements registry.Submitting.
func (s *Store) UploadByID(ctx context.Context, id string) (registry.Upload, error) {
	return call[registry.Upload](ctx, s, "upload", wire.ByID{ID: id})
}

// Submit implements registry.Submitting.
func (s *Store) Submit(ctx context.Context, sub registry.Submission) (registry.Receipt, error) {
	return call[registry.Receipt](ctx, s, "submit", sub)
}

// Prepare implements registry.Submitting.
func (s *Store) Prepare(ctx context.Context, g registry.Graph) (registry.PreparedGraph, error) {
	return call[registry.PreparedGraph](ctx, s, "prepare", g)
}

// Seal implements registry.Submitting.
func (s *Store) Seal(ctx context.Context, graphID, actor string) error {
	return s.tell(ctx, "seal", wire.SealRequest{GraphID: graphID, Actor: actor})
}
