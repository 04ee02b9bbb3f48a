package sqlstore_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
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

func open(t *testing.T, path string, now func() time.Time) *sqlstore.Store {
	t.Helper()
	return openURL(t, "sqlite:"+path, now)
}

func openURL(t *testing.T, url string, now func() time.Time) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url, Now: now})
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

// TestPostgreSQL runs the suite on a real PostgreSQL, a schema for each test. Under the race detector it runs what many callers
// do at once; `make test` runs the whole of it without.
func TestPostgreSQL(t *testing.T) {
	server := postgrestest.Shared(t)
	var topics []string
	if underRace {
		topics = []string{"claim", "fence", "lock", "stop", "feed"}
	}
	registrytest.Run(t, func(t *testing.T, now func() time.Time) registry.Store {
		url := server.Schema(t)
		if _, _, err := sqlstore.Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		s := openURL(t, url, now)
		t.Cleanup(func() { checkReady(context.WithoutCancel(t.Context()), t, s) })
		return s
	}, topics...)
}

func TestStore(t *testing.T) {
	// The schema is made once and copied: each test has a database of its own.
	empty := filepath.Join(t.TempDir(), "empty.db")
	if err := open(t, empty, nil).Close(); err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(empty)
	if err != nil {
		t.Fatal(err)
	}
	registrytest.Run(t, func(t *testing.T, now func() time.Time) registry.Store {
		path := filepath.Join(t.TempDir(), "registry.db")
		if err := os.WriteFile(path, schema, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, path, now)
		t.Cleanup(func() { checkReady(context.WithoutCancel(t.Context()), t, s) })
		return s
	})
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
