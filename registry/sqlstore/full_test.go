package sqlstore_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// full returns the error of a SQLite whose disk is full.
func full(t *testing.T) error {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "full.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"CREATE TABLE a (b BLOB)", "PRAGMA max_page_count = 3", "INSERT INTO a VALUES (zeroblob(100000))"} {
		if _, err = db.ExecContext(t.Context(), statement); err != nil {
			return err
		}
	}
	t.Fatal("a database of three pages took 100,000 bytes")
	return nil
}

// TestDiskFull: while the disk is full, the Registry is unavailable. Workers give their items back
// uncounted, nothing is written in part, and work continues when there is room.
func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	l := &life{clock: newClock()}
	l.s = open(t, path, l.clock.now)
	look := reader(t, path)
	noRoom := full(t)
	for i, c := range l.script() {
		before := dump(t, look)
		asked, at := 0, i%7+1 // BEGIN or another one of the first statements
		l.s.SetFault(func(query string) error {
			if asked++; asked >= at && !strings.HasPrefix(query, "ROLLBACK") { // which needs no room
				return noRoom
			}
			return nil
		})
		err := c.run(t.Context())
		l.s.SetFault(nil)
		if asked >= at {
			if !errors.Is(err, registry.ErrUnavailable) {
				t.Errorf("%s: %v, want that the Registry is unavailable", c.name, err)
			}
			after := dump(t, look)
			for _, table := range c.portions {
				delete(before, table)
				delete(after, table)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("%s left a change:\n%s", c.name, diff)
			}
			err = c.run(t.Context())
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	registrytest.CheckInvariants(t, l.s)
	l.check(t, l.s)
}
