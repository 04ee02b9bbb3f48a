package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
	"github.com/holdfast/holdfast/source"
)

// UploadID names an upload in a path.
type UploadID struct {
	ID string `path:"id" maxLength:"200"`
}

// dropUpload removes an upload that was never submitted: whoever sent it has thought better of it, or was refused. One
// that is a batch's is that batch's. A repeat changes nothing.
func (s *server) dropUpload(ctx context.Context, in *UploadID) (*struct{}, error) {
	done, err := s.inUse.take(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	defer done()
	u, err := s.registry.UploadByID(ctx, in.ID)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, notFound("there is no upload %q", in.ID)
	} else if err != nil {
		return nil, err
	}
	batch, taken, err := s.batchOfUpload(ctx, u)
	if err != nil {
		return nil, err
	}
	if taken {
		if seen, err := s.sees(ctx, batch); err != nil {
			return nil, err
		} else if !seen {
			batch.ID = "of another collection"
		}
		return nil, wire.NewProblem(http.StatusConflict, wire.CodeConflict,
			fmt.Sprintf("upload %s was submitted as batch %s and is removed with it", u.ID, batch.ID))
	}
	if err := s.staging.Delete(ctx, source.UploadKey(u.ID)); err != nil {
		return nil, fmt.Errorf("remove upload %s: %w", u.ID, err)
	}
	s.log.InfoContext(ctx, "upload removed", "upload", u.ID, "actor", actor(ctx))
	return nil, nil
}
