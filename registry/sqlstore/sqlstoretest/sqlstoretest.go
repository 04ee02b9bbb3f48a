// Package sqlstoretest gives tests databases of their own with the Registry's schema in them. The
// schema is made once for a test binary and copied: under the race detector to read the migrations
// costs more than most tests do.
package sqlstoretest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
)

// SQLite returns the URL of a database in a folder of the test's.
func SQLite(t testing.TB) string {
	t.Helper()
	return SQLiteAt(t, filepath.Join(t.TempDir(), "registry.db"))
}

// SQLiteAt makes a database at a path, where there is none, and returns its URL.
func SQLiteAt(t testing.TB, path string) string {
	t.Helper()
	file, err := migrated()
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + path
}

// migrated is the file of an empty database.
var migrated = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "holdfast-sqlstoretest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "registry.db")
	if _, _, err := sqldb.Migrate(context.Background(), "sqlite:"+path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Postgres returns the URL of a database on the test binary's PostgreSQL; see postgrestest.Shared.
func Postgres(t testing.TB) string {
	t.Helper()
	return postgrestest.Shared(t).Copy(t, migrate)
}

// DurablePostgres returns the URL of a database on a PostgreSQL of the test's own, whose commits are
// durable, as measurements need it.
func DurablePostgres(t testing.TB) string {
	t.Helper()
	return postgrestest.Start(t).Copy(t, migrate)
}

func migrate(address string) error {
	_, _, err := sqldb.Migrate(context.Background(), address)
	return err
}
