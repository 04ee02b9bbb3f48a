package e2e

import (
	"bufio"
	_ "embed"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/npmtest"
)

//go:embed testdata/oidcprovider.js
var oidcProvider string

// openProvider starts an OpenID provider without any setup.
func openProvider(t *testing.T) (issuer string) {
	t.Helper()
	node := npmtest.Node(t.Context(), t, "oidc-provider", "9.13.3", oidcProvider)
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log := &logText{}
	node.Stderr = log
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the provider printed nothing: %v\n%s", node.Wait(), log)
	}
	issuer = lines.Text()
	over := make(chan struct{})
	go func() {
		for lines.Scan() {
		}
		node.Wait()
		close(over)
	}()
	t.Cleanup(func() {
		node.Process.Kill()
		<-over
		if t.Failed() {
			t.Logf("the provider's log:\n%s", log)
		}
	})
	return issuer
}

// signInAt signs in at the provider, which asks for name and consent, and returns the resulting
// page.
func (v *visitor) signInAt(person, next string) (status int, page string, at *url.URL) {
	v.t.Helper()
	status, page, at = v.send(http.MethodGet, "/login/oidc?next="+url.QueryEscape(next), nil)
	action := regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	prompt := regexp.MustCompile(`name="prompt" value="([^"]+)"`)
	for range 2 {
		form, asked := action.FindStringSubmatch(page), prompt.FindStringSubmatch(page)
		if form == nil || asked == nil {
			return status, page, at
		}
		where, err := at.Parse(html.UnescapeString(form[1]))
		if err != nil {
			v.t.Fatal(err)
		}
		status, page, at = v.send(http.MethodPost, where.String(), url.Values{"prompt": {asked[1]}, "login": {person}, "password": {"x"}})
	}
	return status, page, at
}

// TestOIDC: people sign in at a real OpenID provider, with roles and collections from its claims.
func TestOIDC(t *testing.T) {
	t.Parallel()
	issuer := openProvider(t)
	h := up(t, "HOLDFAST_OIDC_ISSUER="+issuer, "HOLDFAST_OIDC_CLIENT_ID=holdfast", "HOLDFAST_OIDC_CLIENT_SECRET=the secret of the client",
		"HOLDFAST_OIDC_SCOPES=email,groups", "HOLDFAST_OIDC_ROLES=staff=operator; readers=viewer; curators=depositor:maps", "HOLDFAST_OIDC_COLLECTIONS_CLAIM=collections")
	base, admin := h.address()
	for _, c := range []string{"maps", "letters", "others"} {
		h.collection(c)
	}
	ann := newVisitor(t, base, nil)
	if status, page := ann.get("/login/oidc"); status != http.StatusServiceUnavailable || !strings.Contains(page, "OpenID provider does not answer") {
		t.Errorf("while the provider is away: %d\n%s", status, page)
	}
	if status, _ := ann.get(issuer + "/setup?at=" + url.QueryEscape(base)); status != http.StatusOK {
		t.Fatalf("set up: %d", status)
	}

	status, page, at := ann.signInAt("ann", "/objects?text=x")
	if status != http.StatusOK || at.String() != base+"/objects?text=x" {
		t.Fatalf("ann came to %d %s:\n%s", status, at, page)
	}
	ann.signedIn("oidc:ann@example.org", admin)
	if _, page := ann.get("/sessions"); !strings.Contains(page, `<span class="role">operator</span>`) || !strings.Contains(page, "with the identity provider") {
		t.Errorf("of two roles the higher one counts:\n%s", page)
	}

	// Who has a role in collections only sees these; an address that was not verified is nobody's
	// name.
	bob := newVisitor(t, base, nil)
	bob.signInAt("bob", "/")
	bob.signedIn("oidc:bob", admin)
	if _, text := bob.get("/api/v1/collections"); !strings.Contains(text, `"maps"`) || !strings.Contains(text, `"letters"`) || strings.Contains(text, `"others"`) {
		t.Errorf("collections of bob: %s", text)
	}

	eve := newVisitor(t, base, nil)
	if status, page, _ := eve.signInAt("eve", "/"); status != http.StatusForbidden || !strings.Contains(page, "eve@example.org") || !strings.Contains(page, "ask an admin") {
		t.Errorf("without a role: %d\n%s", status, page)
	}
	eve.signedOut()

	// An answer that this browser has not asked for signs nobody in.
	if status, _ := eve.get("/login/oidc/callback?code=x&state=y"); status != http.StatusUnauthorized {
		t.Errorf("a foreign answer: %d", status)
	}
	eve.get("/login/oidc")
	if status, _ := eve.get("/login/oidc/callback?code=x&state=y"); status != http.StatusUnauthorized {
		t.Errorf("an answer with another state: %d", status)
	}
	eve.signedOut()

	_, page = ann.post("/logout", nil)
	end := regexp.MustCompile(`href="(` + regexp.QuoteMeta(issuer) + `[^"]+)"`).FindStringSubmatch(page)
	if end == nil {
		t.Fatalf("no way to sign out at the provider:\n%s", page)
	}
	if status, page := ann.get(html.UnescapeString(end[1])); status != http.StatusOK {
		t.Errorf("sign out at the provider: %d\n%s", status, page)
	}
	ann.signedOut()
	audit := h.run("audit", "list", "--types", "signed-in,signed-out,refused").stdout
	for _, want := range []string{"oidc:ann@example.org", "oidc:bob", "signed-out", "403"} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit log has no %s:\n%s", want, audit)
		}
	}
}
