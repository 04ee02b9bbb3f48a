package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/holdfast/holdfast/registry/sqldb"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// database creates an empty database for the Registry. It returns its address and a function that
// removes it.
type database func(ctx context.Context, folder string) (address string, remove func() error, err error)

// sqliteIn creates a database file in the folder, and removes it with the folder.
func sqliteIn(_ context.Context, folder string) (string, func() error, error) {
	return "sqlite:" + filepath.Join(folder, "registry.db"), func() error { return nil }, nil
}

// schemaOf creates a schema in a PostgreSQL database.
func schemaOf(address string) database {
	return func(ctx context.Context, _ string) (string, func() error, error) {
		u, err := url.Parse(address)
		if err != nil {
			return "", nil, errors.New("-postgres is not an address")
		}
		db, err := sql.Open("pgx", address)
		if err != nil {
			return "", nil, err
		}
		const schema = "holdfast_bench"
		if _, err := db.ExecContext(ctx, "CREATE SCHEMA "+schema); err != nil {
			return "", nil, errors.Join(fmt.Errorf("create schema %s: %w", schema, err), db.Close())
		}
		remove := func() error {
			_, err := db.ExecContext(context.WithoutCancel(ctx), "DROP SCHEMA "+schema+" CASCADE")
			return errors.Join(err, db.Close())
		}
		q := u.Query()
		q.Set("search_path", schema+",public")
		u.RawQuery = q.Encode()
		if _, _, err := sqldb.Migrate(ctx, u.String()); err != nil {
			return "", nil, errors.Join(err, remove())
		}
		return u.String(), remove, nil
	}
}
