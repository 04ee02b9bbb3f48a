package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

func TestTokens(t *testing.T) {
	b := newBench(t)
	admin := b.as(t, registry.RoleAdmin)
	made, err := admin.CreateToken(t.Context(), wire.TokenRequest{Name: "ann", Role: "depositor", Collections: []string{"default"}})
	must(t, err)
	if !strings.HasPrefix(made.Secret, "hf_") || made.Token.CreatedBy != "the admin" || made.Token.ID == "" {
		t.Errorf("made %+v", made)
	}
	ann := client.New(b.server.URL, made.Secret, client.Options{})
	t.Cleanup(ann.Close)
	_, err = ann.Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/a"}, "")
	must(t, err)
	all, err := admin.Tokens(t.Context())
	must(t, err)
	if len(all) != 6 || !slices.ContainsFunc(all, func(k registry.Token) bool {
		return k.Name == "ann" && slices.Equal(k.Collections, []string{"default"})
	}) {
		t.Errorf("tokens %+v", all)
	}
	must(t, admin.RevokeToken(t.Context(), made.Token.ID))
	must(t, admin.RevokeToken(t.Context(), made.Token.ID))
	_, err = ann.Items(t.Context(), registry.ItemQuery{})
	problemOf(t, err, http.StatusUnauthorized, wire.CodeUnauthenticated)
	problemOf(t, admin.RevokeToken(t.Context(), "none"), http.StatusNotFound, wire.CodeNotFound)
	_, err = admin.CreateToken(t.Context(), wire.TokenRequest{Name: "ann", Role: "viewer"})
	if problemOf(t, err, http.StatusConflict, wire.CodeNameTaken); !errors.Is(err, registry.ErrNameTaken) {
		t.Errorf("error %v, want ErrNameTaken", err)
	}
	err = admin.RevokeToken(t.Context(), "admin")
	if problemOf(t, err, http.StatusConflict, wire.CodeLastAdmin); !errors.Is(err, registry.ErrLastAdmin) {
		t.Errorf("error %v, want ErrLastAdmin", err)
	}
	_, err = admin.Tokens(t.Context())
	must(t, err)
	// The secret and its hash are nowhere but in the answer.
	events, err := b.store.Feed(t.Context(), registry.FeedQuery{Limit: 500})
	must(t, err)
	text, err := json.Marshal(events)
	must(t, err)
	_, listed := b.send(t, http.MethodGet, "/api/v1/tokens", "")
	for where, said := range map[string]string{"events": string(text), "log": b.log.String(), "list": listed} {
		for _, s := range []string{made.Secret, signin.Hash(made.Secret)} {
			if strings.Contains(said, s) {
				t.Errorf("the %s has the token's secret or hash", where)
			}
		}
	}
	if !strings.Contains(string(text), "token-created") || !strings.Contains(string(text), "token-revoked") {
		t.Errorf("events %s", text)
	}
}

func TestTokens_Faults(t *testing.T) {
	b := newBench(t)
	for body, location := range map[string]string{
		`{"name":"","role":"viewer"}`:                                         "body.name",
		`{"name":"worker","role":"viewer"}`:                                   "body.name",
		`{"name":"a\u0007","role":"viewer"}`:                                  "body.name",
		`{"name":"a","role":"boss"}`:                                          "body.role",
		`{"name":"a","role":""}`:                                              "body.role",
		`{"name":"a","role":"depositor"}`:                                     "body.collections",
		`{"name":"a","role":"viewer","collections":["default"]}`:              "body.collections",
		`{"name":"a","role":"depositor","collections":["default","default"]}`: "body.collections[1]",
		`{"name":"a","role":"viewer","expires_at":"2001-01-01T00:00:00Z"}`:    "body.expires_at",
		`{"name":"a","role":"viewer","expires_at":"soon"}`:                    "body.expires_at",
		`{"name":"a","role":"worker"}`:                                        "body.stages",
		`{"name":"a","role":"viewer","stages":["scan"]}`:                      "body.stages",
		`{"name":"a","role":"worker","stages":["scan","scan"]}`:               "body.stages[1]",
		`{"name":"a","role":"worker","stages":["scan","cook"]}`:               "body.stages[1]",
	} {
		answer, text := b.send(t, http.MethodPost, "/api/v1/tokens", body)
		if p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid); len(p.Faults) != 1 || p.Faults[0].Location != location {
			t.Errorf("%s: %+v, want one fault at %s", body, p.Faults, location)
		}
	}
	answer, text := b.send(t, http.MethodPost, "/api/v1/tokens", `{"name":"a","role":"depositor","collections":["none"]}`)
	wantProblem(t, answer, text, http.StatusNotFound, wire.CodeNotFound)
}

// TestAccess_Principles checks rules about roles that the access table must never break.
func TestAccess_Principles(t *testing.T) {
	text, err := api.Specification()
	must(t, err)
	var spec specified
	must(t, json.Unmarshal(text, &spec))
	roles := access.Roles()
	described := []string{"pages", "forms", "abandon", "share-view", "metrics"}
	// An admin's token would not fence the writes of a program that serves functions.
	functions := []string{"announce-functions", "claim-task", "renew-task", "keep-value", "settle-task"}
	for id := range access.Stages() {
		want := []registry.Role{registry.RoleWorker, registry.RoleAdmin}
		if slices.Contains(functions, id) {
			want = want[:1]
		}
		if !slices.Equal(roles[id], want) {
			t.Errorf("%v may %s, which is for workers", roles[id], id)
		}
		described = append(described, id)
	}
	for path, methods := range spec.Paths {
		for method, op := range methods {
			id := op.OperationID
			described = append(described, id)
			may := func(r registry.Role) bool { return slices.Contains(roles[id], r) }
			// What somebody does about their own browsers changes nothing of what is kept here.
			own := slices.Contains([]string{"create-sign-in-link", "end-session"}, id)
			changes := method != "get" && method != "head" && method != "options" && !own
			switch {
			case may(registry.RoleViewer) && changes:
				t.Errorf("a viewer may %s", id)
			case id == "own-token": // anybody may ask who they are
			case may(registry.RoleWorker) && !slices.Contains(functions, id):
				t.Errorf("a worker may %s", id)
			case may(registry.RoleDepositor) && changes && !slices.Contains([]string{"upload", "continue-upload", "remove-upload", "submit-payload", "check", "prepare-graph", "seal-graph", "restore-object", "cancel-batch", "add-view", "edit-view", "remove-view"}, id):
				t.Errorf("a depositor may %s", id)
			case strings.HasPrefix(path, "/tokens") && !slices.Equal(roles[id], []registry.Role{registry.RoleAdmin}):
				t.Errorf("%v may %s", roles[id], id)
			case strings.HasPrefix(path, "/audit") && (may(registry.RoleDepositor) || may(registry.RoleViewer)):
				t.Errorf("%v may %s", roles[id], id)
			}
		}
	}
	for id := range roles {
		if !slices.Contains(described, id) {
			t.Errorf("the access table has %s, which is no operation", id)
		}
	}
}

func (b *bench) refusals(t *testing.T) (out []registry.Refusal) {
	t.Helper()
	events, err := b.store.Feed(t.Context(), registry.FeedQuery{Types: []string{registry.EventRefused}, Limit: 500})
	must(t, err)
	for _, e := range events {
		var r registry.Refusal
		must(t, json.Unmarshal(e.Data, &r))
		if r.Actor != e.Actor {
			t.Errorf("event's actor %q, refusal's %q", e.Actor, r.Actor)
		}
		out = append(out, r)
	}
	return out
}

// TestRefusals_AreEvents checks that every refusal is an event once it is answered.
func TestRefusals_AreEvents(t *testing.T) {
	b := newBench(t)
	_, job := b.batchOf(t, "x")
	for _, c := range []struct {
		method, path, body, auth string
		want                     registry.Refusal
	}{
		{"GET", "/api/v1/items", "", "Bearer hf_wrong", registry.Refusal{Operation: "GET /api/v1/items", Code: "unauthenticated", Status: 401}},
		{"GET", "/api/v1/tokens", "", "Bearer " + tokenText(registry.RoleViewer), registry.Refusal{Actor: "the viewer", Operation: "GET /api/v1/tokens", Code: "forbidden", Status: 403}},
		{"POST", "/api/v1/items/" + job + "/commands", `{"act":"requeue"}`, "Bearer " + tokenText(registry.RoleOperator), registry.Refusal{
			Actor: "the operator", Operation: "POST /api/v1/items/" + job + "/commands", Code: "transition-not-allowed", Status: 409,
		}},
	} {
		before := len(b.refusals(t))
		answer, _ := b.send(t, c.method, c.path, c.body, "Authorization", c.auth)
		got := b.refusals(t)
		if answer.StatusCode != c.want.Status || len(got) != before+1 {
			t.Errorf("%s %s: status %d, %d events, want %d and one more", c.method, c.path, answer.StatusCode, len(got)-before, c.want.Status)
			continue
		}
		last := got[before]
		c.want.Remote, c.want.RequestID, c.want.Detail = "127.0.0.1", answer.Header.Get(wire.RequestIDHeader), last.Detail
		if last != c.want || last.Detail == "" || strings.Contains(last.Detail, "hf_") {
			t.Errorf("refusal %+v, want %+v", last, c.want)
		}
	}
	before := len(b.refusals(t))
	b.send(t, http.MethodGet, "/api/v1/items/none", "") // a mistake is no refusal
	if got := len(b.refusals(t)); got != before {
		t.Errorf("%d events of a 404", got-before)
	}
	page, err := b.as(t, registry.RoleOperator).Audit(t.Context(), registry.AuditQuery{Actor: "the viewer"})
	must(t, err)
	if len(page.Rows) != 1 || page.Rows[0].Type != registry.EventRefused {
		t.Errorf("audit %+v, want the viewer's refusal", page.Rows)
	}
	_, err = b.as(t, registry.RoleOperator).Audit(t.Context(), registry.AuditQuery{After: "!"})
	problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeInvalid)
}

// TestRefusals_Flood checks that a flood of invalid tokens becomes a few events and a complete
// count.
func TestRefusals_Flood(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Now().UnixNano())
	b := newBench(t, func(_ *bench, o *api.Options) { o.Now = func() time.Time { return time.Unix(0, now.Load()) } })
	const senders, each = 8, 50
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for n := range each {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+"/api/v1/items", http.NoBody)
				must(t, err)
				r.Header.Set("Authorization", fmt.Sprintf("Bearer hf_wrong%d.%d", i, n))
				answer, err := b.server.Client().Do(r)
				must(t, err)
				if answer, text := read(t, answer); answer.StatusCode != http.StatusUnauthorized {
					t.Errorf("status %d: %s", answer.StatusCode, text)
				}
			}
		})
	}
	wg.Wait()
	if got := len(b.refusals(t)); got != 20 {
		t.Errorf("%d events in the minute, want 20", got)
	}
	now.Add(int64(time.Minute))
	b.send(t, http.MethodGet, "/healthz", "") // whatever is asked next
	var total int64
	for _, r := range b.refusals(t) {
		total += max(r.Count, 1)
	}
	if total != senders*each {
		t.Errorf("the events stand for %d refusals, want %d", total, senders*each)
	}
	if got := len(b.refusals(t)); got != 21 {
		t.Errorf("%d events, want 21", got)
	}
}
