// Package tasktest lets tests serve functions and processes, and reach a Registry over HTTP as
// programs and people do.
package tasktest

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/signin"
)

// API is a server of the API, until the test ends.
type API struct {
	testing.TB
	URL string

	store *sqlstore.Store
}

// NewAPI serves the API of a Registry, with empty storages.
func NewAPI(t testing.TB, store *sqlstore.Store) *API {
	t.Helper()
	a := &API{TB: t, store: store}
	folder := t.TempDir()
	staging, err := dir.Create(filepath.Join(folder, "staging"))
	a.must(err)
	t.Cleanup(func() { _ = staging.Close() })
	preserved, err := dir.Create(filepath.Join(folder, "storage"))
	a.must(err)
	t.Cleanup(func() { _ = preserved.Close() })
	objects, err := ocfl.OpenRoot(t.Context(), preserved, "", nil)
	a.must(err)
	handler, err := api.New(api.Options{
		Registry: store, Staging: staging, Objects: ocfl.Roots{{Root: objects, Name: registry.DefaultStorage}}, Log: slog.New(slog.DiscardHandler),
	})
	a.must(err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	a.URL = server.URL
	return a
}

func (a *API) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// Token returns the secret of a token with a name. It adds the token unless there is one.
func (a *API) Token(t registry.Token) (secret string) {
	a.Helper()
	secret = "hf_secret_of_" + t.Name
	t.ID, t.Hash = t.Name, signin.Hash(secret)
	if _, err := a.store.TokenByHash(a.Context(), t.Hash); errors.Is(err, registry.ErrNotFound) {
		a.must(a.store.AddToken(a.Context(), t))
	}
	return secret
}

// Client is the API for the bearer of a token.
func (a *API) Client(t registry.Token) *client.Client {
	a.Helper()
	c := client.New(a.URL, a.Token(t), client.Options{})
	a.Cleanup(c.Close)
	return c
}

// Program is the Registry for a program whose token names stages.
func (a *API) Program(stages ...registry.Stage) task.Registry {
	a.Helper()
	p := protocol.NewClient(a.Client(registry.Token{Name: "program", Role: registry.RoleWorker, Stages: stages}))
	a.Cleanup(func() { a.must(p.Close()) })
	return p
}

// Serve serves what a program has registered until stop is called, or the test ends.
func Serve(t testing.TB, r task.Registry, m *task.Mux) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- task.Serve(ctx, r, m, task.Options{}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Await waits until something is so, for two minutes at most.
func Await(t testing.TB, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("it never came to that")
		}
	}
}
