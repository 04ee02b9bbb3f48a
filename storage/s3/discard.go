package s3

import (
	"context"

	"github.com/holdfast/holdfast/storage"
)

// Discard implements storage.Store: it removes the pieces of the writer.
func (s *Store) Discard(ctx context.Context, cp storage.Checkpoint) error {
	t, err := parseToken(cp.Token)
	if err != nil {
		return nil //nolint:nilerr // not a checkpoint of ours: there is nothing to throw away
	}
	return wrap("discard", t.key, s.removeBelow(ctx, s.scratch(t.key)+t.id+"/"))
}
