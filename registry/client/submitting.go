package client

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// RetireUpload implements registry.Submitting.
func (s *Store) RetireUpload(ctx context.Context, uploadID, itself string) (bool, error) {
	return call[bool](ctx, s, "retire-upload", wire.Retirement{UploadID: uploadID, Itself: itself})
}

// BatchesOf implements registry.Submitting.
func (s *Store) BatchesOf(ctx context.Context, uploadID string) ([]registry.WorkItem, error) {
	out, err := call[wire.Rows[registry.WorkItem]](ctx, s, "batches-of", wire.ByID{ID: uploadID})
	return out.Rows, err
}

// UploadByID implements registry.Submitting.
func (s *Store) UploadByID(ctx context.Context, id string) (registry.Upload, error) {
	return call[registry.Upload](ctx, s, "upload", wire.ByID{ID: id})
}

// Submit implements registry.Submitting.
func (s *Store) Submit(ctx context.Context, sub registry.Submission) (registry.Receipt, error) {
	if wrong := sub.Problems(); len(wrong) > 0 {
		return registry.Receipt{}, fmt.Errorf("submit to collection %s: %w", sub.Collection, wrong[0])
	}
	if err := checkKeys("submit", sub.Collection, sub.IdempotencyKey); err != nil {
		return registry.Receipt{}, err
	}
	return call[registry.Receipt](ctx, s, "submit", sub)
}

// Prepare implements registry.Submitting.
func (s *Store) Prepare(ctx context.Context, g registry.Graph) (registry.PreparedGraph, error) {
	// What is no text would become another one on its way.
	if wrong := g.Problems(); len(wrong) > 0 {
		return registry.PreparedGraph{}, fmt.Errorf("prepare graph: %w", wrong[0])
	}
	keys := []string{g.IdempotencyKey}
	for _, n := range g.Nodes {
		keys = append(keys, n.Submission.Collection)
	}
	if err := checkKeys("prepare graph", keys...); err != nil {
		return registry.PreparedGraph{}, err
	}
	return call[registry.PreparedGraph](ctx, s, "prepare", g)
}

// Seal implements registry.Submitting.
func (s *Store) Seal(ctx context.Context, graphID, actor string) error {
	return s.tell(ctx, "seal", wire.SealRequest{GraphID: graphID, Actor: actor})
}
