// Package uitest has what tests of pages share: the whole server over real stores, and its readers.
package uitest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/ui"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/ui/page"
)

// Server is a whole server with a collection named default.
type Server struct {
	Store   *sqlstore.Store
	Handler http.Handler
	Site    *page.Site // the pages that Handler shows
	Staging storage.Store
	// Token is sent with each request of Get and Post: that of a viewer.
	Token string
}

// Options change a Server.
type Options struct {
	Registry  func(scope.Registry) scope.Registry // what stands for the Registry; nil: itself
	Log       *slog.Logger                        // nil: none
	Keys      *secret.Keys                        // encrypt credentials; nil: none can be set
	Catalogue *lang.Catalogue                     // texts; nil: those of the pages
	Database  string                              // address; "": a new one of SQLite
}

// New starts nothing: it returns a server to call.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	ctx, folder := context.WithoutCancel(t.Context()), t.TempDir()
	s := &Server{}
	if o.Database == "" {
		o.Database = sqlstoretest.SQLite(t)
	}
	var err error
	s.Store, err = sqlstore.Open(ctx, sqlstore.Options{URL: o.Database, ReceiptKey: sqlstoretest.ReceiptKey(t)})
	must(t, err)
	t.Cleanup(func() { _ = s.Store.Close() })
	must(t, s.Store.PutCollection(ctx, registry.Collection{Mnemonic: "default"}, "test"))
	staging, err := dir.Create(filepath.Join(folder, "staging"))
	must(t, err)
	t.Cleanup(func() { _ = staging.Close() })
	s.Staging = staging
	preserved, err := dir.Create(filepath.Join(folder, "storage"))
	must(t, err)
	t.Cleanup(func() { _ = preserved.Close() })
	root, err := ocfl.OpenRoot(ctx, preserved, "", nil)
	must(t, err)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var all scope.Registry = s.Store
	if o.Registry != nil {
		all = o.Registry(all)
	}
	s.Handler, err = api.New(api.Options{
		Registry: all, Staging: staging, Objects: ocfl.Roots{{Name: registry.DefaultStorage, Root: root}}, Log: o.Log, Version: "1.0", Keys: o.Keys,
		SignIn: signin.New(signin.Options{Store: s.Store, Log: o.Log}),
		UI: func(p api.ForPages) (http.Handler, error) {
			s.Site, err = ui.New(page.Options{
				Transport: p.API, May: p.May, Caller: p.Caller, UploadUse: p.UploadUse, Changes: p.Changes, Specification: p.Specification, Log: o.Log, Version: "1.0", Catalogue: o.Catalogue,
			})
			return s.Site, err
		},
	})
	must(t, err)
	s.Token = s.TokenOf(t, "a viewer", registry.RoleViewer)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TokenOf adds a token for the collection default, and returns its secret.
func (s *Server) TokenOf(t testing.TB, name string, role registry.Role) string {
	t.Helper()
	secret := "secret of " + name
	token := registry.Token{ID: name, Hash: signin.Hash(secret), Name: name, Role: role}
	if role == registry.RoleDepositor {
		token.Collections = []string{"default"}
	}
	must(t, s.Store.AddToken(t.Context(), token))
	return secret
}

// Send sends a request with the server's token.
func (s *Server) Send(t testing.TB, method, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(form.Encode()))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Authorization", "Bearer "+s.Token)
	s.Handler.ServeHTTP(w, r)
	return w
}

// markOf finds the marks of data, with the data in them.
var markOf = regexp.MustCompile(`<span translate="no">([^<]*)</span>| translate="no"`)

// Plain is a page without the marks of what is data.
func Plain(text string) string { return markOf.ReplaceAllString(text, "$1") }

// Get loads a page and fails unless it has this status and is whole. It returns the page without the
// marks of what is data.
func (s *Server) Get(t testing.TB, path string, status int) string {
	t.Helper()
	w := s.Send(t, http.MethodGet, path, nil)
	text := w.Body.String()
	if w.Code != status {
		t.Fatalf("%s: status=%d, want %d: %s", path, w.Code, status, text)
	}
	if !strings.HasSuffix(strings.TrimSpace(text), "</html>") || strings.Contains(text, "ZgotmplZ") || strings.Contains(text, "%!") {
		t.Errorf("%s is not whole:\n%s", path, text)
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") {
		t.Errorf("%s: policy=%q, want a strict one", path, policy)
	}
	return Plain(text)
}

// Post sends a form.
func (s *Server) Post(t testing.TB, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	return s.Send(t, http.MethodPost, path, form)
}
