package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// UploadID names an upload in a path.
type UploadID struct {
	ID string `path:"id" maxLength:"200"`
}

// UploadRemoval names an upload that shall go. Who speaks tus says so.
type UploadRemoval struct {
	UploadID
	Version string `header:"Tus-Resumable"`
}

// uploadRemoved answers it.
type uploadRemoved struct {
	Version string `header:"Tus-Resumable"`
}

// dropUpload removes an upload that was never submitted: whoever sends or sent it has thought better of it, or was refused.
// One that is a batch's is that batch's. A repeat changes nothing.
func (s *server) dropUpload(ctx context.Context, in *UploadRemoval) (*uploadRemoved, error) {
	if in.Version != "" && in.Version != wire.TusVersion {
		return nil, otherVersion(in.Version)
	}
	answer := &uploadRemoved{Version: wire.TusVersion}
	if err := s.registry.DropUpload(ctx, in.ID); err == nil {
		// Nothing can be saved any more. Whoever sends is cut off, so that nobody writes what is removed.
		s.receivers.cut(in.ID)
		done, err := s.inUse.take(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		defer done()
		s.receivers.drop(in.ID)
		s.log.InfoContext(ctx, "upload given up", "upload", in.ID, "actor", actor(ctx))
		return answer, s.removeBytes(ctx, in.ID)
	} else if !errors.Is(err, registry.ErrNotFound) {
		return nil, err
	}
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
	if err := s.removeRetired(ctx, u.ID); err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "upload removed", "upload", u.ID, "actor", actor(ctx))
	return answer, nil
}
