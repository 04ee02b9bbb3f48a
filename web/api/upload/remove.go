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

// Removal names an upload to remove. tus clients send their version.
type Removal struct {
	PathID
	Version string `header:"Tus-Resumable"`
}

// uploadRemoved is the answer to a Removal.
type uploadRemoved struct {
	Version string `header:"Tus-Resumable"`
}

// dropUpload removes an upload that was never submitted. It refuses an upload that a batch uses. A
// repeat changes nothing.
func (s *Service) dropUpload(ctx context.Context, in *Removal) (*uploadRemoved, error) {
	if in.Version != "" && in.Version != wire.TusVersion {
		return nil, otherVersion(in.Version)
	}
	answer := &uploadRemoved{Version: wire.TusVersion}
	if err := s.Registry.DropUpload(ctx, in.ID); err == nil {
		// No more bytes can be saved. Disconnect the sender, so that nobody writes while the bytes
		// are removed.
		s.receivers.cut(in.ID)
		done, err := s.Take(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		defer done()
		s.receivers.drop(in.ID)
		s.Log.InfoContext(ctx, "upload dropped", "upload", in.ID, "actor", access.Actor(ctx))
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
		return nil, endpoint.NotFound("upload %q was not found; list the uploads", in.ID)
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
			fmt.Sprintf("upload %s was submitted as batch %s, and is removed when that batch is completed or deleted", u.ID, batch.ID))
	}
	if err := s.removeRetired(ctx, u.ID); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "upload removed", "upload", u.ID, "actor", access.Actor(ctx))
	return answer, nil
}

// BatchOf returns the newest batch of an upload, also one that the caller may not see: an upload in
// use must stay.
func (s *Service) BatchOf(ctx context.Context, u registry.Upload) (registry.WorkItem, bool, error) {
	all, err := s.All.BatchesOf(ctx, u.ID)
	if err != nil || len(all) == 0 {
		return registry.WorkItem{}, false, err
	}
	return all[0], true, nil
}

// Remove removes an upload, unless a batch uses it or may use it: leftover bytes are harmless,
// missing bytes are a loss.
func (s *Service) Remove(ctx context.Context, u registry.Upload) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	_, taken, err := s.BatchOf(ctx, u)
	if err == nil && !taken {
		err = s.removeRetired(ctx, u.ID)
	}
	if err != nil {
		s.Log.WarnContext(ctx, "removing an unused upload failed", "upload", u.ID, "err", err)
	}
}

// Sees reports whether the caller may see an item.
func (s *Service) Sees(ctx context.Context, it registry.WorkItem) (bool, error) {
	_, err := s.Registry.Item(ctx, it.ID)
	if errors.Is(err, registry.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// cleanupTime bounds the work after a request has ended.
const cleanupTime = 30 * time.Second
