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

// HadReplicas says whether anything was ever recorded in a storage, whether it was deleted since or not. It reads all replicas
// when nothing was, which is asked only at a process's start.
func (s *Store) HadReplicas(ctx context.Context, storage string) (had bool, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM replica WHERE storage = $1)`, clean(storage)).Scan(&had)
	if err != nil {
		return false, fmt.Errorf("look for what was recorded in storage %q: %w", storage, err)
	}
	return had, nil
}

// HadObjects says whether an object was ever recorded, whether it was deleted since or not.
func (s *Store) HadObjects(ctx context.Context) (had bool, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM object WHERE head > 0 OR gone <> '')`).Scan(&had)
	if err != nil {
		return false, fmt.Errorf("look for recorded objects: %w", err)
	}
	return had, nil
}

// Source is what this Registry is called, for ever: urn:uuid: and a UUID, which its database was given when it was made.
func (s *Store) Source(ctx context.Context) (source string, err error) {
	if err = s.read.QueryRowContext(ctx, selectSource).Scan(&source); err != nil {
		return "", fmt.Errorf("read what this Registry is called: %w", err)
	}
	return source, nil
}

// KnowsObject implements registry.Preserving.
func (s *Store) KnowsObject(ctx context.Context, id string) (known bool, err error) {
	if clean(id) != id {
		return false, nil // there can be none
	}
	err = s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM object_version WHERE object_id = $1)
		OR EXISTS (SELECT 1 FROM object WHERE id = $1 AND gone <> '')`, id).Scan(&known)
	if err != nil {
		return false, fmt.Errorf("look for object %s: %w", id, err)
	}
	return known, nil
}
