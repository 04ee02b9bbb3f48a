package api

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// readUpload tells what is known of an upload, on its way or ended.
func (s *server) readUpload(ctx context.Context, in *UploadID) (*output[wire.UploadStatus], error) {
	on, err := s.registry.IncomingByID(ctx, in.ID)
	if err == nil {
		return &output[wire.UploadStatus]{Body: statusOf(on)}, nil
	} else if !errors.Is(err, registry.ErrNotFound) {
		return nil, err
	}
	u, err := s.registry.UploadByID(ctx, in.ID)
	if err != nil {
		return nil, s.noUpload(err, in.ID)
	}
	status := statusOf(whole(u))
	status.Complete, status.Digest, status.Metadata, status.ExpiresAt = true, &u.Digest, nil, nil
	return &output[wire.UploadStatus]{Body: status}, nil
}

// listUploads lists the asker's own uploads that are on their way; everybody's for an admin.
func (s *server) listUploads(ctx context.Context, _ *struct{}) (*output[registry.Page[wire.UploadStatus]], error) {
	all, err := s.registry.IncomingOf(ctx, "")
	if err != nil {
		return nil, err
	}
	rows := make([]wire.UploadStatus, len(all))
	for i, in := range all {
		rows[i] = statusOf(in)
	}
	return listed(rows), nil
}

func statusOf(in registry.Incoming) wire.UploadStatus {
	metadata, err := wire.DecodeMetadata(in.Metadata)
	if err != nil || len(metadata) == 0 {
		metadata = nil // it was checked before it was kept
	}
	return wire.UploadStatus{
		ID: in.ID, Filename: in.Filename, SizeBytes: in.SizeBytes, Offset: in.Offset, Metadata: metadata,
		CreatedBy: in.CreatedBy, CreatedAt: in.CreatedAt, ExpiresAt: &in.ExpiresAt,
	}
}
