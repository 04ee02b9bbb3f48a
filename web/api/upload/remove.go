package upload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// PathID names an upload in a path.
type PathID struct {
	ID string `path:"id" maxLength:"200"`
}

// Removal names an upload that shall go. Who speaks tus says so.
type Removal struct {
	PathID
	Version string `header:"Tus-Resumable"`
}

// uploadRemoved answers it.
type uploadRemoved struct {
	Version string `header:"Tus-Resumable"`
}

// dropUpload removes an upload that was never submitted: whoever sends or sent it has thought
// better of it, or was refused. One that is a batch's is that batch's. A repeat changes nothing.
func (s *Service) dropUpload(ctx context.Context, in *Removal) (*uploadRemoved, error) {
	if in.Version != "" && in.Version != wire.TusVersion {
		return nil, otherVersion(in.Version)
	}
	answer := &uploadRemoved{Version: wire.TusVersion}
	if err := s.Registry.DropUpload(ctx, in.ID); err == nil {
		// Nothing can be saved any more. Whoever sends is cut off, so that nobody writes what is
		// removed.
		s.receivers.cut(in.ID)
		done, err := s.Take(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		defer done()
		s.receivers.drop(in.ID)
		s.Log.InfoContext(ctx, "upload given up", "upload", in.ID, "actor", access.Actor(ctx))
		return answer, s.removeBytes(ctx, in.ID)
	} else if !errors.Is(err, registry.ErrNotFound) {
		return nil, err
	}
	done, err := s.Take(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	defer done()
	u, err := s.Registry.UploadByID(ctx, in.ID)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, endpoint.NotFound("there is no upload %q", in.ID)
	} else if err != nil {
		return nil, err
	}
	batch, taken, err := s.BatchOf(ctx, u)
	if err != nil {
		return nil, err
	}
	if taken {
		if seen, err := s.Sees(ctx, batch); err != nil {
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
	s.Log.InfoContext(ctx, "upload removed", "upload", u.ID, "actor", access.Actor(ctx))
	return answer, nil
}

// BatchOf looks for the newest batch that an upload was submitted as, also one that the asker may
// not see: an upload that is in use must stay.
func (s *Service) BatchOf(ctx context.Context, u registry.Upload) (registry.WorkItem, bool, error) {
	all, err := s.All.BatchesOf(ctx, u.ID)
	if err != nil || len(all) == 0 {
		return registry.WorkItem{}, false, err
	}
	return all[0], true, nil
}

// Remove removes an upload unless it is, or may be, a batch's: bytes too many are a nuisance, bytes
// too few a loss.
func (s *Service) Remove(ctx context.Context, u registry.Upload) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	_, taken, err := s.BatchOf(ctx, u)
	if err == nil && !taken {
		err = s.removeRetired(ctx, u.ID)
	}
	if err != nil {
		s.Log.WarnContext(ctx, "upload that nobody needs was not removed", "upload", u.ID, "err", err)
	}
}

// Sees says whether the asker may be told of an item.
func (s *Service) Sees(ctx context.Context, it registry.WorkItem) (bool, error) {
	_, err := s.Registry.Item(ctx, it.ID)
	if errors.Is(err, registry.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// cleanupTime bounds what is done after a request is over.
const cleanupTime = 30 * time.Second
