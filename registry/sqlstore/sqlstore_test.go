package sqlstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/registrytest/suite"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

func TestMain(m *testing.M) {
	// Under the race detector a check takes a second; the command line may ask for more of them.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	code := postgrestest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// open opens the database at path, a new one when there is none.
func open(t *testing.T, path string, now func() time.Time) *sqlstore.Store {
	t.Helper()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		sqlstoretest.SQLiteAt(t, path)
	}
	return openURL(t, "sqlite:"+path, now)
}

func openURL(t *testing.T, url string, now func() time.Time) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url, Now: now, ReceiptKey: sqlstoretest.ReceiptKey(t), Mail: true, FixityEvery: registrytest.CheckEvery})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestPostgreSQL runs the conformance suite on PostgreSQL, with a database for each test.
func TestPostgreSQL(t *testing.T) { conformance(t, sqlstoretest.Postgres, suite.Sample) }

// TestStore runs the conformance suite on SQLite, with a file for each test.
func TestStore(t *testing.T) { conformance(t, sqlstoretest.SQLite, suite.Run) }

func conformance(t *testing.T, database func(testing.TB) string, run func(*testing.T, registrytest.Open, ...string)) {
	t.Helper()
	open := func(t *testing.T, now func() time.Time) registrytest.Store {
		s := openURL(t, database(t), now)
		t.Cleanup(func() { checkReady(context.WithoutCancel(t.Context()), t, s) })
		return s
	}
	run(t, open)
}

// checkReady recounts what is kept beside the facts, unless the test has closed the store.
func checkReady(ctx context.Context, t registrytest.T, s *sqlstore.Store) {
	t.Helper()
	if s.Ping(ctx) != nil {
		return
	}
	wrong, err := s.Unready(ctx)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, w := range wrong {
		t.Errorf("%s", w)
	}
}

// TestResults_NotJSON: a result that is not JSON would make all results of its item unreadable.
func TestResults_NotJSON(t *testing.T) {
	s := newStore(t)
	l := expandingBatch(t, s)
	for _, damaged := range []string{``, `{`, `1 2`, `"a`} {
		if _, err := s.SaveResult(t.Context(), l, "a", json.RawMessage(damaged)); !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("%q: %v", damaged, err)
		}
		_, err := s.Settle(t.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{"a": json.RawMessage(damaged)}})
		if !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("settled with %q: %v", damaged, err)
		}
	}
	if it, err := s.Item(t.Context(), l.ItemID); err != nil || len(it.Results) > 0 || it.Status != registry.Running {
		t.Errorf("%+v, %v", it, err)
	}
}
