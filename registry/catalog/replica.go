package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry/sqldb"
)

// HasReplicas implements registry.Preserving. It reads all replicas if the storage has none. Only a
// new storage has none.
func (s *Catalog) HasReplicas(ctx context.Context, storage string) (has bool, err error) {
	return hasReplicas(s.db.Read.QueryRowContext(ctx, liveReplicas, sqldb.Clean(storage)), storage)
}

// HasReplicasIn is Catalog.HasReplicas for a database at an address, which it opens for reading only.
func HasReplicasIn(ctx context.Context, address, storage string) (has bool, err error) {
	db, err := sqldb.OpenReader(address)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return hasReplicas(db.QueryRowContext(ctx, liveReplicas, sqldb.Clean(storage)), storage)
}

const liveReplicas = `SELECT EXISTS (SELECT 1 FROM replica r JOIN object o ON o.id = r.object_id
	WHERE r.storage = $1 AND o.gone = '')`

// hasReplicas reads the answer to liveReplicas.
func hasReplicas(row sqldb.Scanner, storage string) (has bool, err error) {
	if err := row.Scan(&has); err != nil {
		return false, fmt.Errorf("look for replicas in storage %q: %w", storage, err)
	}
	return has, nil
}

// HadReplicas says whether anything was ever recorded in a storage, deleted objects included. It
// reads all replicas if nothing was, so it is for a process's start only.
func (s *Catalog) HadReplicas(ctx context.Context, storage string) (had bool, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM replica WHERE storage = $1)`, sqldb.Clean(storage)).Scan(&had)
	if err != nil {
		return false, fmt.Errorf("look for replicas ever recorded in storage %q: %w", storage, err)
	}
	return had, nil
}

// HadObjects says whether an object was ever recorded, deleted objects included.
func (s *Catalog) HadObjects(ctx context.Context) (had bool, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM object WHERE head > 0 OR gone <> '')`).Scan(&had)
	if err != nil {
		return false, fmt.Errorf("look for recorded objects: %w", err)
	}
	return had, nil
}

// KnowsObject implements registry.Preserving.
func (s *Catalog) KnowsObject(ctx context.Context, id string) (known bool, err error) {
	if sqldb.Clean(id) != id {
		return false, nil // no stored id looks like this
	}
	err = s.db.Read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM object_version WHERE object_id = $1)
		OR EXISTS (SELECT 1 FROM object WHERE id = $1 AND gone <> '')`, id).Scan(&known)
	if err != nil {
		return false, fmt.Errorf("look for object %s: %w", id, err)
	}
	return known, nil
}
