package s3

import (
	"context"

	"github.com/holdfast/holdfast/storage"
)

// Discard implements storage.Store. It removes the writer's pieces.
func (s *Store) Discard(ctx context.Context, cp storage.Checkpoint) error {
	t, err := parseToken(cp.Token)
	if err != nil {
		return nil //nolint:nilerr // not a checkpoint of this driver: there is nothing to delete
	}
	return wrap("discard", t.key, s.removeBelow(ctx, s.scratch(t.key)+t.id+"/"))
}
