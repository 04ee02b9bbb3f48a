package api_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/ui"
	"github.com/holdfast/holdfast/web/ui/page"
)

// browser is a page's visitor: it has a cookie, and says where its forms come from.
type browser struct {
	b      *bench
	client *http.Client
	cookie *http.Cookie
}

func newBrowser(t *testing.T, b *bench, role registry.Role) *browser {
	t.Helper()
	v := visitor(b)
	answer, text := v.send(t, http.MethodPost, "/login", url.Values{"token": {tokenText(role)}}, "Sec-Fetch-Site", "same-origin")
	if v.cookie == nil {
		t.Fatalf("sign in as %s: %d, no cookie: %s", role, answer.StatusCode, text)
	}
	return v
}

// visitor is a browser that has not signed in.
func visitor(b *bench) *browser {
	hop := *b.server.Client()
	hop.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{b: b, client: &hop}
}

func (v *browser) send(t *testing.T, method, path string, form url.Values, header ...string) (reply, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, v.b.server.URL+path, strings.NewReader(form.Encode()))
	must(t, err)
	if v.cookie != nil {
		r.AddCookie(v.cookie)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := v.client.Do(r)
	must(t, err)
	for _, c := range answer.Cookies() {
		v.cookie = c
		if c.MaxAge < 0 {
			v.cookie = nil
		}
	}
	return read(t, answer)
}

// mainOf is the part of a page that is not the same on all pages.
func mainOf(text string) string {
	_, text, _ = strings.Cut(text, "<main ")
	text, _, _ = strings.Cut(text, "</main>")
	return text
}

// signOut is a button that every page has.
const signOut = `<button class="quiet">Sign out</button>`

func withPages(_ *bench, o *api.Options) {
	o.UI = func(p api.ForPages) (http.Handler, error) {
		return ui.New(page.Options{Transport: p.API, May: p.May, Caller: p.Caller, UploadUse: p.UploadUse, Changes: p.Changes, Specification: p.Specification, Log: slog.New(slog.DiscardHandler)})
	}
}

// TestForms_WhoMayAct checks that the pages' own forms act in the user's name. Forms from other
// sites, or without the right or a session, change nothing and become events.
func TestForms_WhoMayAct(t *testing.T) {
	b := newBench(t, withPages)
	_, job := b.batchOf(t, "x")
	path := "/items/" + job + "/acts"
	form := url.Values{"act": {"cancel"}, "reason": {"no longer wanted"}}
	same := []string{"Sec-Fetch-Site", "same-origin", "Origin", b.server.URL}
	state := func() registry.State {
		it, err := b.store.Item(t.Context(), job)
		must(t, err)
		return it.State
	}
	begin := state()
	operator := newBrowser(t, b, registry.RoleOperator)
	nobody := *operator
	nobody.cookie = &http.Cookie{Name: "other", Value: "x"}
	for _, c := range []struct {
		name   string
		who    *browser
		header []string
		status int
	}{
		{"from another site", operator, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test"}, http.StatusForbidden},
		{"from another port", operator, []string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"}, http.StatusForbidden},
		{"from another origin, of an old browser", operator, []string{"Origin", "https://evil.test"}, http.StatusForbidden},
		{"from nowhere", operator, nil, http.StatusForbidden},
		{"of a viewer", newBrowser(t, b, registry.RoleViewer), same, http.StatusForbidden},
		{"of a depositor", newBrowser(t, b, registry.RoleDepositor), same, http.StatusForbidden},
		{"of nobody", &nobody, same, http.StatusUnauthorized},
	} {
		before := len(b.refusals(t))
		answer, text := c.who.send(t, http.MethodPost, path, form, c.header...)
		if answer.StatusCode != c.status || state() != begin {
			t.Errorf("%s: %d, item %s, want %d and the item as it was: %s", c.name, answer.StatusCode, state(), c.status, text)
		}
		if got := len(b.refusals(t)) - before; got != 1 {
			t.Errorf("%s: %d events, want one", c.name, got)
		}
	}
	// The cookie counts for requests of our own pages alone, of the API, too.
	for want, header := range map[int][]string{http.StatusForbidden: nil, http.StatusBadRequest: same} {
		answer, _ := operator.send(t, http.MethodPost, "/api/v1/items/"+job+"/commands", nil, header...)
		if answer.StatusCode != want || state() != begin {
			t.Errorf("API with a cookie: %d, want %d", answer.StatusCode, want)
		}
	}
	answer, text := operator.send(t, http.MethodPost, path, form, same...)
	location := answer.Header.Get("Location")
	if answer.StatusCode != http.StatusSeeOther || !strings.HasPrefix(location, "/items/"+job+"?did=") || state() != registry.StateCancelled {
		t.Fatalf("act: %d to %q, item %s: %s", answer.StatusCode, location, state(), text)
	}
	_, text = operator.send(t, http.MethodGet, location, nil)
	for _, want := range []string{"Done: cancel by the operator", "no longer wanted", `value="requeue"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
}

// searchForm is a form that changes nothing.
var searchForm = regexp.MustCompile(`(?s)<form [^>]*role="search".*?</form>`)

// TestForms_Buttons checks that the pages show buttons for the acts that the item allows, to those
// who may act.
func TestForms_Buttons(t *testing.T) {
	b := newBench(t, withPages)
	batch, job := b.batchOf(t, "x")
	must(t, b.store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldBatch, Key: batch, Reason: "look", Actor: "a"}))
	for role, want := range map[registry.Role]bool{
		registry.RoleOperator: true, registry.RoleAdmin: true, registry.RoleViewer: false, registry.RoleDepositor: false,
	} {
		v := newBrowser(t, b, role)
		for _, path := range []string{"/items/" + job, "/batches/" + batch, "/holds"} {
			answer, text := v.send(t, http.MethodGet, path, nil)
			if got := strings.Contains(searchForm.ReplaceAllString(mainOf(text), ""), "<button"); answer.StatusCode != http.StatusOK || got != want {
				t.Errorf("%s as %s: %d, buttons %v, want %v", path, role, answer.StatusCode, got, want)
			}
		}
		answer, _ := v.send(t, http.MethodGet, "/items/"+job+"/acts?act=cancel", nil)
		if got := answer.StatusCode == http.StatusOK; got != want {
			t.Errorf("form as %s: %d", role, answer.StatusCode)
		}
	}
	it, err := b.store.Item(t.Context(), job)
	must(t, err)
	_, text := newBrowser(t, b, registry.RoleOperator).send(t, http.MethodGet, "/items/"+job, nil)
	if got := strings.Count(text, `<button name="act"`); got != len(it.AllowedActs) || got == 0 {
		t.Errorf("%d buttons, want one for each of %v", got, it.AllowedActs)
	}
}

// TestForms_Requeue checks that a group of failures is requeued in the user's name, if the user
// may.
func TestForms_Requeue(t *testing.T) {
	b := newBench(t, withPages)
	batch, job := b.batchOf(t, "x")
	b.settle(t, registry.Settlement{Lease: b.claim(t, registry.Estimate).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	groups, err := b.store.Failures(t.Context(), registry.ItemQuery{})
	must(t, err)
	form := url.Values{"act": {"requeue"}, "q": {"cause:" + groups.Rows[0].Fingerprint}, "reason": {"mended"}, "now": {"yes"}}
	same := []string{"Sec-Fetch-Site", "same-origin"}
	for role, want := range map[registry.Role]int{registry.RoleViewer: http.StatusForbidden, registry.RoleDepositor: http.StatusForbidden} {
		v := newBrowser(t, b, role)
		if answer, text := v.send(t, http.MethodPost, "/items/act", form, same...); answer.StatusCode != want {
			t.Errorf("as %s: %d %s", role, answer.StatusCode, text)
		}
		if _, text := v.send(t, http.MethodGet, "/batches/"+batch, nil); strings.Contains(text, "/items/act") {
			t.Errorf("%s has a button", role)
		}
	}
	v := newBrowser(t, b, registry.RoleOperator)
	if answer, _ := v.send(t, http.MethodPost, "/items/act", form, "Sec-Fetch-Site", "cross-site"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("from another site: %d", answer.StatusCode)
	}
	bulks, err := b.store.Items(t.Context(), registry.ItemQuery{Action: registry.Bulk})
	must(t, err)
	if len(bulks.Rows) != 0 {
		t.Fatalf("begun by who may not: %+v", bulks.Rows)
	}
	answer, text := v.send(t, http.MethodPost, "/items/act", form, same...)
	id, ok := strings.CutPrefix(answer.Header.Get("Location"), "/bulk/")
	if answer.StatusCode != http.StatusSeeOther || !ok {
		t.Fatalf("requeue: %d %s", answer.StatusCode, text)
	}
	it, err := b.store.Item(t.Context(), id)
	must(t, err)
	if it.Action != registry.Bulk || it.CreatedBy != "the operator" {
		t.Errorf("bulk act %+v", it)
	}
	p, err := b.store.ApplyNext(t.Context(), b.claim(t, registry.Apply).Lease)
	must(t, err)
	if it, err := b.store.Item(t.Context(), job); err != nil || p.Applied != 1 || it.RetryCount != 1 {
		t.Errorf("applied %+v to %+v, %v", p, it, err)
	}
}

func TestForms_ReleaseHold(t *testing.T) {
	b := newBench(t, withPages)
	must(t, b.store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldAll, Reason: "maintenance", Actor: "a"}))
	v := newBrowser(t, b, registry.RoleOperator)
	same := []string{"Sec-Fetch-Site", "same-origin"}
	if answer, text := v.send(t, http.MethodPost, "/holds/release", url.Values{"scope": {"item"}, "key": {"none"}}, same...); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("a hold that is released already: %d %s", answer.StatusCode, text)
	}
	answer, text := v.send(t, http.MethodPost, "/holds/release", url.Values{"scope": {"all"}}, same...)
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/holds" {
		t.Errorf("release: %d %s", answer.StatusCode, text)
	}
	holds, err := b.store.Holds(t.Context())
	must(t, err)
	if len(holds) != 0 {
		t.Errorf("holds %+v, want none", holds)
	}
	events, err := b.store.Feed(t.Context(), registry.FeedQuery{Types: []string{"release-hold"}})
	must(t, err)
	if len(events) != 1 || events[0].Actor != "the operator" {
		t.Errorf("events %+v, want one by the operator", events)
	}
}

// TestForms_LargeBody checks that a body of any size is refused without being read.
func TestForms_LargeBody(t *testing.T) {
	b := newBench(t, withPages)
	_, job := b.batchOf(t, "x")
	v := newBrowser(t, b, registry.RoleOperator)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.server.URL+"/items/"+job+"/acts", io.LimitReader(zeros{}, 2<<20))
	must(t, err)
	r.AddCookie(v.cookie)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := v.client.Do(r)
	must(t, err)
	if got, _ := read(t, answer); got.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", got.StatusCode)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
