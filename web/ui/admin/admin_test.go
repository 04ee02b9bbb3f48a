package admin_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// hostile is a name that a page must show and not obey.
const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// as is a server whose requests have a token of a role.
func as(t testing.TB, s *uitest.Server, role registry.Role) *uitest.Server {
	t.Helper()
	other := *s
	other.Token = s.TokenOf(t, "the "+string(role), role)
	return &other
}

// withKeys is a server that can encrypt credentials.
func withKeys(t testing.TB) *uitest.Server {
	t.Helper()
	keys, err := secret.Parse("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	must(t, err)
	return uitest.New(t, uitest.Options{Keys: keys})
}

// has fails unless a text has all wants.
func has(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) && !strings.Contains(uitest.Plain(text), want) {
			t.Errorf("the page does not have %q:\n%s", want, mainOf(text))
		}
	}
}

// lacks fails if a text has any of what it must not have.
func lacks(t testing.TB, text string, nots ...string) {
	t.Helper()
	for _, not := range nots {
		if strings.Contains(text, not) {
			t.Errorf("the page has %q:\n%s", not, mainOf(text))
		}
	}
}

// mainOf is a page without its frame.
func mainOf(text string) string {
	_, text, _ = strings.Cut(text, "<main")
	text, _, _ = strings.Cut(text, "</main>")
	return text
}

// led fails unless a form led to an address that begins like this.
func led(t testing.TB, w *httptest.ResponseRecorder, to string) {
	t.Helper()
	if at := w.Header().Get("Location"); w.Code != http.StatusSeeOther || !strings.HasPrefix(at, to) {
		t.Fatalf("status %d, to %q, want %q: %s", w.Code, at, to, w.Body)
	}
}

const bagProfile = `{"BagIt-Profile-Info":{"BagIt-Profile-Identifier":"https://example.org/maps","Source-Organization":"o","External-Description":"d","Version":"1"},` +
	`"Accept-BagIt-Version":["1.0"],"Serialization":"optional","Accept-Serialization":["application/x-tar"]}`

// putMaps makes a collection with a profile that a form shows only in part.
func putMaps(t testing.TB, s *uitest.Server) registry.Profile {
	t.Helper()
	p := registry.Profile{
		Name: "Maps " + hostile, Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/maps"}, BagProfile: []byte(bagProfile),
		Mail: &registry.MailRules{To: []string{"maps@example.org"}, Safe: true},
	}
	must(t, s.Store.PutCollection(t.Context(), registry.Collection{Mnemonic: "maps", Profile: p}, "ann"))
	return p
}

func versionOf(t testing.TB, s *uitest.Server, name string) registry.Collection {
	t.Helper()
	c, err := s.Store.Collection(t.Context(), name)
	must(t, err)
	return c
}

// formOf gathers the values of the fields of a page's form of a profile, as a browser would send them.
func formOf(t testing.TB, text string) url.Values {
	t.Helper()
	_, text, ok := strings.Cut(text, `class="stacked profile">`)
	if !ok {
		t.Fatalf("no form:\n%s", text)
	}
	form, unescape := url.Values{}, strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&#43;", "+", "&amp;", "&").Replace
	for _, m := range regexp.MustCompile(`<input[^>]* name="([^"]*)"[^>]*>`).FindAllStringSubmatch(text, -1) {
		value := regexp.MustCompile(` value="([^"]*)"`).FindStringSubmatch(m[0])
		if value == nil || strings.Contains(m[0], `type="checkbox"`) && !strings.Contains(m[0], " checked") {
			continue
		}
		form.Set(m[1], unescape(value[1]))
	}
	for _, m := range regexp.MustCompile(`(?s)<textarea[^>]* name="([^"]*)"[^>]*>(.*?)</textarea>`).FindAllStringSubmatch(text, -1) {
		form.Set(m[1], unescape(m[2]))
	}
	for _, m := range regexp.MustCompile(`(?s)<select[^>]* name="([^"]*)"[^>]*>.*?<option value="([^"]*)" selected>`).FindAllStringSubmatch(text, -1) {
		form.Set(m[1], m[2])
	}
	return form
}

func TestRoles(t *testing.T) {
	s := withKeys(t)
	putMaps(t, s)
	admin, operator, depositor := as(t, s, registry.RoleAdmin), as(t, s, registry.RoleOperator), as(t, s, registry.RoleDepositor)
	lacks(t, s.Get(t, "/collections/maps", http.StatusOK), "<button class=\"main\"", `method="post" class`, "/edit", "/credentials")
	lacks(t, operator.Get(t, "/collections/maps", http.StatusOK), "/edit", "/credentials", "/limit")
	has(t, operator.Get(t, "/collections/maps", http.StatusOK), `action="/collections/maps/hold"`)
	has(t, admin.Get(t, "/collections/maps", http.StatusOK), `action="/collections/maps/hold"`, `action="/collections/maps/limit"`, `href="/collections/maps/edit"`, `href="/collections/maps/credentials"`)
	lacks(t, depositor.Get(t, "/collections", http.StatusOK), "maps")
	depositor.Get(t, "/collections/maps", http.StatusNotFound)
	for _, path := range []string{"/new/collection", "/collections/maps/edit", "/collections/maps/credentials"} {
		s.Get(t, path, http.StatusForbidden)
		operator.Get(t, path, http.StatusForbidden)
		admin.Get(t, path, http.StatusOK)
	}
	for _, path := range []string{"/new/collection", "/collections/maps/edit", "/collections/maps/hold", "/collections/maps/limit", "/collections/maps/credentials", "/collections/maps/credentials/remove"} {
		if w := s.Post(t, path, url.Values{"version": {"1"}, "reason": {"r"}, "most": {"1"}, "rest": {"{}"}}); w.Code != http.StatusForbidden {
			t.Errorf("a viewer posts to %s: %d", path, w.Code)
		}
	}
	if c := versionOf(t, s, "maps"); c.Version != 1 {
		t.Errorf("the profile is at version %d", c.Version)
	}
}

func TestCollection(t *testing.T) {
	s := withKeys(t)
	putMaps(t, s)
	admin := as(t, s, registry.RoleAdmin)
	text := admin.Get(t, "/collections", http.StatusOK)
	has(t, text, `<a href="/collections/maps">maps</a>`, "&lt;script&gt;", "open")
	lacks(t, admin.Get(t, "/collections?text=MAP", http.StatusOK), "/collections/default")
	has(t, admin.Get(t, "/collections?text=zzz", http.StatusOK), "No collection has this")
	led(t, admin.Post(t, "/collections/maps/hold", url.Values{"reason": {"move " + hostile}}), "/collections/maps")
	led(t, admin.Post(t, "/collections/maps/limit", url.Values{"most": {"3"}, "weight": {"2"}}), "/collections/maps")
	text = admin.Get(t, "/collections/maps", http.StatusOK)
	has(t, text, "held", "move &lt;script&gt;", "at most 3 at once", "2 in a row", "https://example.org/maps", "maps@example.org", "Release the collection")
	lacks(t, text, "<script>alert", "<img")
	led(t, admin.Post(t, "/collections/maps/release", nil), "/collections/maps")
	led(t, admin.Post(t, "/collections/maps/limit", url.Values{"most": {""}, "weight": {"0"}}), "/collections/maps")
	lacks(t, admin.Get(t, "/collections/maps", http.StatusOK), "at most 3", "held")
	admin.Get(t, "/collections/none", http.StatusNotFound)
}

// TestProfile_Form checks that a dry run changes nothing and tells what would change, and that a save
// keeps what the form does not show.
func TestProfile_Form(t *testing.T) {
	s := withKeys(t)
	before := putMaps(t, s)
	admin := as(t, s, registry.RoleAdmin)
	form := formOf(t, admin.Get(t, "/collections/maps/edit", http.StatusOK))
	if form.Get("name") != before.Name || form.Get("mail.safe") != "yes" || form.Get("version") != "1" || form.Has("scan") {
		t.Fatalf("the form has %v", form)
	}
	form.Set("scan", "yes")
	form.Set("priority", "7")
	form.Set("mail.to", "maps@example.org\r\natlas@example.org\r\n")
	form.Set("do", "check")
	w := admin.Post(t, "/collections/maps/edit", form)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	has(t, w.Body.String(), "A save would make version 2", "scan: true; it was not set", "priority: 7; it was not set", "atlas@example.org")
	if c := versionOf(t, s, "maps"); c.Version != 1 || c.Profile.Scan {
		t.Fatalf("the dry run made version %d", c.Version)
	}
	form = formOf(t, w.Body.String())
	form.Set("do", "save")
	led(t, admin.Post(t, "/collections/maps/edit", form), "/collections/maps?saved=2")
	has(t, admin.Get(t, "/collections/maps?saved=2", http.StatusOK), "Version 2 of the profile is saved")
	after := versionOf(t, s, "maps").Profile
	if !after.Scan || *after.Priority != 7 || len(after.Mail.To) != 2 || !after.Mail.Safe || string(after.BagProfile) != string(before.BagProfile) || after.Callback != nil {
		t.Errorf("saved %+v", after)
	}
	text := admin.Get(t, "/collections/maps/versions?from=2&to=1", http.StatusOK)
	has(t, text, "From version 2 to version 1", "scan: removed; it was true", "created")
	text = admin.Get(t, "/collections/maps/versions/1", http.StatusOK)
	has(t, text, "owner: ark:/99999/owner", "/collections/maps/edit?from=1")
	if old := formOf(t, admin.Get(t, "/collections/maps/edit?from=1", http.StatusOK)); old.Has("scan") || old.Get("version") != "2" {
		t.Errorf("the older version's form has %v", old)
	}
	form.Set("priority", "soon")
	form.Set("owner", "nobody")
	if w = admin.Post(t, "/collections/maps/edit", form); w.Code != http.StatusConflict {
		t.Errorf("status %d for a number that is none", w.Code)
	}
	has(t, w.Body.String(), "is not a whole number", `value="soon"`, `aria-invalid="true"`)
	form.Set("priority", "")
	form.Set("version", "2")
	has(t, admin.Post(t, "/collections/maps/edit", form).Body.String(), "Refused:", `value="nobody"`, `aria-invalid="true"`)
}

// TestProfile_Text checks that the same profile is edited as text, whose faults have places.
func TestProfile_Text(t *testing.T) {
	s := withKeys(t)
	putMaps(t, s)
	admin := as(t, s, registry.RoleAdmin)
	form := formOf(t, admin.Get(t, "/collections/maps/edit", http.StatusOK))
	form.Set("scan", "yes")
	form.Set("do", "yaml")
	text := admin.Post(t, "/collections/maps/edit", form).Body.String()
	form = formOf(t, text)
	has(t, form.Get("text"), "scan: true", "bag_profile:")
	form.Set("do", "check")
	yaml := form.Get("text")
	form.Set("text", yaml+"ownr: x\n")
	has(t, admin.Post(t, "/collections/maps/edit", form).Body.String(), "line ", "did you mean owner?", "ownr: x")
	form.Set("text", strings.Replace(yaml, "ark:/99999/owner", "nobody", 1))
	has(t, admin.Post(t, "/collections/maps/edit", form).Body.String(), "line 2, column 8, owner")
	form.Set("text", yaml)
	form.Set("do", "json")
	form = formOf(t, admin.Post(t, "/collections/maps/edit", form).Body.String())
	has(t, form.Get("text"), `"scan": true`)
	form.Set("do", "form")
	if form = formOf(t, admin.Post(t, "/collections/maps/edit", form).Body.String()); form.Get("scan") != "yes" || form.Get("version") != "1" {
		t.Errorf("the form has %v", form)
	}
	if c := versionOf(t, s, "maps"); c.Version != 1 {
		t.Errorf("the profile is at version %d", c.Version)
	}
	led(t, admin.Post(t, "/collections/maps/edit", url.Values{"as": {"yaml"}, "version": {"1"}, "text": {yaml}, "do": {"save"}}), "/collections/maps?saved=2")
}

// TestProfile_Conflict checks that a save over a newer version is refused and shows both changes.
func TestProfile_Conflict(t *testing.T) {
	s := withKeys(t)
	other := putMaps(t, s)
	admin := as(t, s, registry.RoleAdmin)
	form := formOf(t, admin.Get(t, "/collections/maps/edit", http.StatusOK))
	other.Description = "by another " + hostile
	must(t, s.Store.PutCollection(t.Context(), registry.Collection{Mnemonic: "maps", Profile: other, Version: 1}, "bob"))
	form.Set("embargo", "till 2030")
	form.Set("do", "save")
	w := admin.Post(t, "/collections/maps/edit", form)
	text := w.Body.String()
	has(t, text, "Nothing was saved: bob has saved version 2", "description: by another &lt;script&gt;", "embargo: till 2030; it was not set", "description: removed", `value="till 2030"`)
	if c := versionOf(t, s, "maps"); w.Code != http.StatusConflict || c.Version != 2 || c.Profile.Embargo != "" {
		t.Fatalf("status %d, version %d", w.Code, c.Version)
	}
	form = formOf(t, text)
	form.Set("description", other.Description)
	form.Set("do", "save")
	led(t, admin.Post(t, "/collections/maps/edit", form), "/collections/maps?saved=3")
	if p := versionOf(t, s, "maps").Profile; p.Description != other.Description || p.Embargo != "till 2030" {
		t.Errorf("saved %+v", p)
	}
}

func TestNewCollection(t *testing.T) {
	s := withKeys(t)
	admin := as(t, s, registry.RoleAdmin)
	form := formOf(t, admin.Get(t, "/new/collection", http.StatusOK))
	form.Set("do", "check")
	has(t, admin.Post(t, "/new/collection", form).Body.String(), "The collection needs a short name")
	form.Set("mnemonic", "new")
	form.Set("owner", "ark:/99999/o")
	form.Set("collections", "ark:/99999/c")
	has(t, admin.Post(t, "/new/collection", form).Body.String(), "The collection could be created", "owner: ark:/99999/o")
	if _, err := s.Store.Collection(t.Context(), "new"); !errors.Is(err, registry.ErrNotFound) {
		t.Fatalf("the dry run made a collection: %v", err)
	}
	form.Set("do", "save")
	led(t, admin.Post(t, "/new/collection", form), "/collections/new?saved=1")
	has(t, admin.Post(t, "/new/collection", form).Body.String(), "There is a collection new already")
}

func TestCredentials(t *testing.T) {
	const secretText = "pa$$ with <b> secret"
	s := withKeys(t)
	putMaps(t, s)
	admin := as(t, s, registry.RoleAdmin)
	form := url.Values{"origin": {"https://files.example.org"}, "kind": {"basic"}, "name": {""}, "secret": {secretText}}
	w := admin.Post(t, "/collections/maps/credentials", form)
	has(t, w.Body.String(), "Refused:", "basic needs a user", `value="https://files.example.org"`)
	lacks(t, w.Body.String(), "pa$$")
	form.Set("name", hostile)
	form.Set("origin", "files.example.org")
	form.Set("name", "reader")
	has(t, admin.Post(t, "/collections/maps/credentials", form).Body.String(), "Refused:", `value="reader"`)
	form.Set("origin", "https://files.example.org")
	led(t, admin.Post(t, "/collections/maps/credentials", form), "/collections/maps/credentials?set=https")
	text := admin.Get(t, "/collections/maps/credentials?set=https%3A%2F%2Ffiles.example.org", http.StatusOK)
	has(t, text, "The credential for https://files.example.org is set", "reader", "basic")
	lacks(t, text, "pa$$")
	led(t, admin.Post(t, "/collections/maps/credentials/remove", url.Values{"origin": {"https://files.example.org"}}), "/collections/maps/credentials")
	led(t, admin.Post(t, "/collections/maps/credentials/remove", url.Values{"origin": {"https://files.example.org"}}), "/collections/maps/credentials")
	has(t, admin.Get(t, "/collections/maps/credentials", http.StatusOK), "There are no credentials")
}
