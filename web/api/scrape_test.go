package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/signin"
)

// TestMetrics_WithoutDatabase stops PostgreSQL: a token that has read the metrics still reads those
// of the process, for a day, until it expires, or until a revocation is seen.
func TestMetrics_WithoutDatabase(t *testing.T) {
	database := postgrestest.Start(t)
	address := database.Schema(t)
	_, _, err := sqldb.Migrate(t.Context(), address)
	must(t, err)
	var store *sqlstore.Store
	b := newBench(t, func(b *bench, o *api.Options) {
		store, err = sqlstore.Open(context.WithoutCancel(t.Context()), sqlstore.Options{URL: address, ReceiptKey: sqlstoretest.ReceiptKey(t), Now: b.now})
		must(t, err)
		t.Cleanup(func() { _ = store.Close() })
		o.Registry, o.Now = store, b.now
	})
	inAnHour := b.now().Add(time.Hour)
	for _, tok := range []registry.Token{
		{Name: "prometheus", Role: registry.RoleViewer},
		{Name: "revoked", Role: registry.RoleViewer},
		{Name: "expiring", Role: registry.RoleViewer, ExpiresAt: &inAnHour},
		{Name: "new", Role: registry.RoleViewer},
		{Name: "depositor", Role: registry.RoleDepositor, Collections: []string{"default"}},
	} {
		tok.ID, tok.Hash = tok.Name, signin.Hash(tok.Name)
		must(t, store.AddToken(t.Context(), tok))
	}
	wants := func(when, path string, statuses map[string]int) {
		t.Helper()
		for name, status := range statuses {
			answer, text := b.send(t, http.MethodGet, path, "", "Authorization", "Bearer "+name)
			if answer.StatusCode != status {
				t.Errorf("%s, %s reads %s: %d, want %d: %s", when, name, path, answer.StatusCode, status, text)
			}
			up := strings.Contains(text, "\nholdfast_queue_up 1\n") && strings.Contains(text, "\nholdfast_accepting ")
			down := strings.Contains(text, "\nholdfast_queue_up 0\n") && !strings.Contains(text, "\nholdfast_accepting ") && strings.Contains(text, "\ngo_goroutines ")
			if path == "/metrics" && status == http.StatusOK && (strings.HasPrefix(when, "with ") != up || up == down) {
				t.Errorf("%s, %s reads: %s", when, name, text)
			}
		}
	}
	const ok, refused, forbidden, unavailable = http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable
	wants("with it", "/metrics", map[string]int{"prometheus": ok, "revoked": ok, "expiring": ok, "depositor": forbidden, "unknown": refused})
	must(t, store.RevokeToken(t.Context(), "revoked", "admin"))
	wants("with it, after a revocation", "/metrics", map[string]int{"revoked": refused})
	database.Kill()
	wants("without it", "/metrics", map[string]int{"prometheus": ok, "expiring": ok, "revoked": unavailable, "new": unavailable, "depositor": unavailable, "unknown": unavailable, "": refused})
	wants("without it", "/api/v1/queue", map[string]int{"prometheus": unavailable})
	b.pass(time.Hour)
	wants("without it for an hour", "/metrics", map[string]int{"prometheus": ok, "expiring": unavailable})
	b.pass(23 * time.Hour)
	wants("without it for a day", "/metrics", map[string]int{"prometheus": unavailable})
	database.Restart(t)
	wants("with it again", "/metrics", map[string]int{"prometheus": ok, "revoked": refused, "expiring": refused})
}

// hanging is a Registry whose database does not answer from some moment on.
type hanging struct {
	scope.Registry
	since chan struct{} // closed then
}

func (h hanging) TokenByHash(ctx context.Context, hash string) (registry.Token, error) {
	select {
	case <-h.since:
		<-ctx.Done()
		return registry.Token{}, ctx.Err()
	default:
		return h.Registry.TokenByHash(ctx, hash)
	}
}

// TestMetrics_DatabaseHangs checks that a scrape does not wait for ever for a look-up of its token.
func TestMetrics_DatabaseHangs(t *testing.T) {
	h := hanging{since: make(chan struct{})}
	b := newBench(t, func(b *bench, o *api.Options) { h.Registry, o.Registry = b.store, &h })
	for _, want := range []string{"\nholdfast_queue_up 1\n", "\nholdfast_queue_up 0\n"} {
		answer, text := b.send(t, http.MethodGet, "/metrics", "", "Authorization", "Bearer "+tokenText(registry.RoleViewer))
		if answer.StatusCode != http.StatusOK || !strings.Contains(text, want) {
			t.Fatalf("%d, want %q: %s", answer.StatusCode, want, text)
		}
		if want == "\nholdfast_queue_up 1\n" {
			close(h.since)
		}
	}
}
