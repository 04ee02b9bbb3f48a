package dir

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/storage"
)

// Discard implements storage.Store. A writer that still has the file open keeps writing to a file
// without a name, and can no longer commit it.
func (s *Store) Discard(ctx context.Context, cp storage.Checkpoint) error {
	t, err := parseToken(cp.Token)
	if err != nil || s.check(t.key) != nil {
		return nil //nolint:nilerr // not a checkpoint of this driver: there is nothing to delete
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("discard %q: %w", t.key, err)
	}
	name := s.pendingPath(t.key) + "/" + t.base
	if err := s.root.Remove(name); err != nil && !absent(err) {
		return wrap("discard", t.key, err)
	}
	return wrap("discard", t.key, s.settleRemoval(name))
}
