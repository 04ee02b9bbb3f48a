// Package staging removes from the staging volume what nobody asks the Registry for any more:
// uploads that were begun and never ended, those that have expired, what a kill left of those that
// were given up, and what was restored, when its time is over.
//
// Bytes go before their record, so that a kill leaves nothing that nobody knows of. What belongs to
// an item under way is not for this package: the item's own steps remove it.
package staging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
)

// Sweeper removes what is not needed in staging any more. It may run in several processes at once.
type Sweeper struct {
	Registry Registry
	Staging  storage.Store
	Log      *slog.Logger
	Every    time.Duration // between two looks; 0: 10 minutes
}

// Registry is what a Sweeper asks.
type Registry interface {
	// DroppedUploads and ForgetUpload are as in registry.Receiving.
	DroppedUploads(ctx context.Context) ([]registry.DroppedUpload, error)
	ForgetUpload(ctx context.Context, id string) error
	// RestorationOf is as in registry.Inventory.
	RestorationOf(ctx context.Context, itemID string) (registry.Restoration, error)
}

// Run sweeps until ctx ends. Trouble is logged once until it is over.
func (s *Sweeper) Run(ctx context.Context) {
	every := s.Every
	if every <= 0 {
		every = 10 * time.Minute
	}
	periodic.Job{
		Do: s.Sweep, Every: every, Log: s.Log,
		Fails: "what is not needed in staging any more cannot be removed", Works: "what is not needed in staging any more is removed again",
	}.Run(ctx)
}

// Sweep removes what is to be removed now.
func (s *Sweeper) Sweep(ctx context.Context) error {
	return errors.Join(s.sweepUploads(ctx), s.sweepRestored(ctx))
}

// sweepUploads removes bytes before their record; they go again, and the record with them, when no
// request can be left that still writes some.
func (s *Sweeper) sweepUploads(ctx context.Context) error {
	dropped, err := s.Registry.DroppedUploads(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range dropped {
		if err := s.remove(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("remove upload %s: %w", d.ID, err))
		}
	}
	return errors.Join(errs...)
}

func (s *Sweeper) remove(ctx context.Context, d registry.DroppedUpload) error {
	if err := s.Staging.DeletePrefix(ctx, source.UploadKey(d.ID)); err != nil {
		return err
	}
	if !d.Over {
		return nil
	}
	s.Log.InfoContext(ctx, "removed an upload that nobody needs", "upload", d.ID)
	return s.Registry.ForgetUpload(ctx, d.ID)
}
