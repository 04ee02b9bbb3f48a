package client_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/api"
	"github.com/holdfast/holdfast/registry/client"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/storage/dir"
)

const adminToken = "hf_secret_of_admin"

// TestStore runs the conformance suite over HTTP: a Store that asks the API on top of a real store. Every act in every place is among
// it, so that what an item says it allows is what the API takes.
func TestStore(t *testing.T) {
	conformance(t, sqlite)
}

// TestPostgreSQL runs what is paged, nested or refused on top of a PostgreSQL, whose answers are shaped a little differently. That
// its answers are right is seen without HTTP, by sqlstore's tests.
func TestPostgreSQL(t *testing.T) {
	conformance(t, postgres, "claim", "settle", "command", "list", "feed", "report", "record", "identify", "why", "query", "delivery", "failures", "expire", "orphan")
}

// sqlite opens a store on a database of the test's own.
func sqlite(t *testing.T, now func() time.Time) registry.Store {
	t.Helper()
	return backing(t, sqlstoretest.SQLite(t), now)
}

// postgres is sqlite on the other database.
func postgres(t *testing.T, now func() time.Time) registry.Store {
	t.Helper()
	return backing(t, sqlstoretest.Postgres(t), now)
}

// backing opens the store at a URL until the test ends.
func backing(t testing.TB, url string, now func() time.Time) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url, Now: now, ReceiptKey: sqlstoretest.ReceiptKey(t), Mail: true})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// conformance runs the suite, or topics of it, against the API on top of what open opens.
func conformance(t *testing.T, open registrytest.Open, topics ...string) {
	t.Helper()
	registrytest.Run(t, func(t *testing.T, now func() time.Time) registry.Store {
		server := serverOf(t, open(t, now), now, nil)
		remote := client.NewStore(client.New(server.URL, adminToken, client.Options{}))
		t.Cleanup(func() { must(t, remote.Close()) })
		return acting{Store: remote, url: server.URL}
	}, topics...)
}

// acting is a store that others can ask with their tokens.
type acting struct {
	*client.Store
	url string
}

// Acting implements registrytest.Acting.
func (a acting) Acting(actor string) registrytest.Person {
	return client.New(a.url, actor, client.Options{})
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
	for _, name := range registrytest.Deciders() {
		if hash == hashOf(name) {
			return registry.Token{ID: name, Hash: hash, Name: name, Role: registry.RoleAdmin}, nil
		}
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
		Registry: knowing{store}, Staging: staging, Objects: ocfl.Roots{{Root: objects, Name: registry.DefaultStorage}}, Now: now, Log: slog.New(slog.DiscardHandler),
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
	return backing(b, sqlstoretest.SQLite(b), nil)
}
