package protocol_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/registrytest/suite"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/signin"
)

const adminToken = "hf_secret_of_admin"

// TestStore runs the conformance suite for the topics of workers. Methods of workers are called
// over HTTP, all others on the store. Every method of the protocol occurs.
func TestStore(t *testing.T) {
	var asked sync.Map
	suite.Run(t, func(t *testing.T, now func() time.Time) registrytest.Store {
		store := backing(t, sqlstoretest.SQLite(t), now)
		server := serverOf(t, store, now, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
				asked.Store(name, true)
				if name == "calls" {
					body, err := io.ReadAll(r.Body)
					must(t, err)
					var calls []struct{ Method string }
					must(t, json.Unmarshal(body, &calls))
					for _, c := range calls {
						asked.Store(c.Method, true)
					}
					r.Body = io.NopCloser(bytes.NewReader(body))
				}
				next.ServeHTTP(w, r)
			})
		})
		caller := client.New(server.URL, adminToken, client.Options{})
		remote := protocol.NewClient(caller)
		t.Cleanup(func() { must(t, remote.Close()) })
		return apart{Client: remote, beside: beside{store}, url: server.URL}
	}, "claim", "renew", "settle", "fence", "batch", "report", "lock", "identify", "intent", "abandon", "record", "object_item", "deletion", "fixity", "evidence",
		"own_object", "foreign", "release_upload", "restore", "delivery", "mail", "reserve", "stop", "bulk", "crowd", "held_worker", "why", "failures", "incoming", "orphan", "credential", "queue", "bounds", "function", "task", "task_graph", "await", "process", "process_key", "process_fault")
	if flag.Lookup("test.run").Value.String() != "" {
		return // only some of them were asked for
	}
	for name := range protocol.Stages() {
		if _, ok := asked.Load(name); !ok && name != "holds" && name != "ping" { // which the next tests ask
			t.Errorf("no test asks %s", name)
		}
	}
}

// apart is a store whose methods for workers are asked over HTTP.
type apart struct {
	*protocol.Client
	beside
	url string
}

// beside has what is no worker's: its methods lie deeper than those of the client, which come
// first.
type beside struct{ *sqlstore.Store }

// Close closes the client; the store is its opener's.
func (a apart) Close() error { return a.Client.Close() }

// Acting implements registrytest.Acting.
func (a apart) Acting(actor string) registrytest.Person {
	return person{client.New(a.url, actor, client.Options{})}
}

// person is a caller of the API. The token tells the actor, so the argument is not sent.
type person struct{ *client.Client }

// AskDeletion implements registry.Deciding.
func (p person) AskDeletion(ctx context.Context, objectID, reason, _ string) (registry.Deletion, error) {
	return p.Client.AskDeletion(ctx, objectID, reason)
}

// ApproveDeletion implements registry.Deciding.
func (p person) ApproveDeletion(ctx context.Context, objectID, _ string) (registry.Deletion, error) {
	return p.Client.ApproveDeletion(ctx, objectID)
}

// WithdrawDeletion implements registry.Deciding.
func (p person) WithdrawDeletion(ctx context.Context, objectID, _ string) (registry.Deletion, error) {
	return p.Client.WithdrawDeletion(ctx, objectID)
}

// SetTerms implements registry.Deciding.
func (p person) SetTerms(ctx context.Context, objectID string, terms registry.Terms, reason, _ string) error {
	_, err := p.Client.SetTerms(ctx, objectID, terms, reason)
	return err
}

// sqlite opens a store on a database of the test's own.
func sqlite(t *testing.T, now func() time.Time) *sqlstore.Store {
	t.Helper()
	return backing(t, sqlstoretest.SQLite(t), now)
}

// backing opens the store at a URL until the test ends.
func backing(t testing.TB, url string, now func() time.Time) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url, Now: now, ReceiptKey: sqlstoretest.ReceiptKey(t), Mail: true, FixityEvery: registrytest.CheckEvery})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// serve puts the API in front of a store, and returns what asks it.
func serve(t testing.TB, store scope.Registry, now func() time.Time) *protocol.Client {
	t.Helper()
	return serveBy(t, store, now, nil)
}

// serveBy is serve with something around the API.
func serveBy(t testing.TB, store scope.Registry, now func() time.Time, around func(http.Handler) http.Handler) *protocol.Client {
	t.Helper()
	remote := protocol.NewClient(client.New(serverOf(t, store, now, around).URL, adminToken, client.Options{}))
	t.Cleanup(func() { must(t, remote.Close()) })
	return remote
}

// knowing is a store that knows the tests' admin without keeping a token: what it keeps is what is
// tested.
type knowing struct{ scope.Registry }

func (k knowing) TokenByHash(ctx context.Context, hash string) (registry.Token, error) {
	if hash == hashOf(adminToken) {
		return registry.Token{ID: "admin", Hash: hash, Name: "admin", Role: registry.RoleAdmin}, nil
	}
	for _, name := range registrytest.Deciders() {
		if hash == hashOf(name) {
			return registry.Token{ID: name, Hash: hash, Name: name, Role: registry.RoleAdmin}, nil
		}
	}
	return k.Registry.TokenByHash(ctx, hash)
}

func hashOf(token string) string { return signin.Hash(token) }

// serverOf is the API in front of a store.
func serverOf(t testing.TB, store scope.Registry, now func() time.Time, around func(http.Handler) http.Handler) *httptest.Server {
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

func benchStore(b *testing.B) *sqlstore.Store {
	b.Helper()
	return backing(b, sqlstoretest.SQLite(b), nil)
}
