package account_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// as is a server whose requests have a token of a role.
func as(t testing.TB, s *uitest.Server, role registry.Role) *uitest.Server {
	t.Helper()
	other := *s
	other.Token = s.TokenOf(t, "the "+string(role), role)
	return &other
}

func has(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
}

func lacks(t testing.TB, text string, nots ...string) {
	t.Helper()
	for _, not := range nots {
		if strings.Contains(text, not) {
			t.Errorf("the page has %q:\n%s", not, text)
		}
	}
}

func tokens(t testing.TB, s *uitest.Server) map[string]registry.Token {
	t.Helper()
	all, err := s.Store.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]registry.Token{}
	for _, one := range all {
		byName[one.Name] = one
	}
	return byName
}

func TestTokens_Roles(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	admin := as(t, s, registry.RoleAdmin)
	id := tokens(t, s)["the admin"].ID
	for _, role := range []registry.Role{registry.RoleDepositor, registry.RoleViewer, registry.RoleOperator} {
		other := as(t, s, role)
		for _, path := range []string{"/tokens", "/new/token", "/tokens/" + url.PathEscape(id) + "/revoke"} {
			other.Get(t, path, http.StatusForbidden)
		}
		for _, path := range []string{"/new/token", "/tokens/" + url.PathEscape(id) + "/revoke"} {
			if w := other.Post(t, path, url.Values{"name": {"x"}, "role": {"viewer"}}); w.Code != http.StatusForbidden {
				t.Errorf("a %s posts to %s: %d", role, path, w.Code)
			}
		}
		has(t, other.Get(t, "/account", http.StatusOK), "the "+string(role), "What you may do")
	}
	has(t, admin.Get(t, "/tokens", http.StatusOK), "the viewer", "the admin", "/new/token", `data-label="Last used">–`)
	if err := s.Store.NoteTokenUses(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, admin.Get(t, "/tokens", http.StatusOK), `data-label="Last used"><time`)
	has(t, admin.Get(t, "/tokens/"+url.PathEscape(id)+"/revoke", http.StatusOK), "Last used <time")
	has(t, admin.Get(t, "/account", http.StatusOK), "create and revoke tokens")
	lacks(t, s.Get(t, "/account", http.StatusOK), "create and revoke tokens", "request deletions")
}

// TestTokens_SecretOnce checks that a new token's secret works, and is on no page afterwards.
func TestTokens_SecretOnce(t *testing.T) {
	const hostile = `<script>alert(1)</script>"'>`
	s := uitest.New(t, uitest.Options{})
	admin := as(t, s, registry.RoleAdmin)
	has(t, admin.Get(t, "/new/token", http.StatusOK), `name="collection" data-field="collections" value="default"`, `value="depositor" checked`)
	form := url.Values{"name": {hostile}, "role": {"depositor"}, "stage": {"download"}}
	w := admin.Post(t, "/new/token", form)
	has(t, w.Body.String(), "Refused:", "name the collections", "&lt;script&gt;")
	has(t, w.Body.String(), ">Collections of a depositor</a>")
	lacks(t, w.Body.String(), "<script>alert", "body.collections")
	form.Set("collection", "default")
	form.Set("expires", "2001-01-01")
	has(t, admin.Post(t, "/new/token", form).Body.String(), "Refused:", ">Last day on which it is valid</a>", "in the past", `value="default" checked`)
	if _, ok := tokens(t, s)[hostile]; ok {
		t.Fatal("a refused token was made")
	}
	form.Set("expires", "2999-12-31")
	w = admin.Post(t, "/new/token", form)
	found := regexp.MustCompile(`hf_[A-Z0-9]+`).FindAllString(w.Body.String(), -1)
	if w.Code != http.StatusCreated || len(found) != 1 || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("status %d, %d secrets, %v", w.Code, len(found), w.Header())
	}
	has(t, w.Body.String(), `data-copy="secret"`, "copy.js")
	other := *s
	other.Token = found[0]
	has(t, other.Get(t, "/account", http.StatusOK), "&lt;script&gt;", "default")
	made := tokens(t, s)[hostile]
	if made.Role != registry.RoleDepositor || len(made.Stages) != 0 || made.ExpiresAt == nil {
		t.Errorf("made %+v", made)
	}
	for _, path := range []string{"/tokens", "/tokens?all=1", "/tokens/" + made.ID + "/revoke", "/new/token", "/audit?types=token-created"} {
		lacks(t, admin.Get(t, path, http.StatusOK), found[0], "<script>alert")
	}
	if w = admin.Post(t, "/new/token", form); w.Code != http.StatusConflict || strings.Contains(w.Body.String(), found[0]) {
		t.Errorf("the form sent twice: %d %s", w.Code, w.Body)
	}
}

func TestTokens_Worker(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	admin := as(t, s, registry.RoleAdmin)
	form := url.Values{"name": {"w"}, "role": {"worker"}, "stage": {"download", "process"}, "others": {"run:harvest"}, "collection": {"default"}}
	if w := admin.Post(t, "/new/token", form); w.Code != http.StatusCreated {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if made := tokens(t, s)["w"]; len(made.Stages) != 3 || len(made.Collections) != 0 {
		t.Errorf("made %+v", made)
	}
}

func TestTokens_Revoke(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	admin := as(t, s, registry.RoleAdmin)
	all := tokens(t, s)
	own, other := "/tokens/"+url.PathEscape(all["the admin"].ID)+"/revoke", "/tokens/"+url.PathEscape(all["a viewer"].ID)+"/revoke"
	has(t, admin.Get(t, own, http.StatusOK), "It is your own")
	if w := admin.Post(t, own, nil); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "Refused:") {
		t.Errorf("the last admin's token: %d", w.Code)
	}
	has(t, admin.Get(t, other, http.StatusOK), "This cannot be undone")
	if w := admin.Post(t, other, nil); w.Code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	lacks(t, admin.Get(t, "/tokens", http.StatusOK), "a viewer")
	has(t, admin.Get(t, "/tokens?all=1", http.StatusOK), "a viewer", "revoked")
	has(t, admin.Get(t, other, http.StatusOK), "It is revoked already")
	if w := s.Send(t, http.MethodGet, "/account", nil); w.Code != http.StatusUnauthorized {
		t.Errorf("the revoked token opens a page: %d", w.Code)
	}
	admin.Get(t, "/tokens/none/revoke", http.StatusNotFound)
}

// TestSignInLink checks that a link is shown as the browser reaches the server, and works once.
func TestSignInLink(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	w := s.Post(t, "/account/link", nil)
	link := regexp.MustCompile(`http://example\.com(/login\?link=[A-Z0-9]+)`).FindStringSubmatch(w.Body.String())
	if w.Code != http.StatusCreated || link == nil {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	lacks(t, s.Get(t, "/account", http.StatusOK), link[1])
}
