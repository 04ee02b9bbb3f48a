package upload

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// readUpload returns the status of an upload, incoming or complete. One that was removed before it was
// submitted is not found.
func (s *Service) readUpload(ctx context.Context, in *PathID) (*endpoint.Output[wire.UploadStatus], error) {
	on, err := s.Registry.IncomingByID(ctx, in.ID)
	if err == nil {
		return &endpoint.Output[wire.UploadStatus]{Body: statusOf(on)}, nil
	} else if !errors.Is(err, registry.ErrNotFound) {
		return nil, err
	}
	u, err := s.Registry.UploadByID(ctx, in.ID)
	if err != nil {
		return nil, s.uploadMissing(err, in.ID)
	}
	status, err := s.endedStatus(ctx, u)
	if err != nil || status.BatchID != "" {
		return endpoint.Answered(status, err)
	}
	if _, err := s.Staging.Stat(ctx, source.UploadKey(u.ID)); errors.Is(err, storage.ErrNotFound) {
		return nil, s.uploadMissing(registry.ErrNotFound, in.ID)
	} else if err != nil {
		return nil, fmt.Errorf("find upload %s: %w", in.ID, err)
	}
	return endpoint.Answered(status, nil)
}

// List is the input of listUploads.
type List struct {
	All   bool   `query:"all" doc:"Also complete uploads whose bytes are in staging"`
	After string `query:"after" maxLength:"200" doc:"next of the previous page"`
}

// listUploads lists the caller's own uploads, or all uploads for an admin: on the first page the
// incoming ones, then the complete ones.
func (s *Service) listUploads(ctx context.Context, in *List) (*endpoint.Output[registry.Page[wire.UploadStatus]], error) {
	page := registry.Page[wire.UploadStatus]{Rows: []wire.UploadStatus{}}
	if in.After == "" {
		all, err := s.Registry.IncomingOf(ctx, "")
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			page.Rows = append(page.Rows, statusOf(one))
		}
	}
	if !in.All {
		return &endpoint.Output[registry.Page[wire.UploadStatus]]{Body: page}, nil
	}
	stored, err := s.Registry.StoredUploads(ctx, "", in.After)
	if err != nil {
		return nil, err
	}
	page.Next = stored.Next
	for _, u := range stored.Rows {
		_, err := s.Staging.Stat(ctx, source.UploadKey(u.ID))
		if errors.Is(err, storage.ErrNotFound) {
			continue // removed, but not yet recorded as removed
		} else if err != nil {
			return nil, fmt.Errorf("find upload %s: %w", u.ID, err)
		}
		status, err := s.endedStatus(ctx, u)
		if err != nil {
			return nil, err
		}
		page.Rows = append(page.Rows, status)
	}
	return &endpoint.Output[registry.Page[wire.UploadStatus]]{Body: page}, nil
}

// endedStatus returns the status of a complete upload.
func (s *Service) endedStatus(ctx context.Context, u registry.Upload) (wire.UploadStatus, error) {
	status := statusOf(whole(u))
	status.Complete, status.Digest, status.Metadata, status.ExpiresAt = true, &u.Digest, nil, nil
	batches, err := s.Registry.BatchesOf(ctx, u.ID)
	if len(batches) > 0 {
		status.BatchID = batches[0].ID
	}
	return status, err
}

func statusOf(in registry.Incoming) wire.UploadStatus {
	metadata, err := wire.DecodeMetadata(in.Metadata)
	if err != nil || len(metadata) == 0 {
		metadata = nil // it was checked before it was stored
	}
	return wire.UploadStatus{
		ID: in.ID, Filename: in.Filename, SizeBytes: in.SizeBytes, Offset: in.Offset, Metadata: metadata,
		Collection: in.Collection, CreatedBy: in.CreatedBy, CreatedAt: in.CreatedAt, ExpiresAt: &in.ExpiresAt,
	}
}
