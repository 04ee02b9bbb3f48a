package catalog

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/holdfast/holdfast/registry/sqldb"
)

// HasReplicas implements registry.Preserving. It reads all replicas if the storage has none. Only a
// new storage has none.
func (s *Catalog) HasReplicas(ctx context.Context, storage string) (has bool, err error) {
	return hasReplicas(s.db.Read.QueryRowContext(ctx, liveReplicas, sqldb.Clean(storage)), storage)
}

// Reader answers from a database at an address what a Catalog knows of storages. It only reads, and
// takes no lock.
type Reader struct{ db *sql.DB }

// OpenReader opens a database that another process may be using. The caller closes the Reader.
func OpenReader(address string) (*Reader, error) {
	db, err := sqldb.OpenReader(address)
	if err != nil {
		return nil, err
	}
	return &Reader{db: db}, nil
}

// Close closes the database.
func (r *Reader) Close() error { return r.db.Close() }

// HasReplicas is Catalog.HasReplicas.
func (r *Reader) HasReplicas(ctx context.Context, storage string) (bool, error) {
	return hasReplicas(r.db.QueryRowContext(ctx, liveReplicas, sqldb.Clean(storage)), storage)
}

// Replicated is Catalog.Replicated.
func (r *Reader) Replicated(ctx context.Context, storage string, most int) ([]string, error) {
	return replicated(ctx, r.db, storage, most)
}

// KnowsObject is Catalog.KnowsObject.
func (r *Reader) KnowsObject(ctx context.Context, id string) (bool, error) {
	return knowsObject(r.db.QueryRowContext(ctx, knownObject, sqldb.Clean(id)), id)
}

// Replicated returns the ids, as storages have them, of some objects that are recorded in a storage.
func (s *Catalog) Replicated(ctx context.Context, storage string, most int) ([]string, error) {
	return replicated(ctx, s.db.Read, storage, most)
}

// queryer is a database that is read.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func replicated(ctx context.Context, db queryer, storage string, most int) (ids []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT COALESCE(NULLIF(o.ocfl_id, ''), o.id) FROM replica r JOIN object o ON o.id = r.object_id
		WHERE r.storage = $1 AND o.gone = '' LIMIT $2`, sqldb.Clean(storage), most)
	if err != nil {
		return nil, fmt.Errorf("look for objects in storage %q: %w", storage, err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("look for objects in storage %q: %w", storage, err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look for objects in storage %q: %w", storage, err)
	}
	return ids, nil
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
func (s *Catalog) KnowsObject(ctx context.Context, id string) (bool, error) {
	if sqldb.Clean(id) != id {
		return false, nil // no stored id looks like this
	}
	return knowsObject(s.db.Read.QueryRowContext(ctx, knownObject, id), id)
}

const knownObject = `SELECT EXISTS (SELECT 1 FROM object_version WHERE object_id = $1)
	OR EXISTS (SELECT 1 FROM object WHERE id = $1 AND gone <> '') OR EXISTS (SELECT 1 FROM object WHERE ocfl_id = $1 AND ocfl_id <> '')`

// knowsObject reads the answer to knownObject.
func knowsObject(row sqldb.Scanner, id string) (known bool, err error) {
	if err := row.Scan(&known); err != nil {
		return false, fmt.Errorf("look for object %s: %w", id, err)
	}
	return known, nil
}
