package staging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// unknownFor is how long a file stays that no restore is known of, in case the Registry itself was
// restored from a backup and is behind.
const unknownFor = 24 * time.Hour

// sweepRestored removes restored files that can be fetched no more: the restore expired, its object
// was deleted, it was abandoned, or another attempt wrote the file. It lists files before it asks
// the Registry about each. Keys are unique to an attempt, so a listed file cannot become needed
// later. Where the store keeps a deleted file for its readers, an open download goes on.
func (s *Sweeper) sweepRestored(ctx context.Context) error {
	var found []storage.Info
	for info, err := range s.Staging.List(ctx, registry.RestoredPrefix) {
		if err != nil {
			return fmt.Errorf("list restored files: %w", err)
		}
		found = append(found, info)
	}
	var errs []error
	for _, info := range found {
		if err := s.removeRestored(ctx, info); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", info.Key, err))
		}
	}
	return errors.Join(errs...)
}

func (s *Sweeper) removeRestored(ctx context.Context, info storage.Info) error {
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
	s.Log.InfoContext(ctx, "removed a restored file", "object", r.ObjectID, "restore", r.N, "key", info.Key, "status", r.Status)
	return nil
}
