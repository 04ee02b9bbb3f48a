package sqlstore

import (
	"context"
	"fmt"
)

// HasReplicas implements registry.Preserving. It reads all replicas when there are none in the storage, which is asked only
// of one that is new.
func (s *Store) HasReplicas(ctx context.Context, storage string) (has bool, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM replica r JOIN object o ON o.id = r.object_id
		WHERE r.storage = $1 AND o.gone = '')`, clean(storage)).Scan(&has)
	if err != nil {
		return false, fmt.Errorf("look for replicas in storage %q: %w", storage, err)
	}
	return has, nil
}
