package client_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/api"
	"github.com/holdfast/holdfast/registry/client"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
	"github.com/holdfast/holdfast/storage/dir"
)

const adminToken = "hf_secret_of_admin"

// TestStore runs the conformance suite over HTTP: a Store that asks the API on top of a real store. Under the race detector,
// where SQLite takes ten times as long, every topic runs on the one or on the other.
func TestStore(t *testing.T) {
	all := registrytest.Topics()
	onSQLite, onPostgres := all, all
	if underRace {
		onSQLite = []string{"fence", "renew", "intent", "record", "reserve", "hold", "admin", "token"}
		onPostgres = slices.DeleteFunc(registrytest.Topics(), func(topic string) bool { return slices.Contains(onSQLite, topic) })
	}
	t.Run("sqlite", func(t *testing.T) { conformance(t, sqlite(t), onSQLite) })
	t.Run("postgres", func(t *testing.T) { conformance(t, postgres(t), onPostgres) })
}

// postgres opens stores in schemas of their own.
func postgres(t *testing.T) registrytest.Open {
	server := postgrestest.Shared(t)
	return func(t *testing.T, now func() time.Time) registry.Store {
		url := server.Schema(t)
		_, _, err := sqlstore.Migrate(t.Context(), url)
		must(t, err)
		s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url, Now: now})
		must(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
}

// conformance runs topics of the suite against the API on top of what backing opens.
func conformance(t *testing.T, backing registrytest.Open, topics []string) {
	registrytest.Run(t, func(t *testing.T, now func() time.Time) registry.Store {
		return serve(t, backing(t, now), now)
	}, topics...)
}

// sqlite opens stores whose schema is made once and copied.
func sqlite(t *testing.T) registrytest.Open {
	empty := filepath.Join(t.TempDir(), "empty.db")
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:" + empty})
	must(t, err)
	must(t, s.Close())
	schema, err := os.ReadFile(empty)
	must(t, err)
	return func(t *testing.T, now func() time.Time) registry.Store {
		path := filepath.Join(t.TempDir(), "registry.db")
		must(t, os.WriteFile(path, schema, 0o600))
		s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:" + path, Now: now})
		must(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
}

// serve puts the API in front of a store, and returns the Store that asks it.
func serve(t testing.TB, store registry.Store, now func() time.Time) *client.Store {
	t.Helper()
	return serveBy(t, store, now, nil)
}

// serveBy is serve with something around the API.
func serveBy(t testing.TB, store registry.Store, now func() time.Time, around func(http.Handler) http.Handler) *client.Store {
	t.Helper()
	remote := client.NewStore(client.New(serverOf(t, store, now, around).URL, adminToken, client.Options{}))
	t.Cleanup(func() { must(t, remote.Close()) })
	return remote
}

// knowing is a store that knows the tests' admin without keeping a token: what it keeps is what is tested.
type knowing struct{ registry.Store }

func (k knowing) TokenByHash(ctx context.Context, hash string) (registry.Token, error) {
	if hash == hashOf(adminToken) {
		return registry.Token{ID: "admin", Hash: hash, Name: "admin", Role: registry.RoleAdmin}, nil
	}
	return k.Store.TokenByHash(ctx, hash)
}

func hashOf(token string) string { return api.TokenHash(token) }

// serverOf is the API in front of a store.
func serverOf(t testing.TB, store registry.Store, now func() time.Time, around func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	folder := t.TempDir()
	staging, err := dir.Create(filepath.Join(folder, "staging"))
	must(t, err)
	t.Cleanup(func() { _ = staging.Close() })
	preserved, err := dir.Create(filepath.Join(folder, "storage"))
	must(t, err)
	t.Cleanup(func() { _ = preserved.Close() })
	objects, err := ocfl.OpenRoot(t.Context(), preserved, "", nil)
	must(t, err)
	handler, err := api.New(api.Options{
		Registry: knowing{store}, Staging: staging, Objects: objects, Now: now, Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func benchStore(b *testing.B) registry.Store {
	b.Helper()
	s, err := sqlstore.Open(b.Context(), sqlstore.Options{URL: "sqlite:" + filepath.Join(b.TempDir(), "registry.db")})
	must(b, err)
	b.Cleanup(func() { _ = s.Close() })
	return s
}
