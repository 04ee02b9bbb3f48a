package staging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// unknownFor is how long what no restore is known of is left alone, in case that it is the Registry
// which is behind.
const unknownFor = 24 * time.Hour

// sweepRestored removes what was restored and can be fetched no more: its time is over, its object
// was deleted, it was given up, or another attempt has brought it. Keys are an attempt's own and
// are listed before it is asked whose they are, so that nothing is removed which came to be needed
// meanwhile. Whoever is reading one goes on, where the store can keep a file for its readers.
func (s *Sweeper) sweepRestored(ctx context.Context) error {
	var found []storage.Info
	for info, err := range s.Staging.List(ctx, registry.RestoredPrefix) {
		if err != nil {
			return fmt.Errorf("list what was restored: %w", err)
		}
		found = append(found, info)
	}
	var errs []error
	for _, info := range found {
		if err := s.sweepParcel(ctx, info); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", info.Key, err))
		}
	}
	return errors.Join(errs...)
}

func (s *Sweeper) sweepParcel(ctx context.Context, info storage.Info) error {
	r, err := s.Registry.RestorationOf(ctx, registry.RestoredBy(info.Key))
	switch {
	case errors.Is(err, registry.ErrNotFound):
		if time.Since(info.Modified) < unknownFor {
			return nil
		}
	case err != nil:
		return err
	case r.Status.Open() || r.Status == registry.RestoreReady && r.Place == info.Key:
		return nil
	}
	if err := s.Staging.Delete(ctx, info.Key); err != nil {
		return err
	}
	s.Log.InfoContext(ctx, "removed what was restored", "object", r.ObjectID, "restore", r.N, "key", info.Key, "status", r.Status)
	return nil
}
