// Package staging removes from the staging volume what nothing in the Registry needs: unfinished
// uploads whose time is over, expired uploads, what a kill left of removed uploads, and restored
// files whose time is over.
//
// It removes bytes before their record, so that a kill leaves no bytes without a record. The data
// of an item under way are not its concern: the item's own steps remove them.
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

// Sweeper removes from staging what is no longer needed. It may run in several processes at once.
type Sweeper struct {
	Registry Registry
	Staging  storage.Store
	Log      *slog.Logger
	Every    time.Duration // between two rounds; 0: 10 minutes
}

// Registry is what a Sweeper needs of the Registry.
type Registry interface {
	// DroppedUploads and ForgetUpload are as in registry.Receiving.
	DroppedUploads(ctx context.Context) ([]registry.DroppedUpload, error)
	ForgetUpload(ctx context.Context, id string) error
	// RestorationOf is as in registry.Inventory.
	RestorationOf(ctx context.Context, itemID string) (registry.Restoration, error)
}

// Run sweeps until ctx ends. It logs the first of a series of failures and the end of the series.
func (s *Sweeper) Run(ctx context.Context) {
	every := s.Every
	if every <= 0 {
		every = 10 * time.Minute
	}
	periodic.Job{
		Do: s.Sweep, Every: every, Log: s.Log,
		Fails: "removing expired uploads and restored files failed; will retry", Works: "expired uploads and restored files are removed again",
	}.Run(ctx)
}

// Sweep makes one round. It returns the joined errors of all files that it could not remove.
func (s *Sweeper) Sweep(ctx context.Context) error {
	return errors.Join(s.sweepUploads(ctx), s.sweepRestored(ctx))
}

// sweepUploads removes the bytes of dropped uploads. Once no request can still be writing to an
// upload, it removes the bytes again and then the record.
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
	s.Log.InfoContext(ctx, "removed an upload", "upload", d.ID)
	return s.Registry.ForgetUpload(ctx, d.ID)
}
