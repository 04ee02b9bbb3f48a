package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// fromHere is what browsers send with a form of our own pages.
var fromHere = []string{"Sec-Fetch-Site", "same-origin"}

func (v *browser) get(t *testing.T, path string) (reply, string) {
	t.Helper()
	return v.send(t, http.MethodGet, path, nil)
}

func (v *browser) post(t *testing.T, path string, form url.Values) (reply, string) {
	t.Helper()
	return v.send(t, http.MethodPost, path, form, fromHere...)
}

// entries are the types of the audit log's entries, the newest first.
func (b *bench) entries(t *testing.T) (types []string) {
	t.Helper()
	page, err := b.store.Audit(t.Context(), registry.AuditQuery{Limit: 500})
	must(t, err)
	for _, e := range page.Rows {
		types = append(types, e.Type)
	}
	return types
}

// TestSignIn_Form checks that a token in the form starts a session, that the cookie does not
// contain the token, and that the browser is redirected to the requested page.
func TestSignIn_Form(t *testing.T) {
	b := newBench(t, withPages)
	v := visitor(b)
	answer, text := v.get(t, "/objects?text=x")
	if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(text, `value="/objects?text=x"`) || v.cookie != nil {
		t.Fatalf("without a session: %d, cookie %v:\n%s", answer.StatusCode, v.cookie, text)
	}
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
	for _, wrong := range []string{"", "hf_wrong", tokenText(registry.RoleViewer) + "x"} {
		answer, text := v.post(t, "/login", url.Values{"token": {wrong}, "next": {"/objects?text=x"}})
		if answer.StatusCode != http.StatusUnauthorized || v.cookie != nil || !strings.Contains(text, `role="alert"`) || !strings.Contains(text, `value="/objects?text=x"`) {
			t.Errorf("with %q: %d, cookie %v:\n%s", wrong, answer.StatusCode, v.cookie, text)
		}
	}
	if answer, _ := v.post(t, "/login", url.Values{"token": {tokenText(registry.RoleWorker)}}); answer.StatusCode != http.StatusForbidden || v.cookie != nil {
		t.Errorf("with a worker's token: %d", answer.StatusCode)
	}
	if answer, _ := v.send(t, http.MethodPost, "/login", url.Values{"token": {tokenText(registry.RoleViewer)}}); answer.StatusCode != http.StatusForbidden || v.cookie != nil {
		t.Errorf("from no page: %d", answer.StatusCode)
	}
	if got := strings.Count(strings.Join(b.entries(t), " "), registry.EventRefused); got != 6 {
		t.Errorf("%d refusals are audited, want 6", got)
	}
	answer, _ = v.post(t, "/login", url.Values{"token": {" " + tokenText(registry.RoleViewer) + "\n"}, "next": {"/objects?text=x"}})
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/objects?text=x" || v.cookie == nil {
		t.Fatalf("signed in: %d to %q", answer.StatusCode, answer.Header.Get("Location"))
	}
	c := v.cookie
	_, port, _ := strings.Cut(b.server.Listener.Addr().String(), ":")
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.Secure || c.Name != "holdfast_session_"+port {
		t.Errorf("cookie %v, want HttpOnly, SameSite=Lax, and the port in its name: another server on this host has its own", c)
	}
	if strings.Contains(c.Value, "hf_") || strings.Contains(c.Value, tokenText(registry.RoleViewer)) {
		t.Errorf("the cookie holds the token: %s", c.Value)
	}
	if _, text := v.get(t, "/operations"); !strings.Contains(text, "the viewer") || !strings.Contains(text, signOut) {
		t.Errorf("the page does not say who has signed in:\n%s", text)
	}
	if answer, _ := v.get(t, "/api/v1/batches"); answer.StatusCode != http.StatusOK {
		t.Errorf("GET of the API with the cookie: %d", answer.StatusCode)
	}
	if answer, _ := v.send(t, http.MethodPost, "/api/v1/batches", nil); answer.StatusCode != http.StatusForbidden {
		t.Errorf("POST from nowhere to the API with the cookie: %d", answer.StatusCode)
	}
	if types := b.entries(t); !slices.Contains(types, registry.EventSignedIn) {
		t.Errorf("audit log %v", types)
	}
	for _, hidden := range []string{tokenText(registry.RoleViewer), c.Value} {
		if strings.Contains(b.log.String(), hidden) {
			t.Errorf("%q is in the log", hidden)
		}
	}
}

// TestSignIn_FormOfPage checks that somebody whose sign-in ended while they filled in a form learns that
// nothing was done, and comes back to the form.
func TestSignIn_FormOfPage(t *testing.T) {
	b := newBench(t, withPages)
	v := newBrowser(t, b, registry.RoleAdmin)
	for _, cookie := range []*http.Cookie{nil, {Name: v.cookie.Name, Value: "of a session that has ended"}} {
		v.cookie = cookie
		answer, text := v.send(t, http.MethodPost, "/new/collection", url.Values{"next": {"/x"}}, append(slices.Clone(fromHere), "Referer", b.server.URL+"/new/collection?a=b")...)
		if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "was not done") || !strings.Contains(text, `value="/new/collection?a=b"`) {
			t.Errorf("with the cookie %v: %d:\n%s", cookie, answer.StatusCode, text)
		}
		_, text = v.send(t, http.MethodPost, "/new/collection", url.Values{}, append(slices.Clone(fromHere), "Referer", "https://evil.test/a")...)
		if strings.Contains(text, "/a\"") {
			t.Errorf("another site's address is where signing in leads:\n%s", text)
		}
	}
}

// TestSignIn_TokenIsNoCookie checks that a token in place of the cookie, or in the address, signs
// nobody in.
func TestSignIn_TokenIsNoCookie(t *testing.T) {
	b := newBench(t, withPages)
	v := newBrowser(t, b, registry.RoleAdmin)
	v.cookie.Value = tokenText(registry.RoleAdmin)
	if answer, _ := v.get(t, "/operations"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the token as cookie: %d", answer.StatusCode)
	}
	v = visitor(b)
	if _, _ = v.get(t, "/login?token="+tokenText(registry.RoleAdmin)); v.cookie != nil {
		t.Errorf("a token in the address makes the cookie %v", v.cookie)
	}
}

// TestSignIn_Next checks that forms redirect only to pages of this server.
func TestSignIn_Next(t *testing.T) {
	b := newBench(t, withPages)
	for next, want := range map[string]string{
		"": "/", "/items/1?x=y": "/items/1?x=y", "https://evil.test/": "/", "//evil.test/": "/", `/\evil.test`: "/", "items": "/",
		"/login?link=x": "/", "/\tevil": "/", "javascript:alert(1)": "/",
	} {
		v := visitor(b)
		answer, _ := v.post(t, "/login", url.Values{"token": {tokenText(registry.RoleViewer)}, "next": {next}})
		if got := answer.Header.Get("Location"); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
}

// link makes a one-time link as a role.
func (b *bench) link(t *testing.T, role registry.Role) string {
	t.Helper()
	made, err := b.as(t, role).MakeSignInLink(t.Context())
	must(t, err)
	return made.Path
}

// TestSignIn_Link checks that showing a link's page does not use up the link, and that one click
// does.
func TestSignIn_Link(t *testing.T) {
	b := newBench(t, withPages)
	path := b.link(t, registry.RoleOperator)
	one := url.Values{"link": {strings.TrimPrefix(path, "/login?link=")}}
	if strings.Contains(path, tokenText(registry.RoleOperator)) {
		t.Fatal("the link holds the token")
	}
	for range 3 { // a mail scanner, a preview, a person
		v := visitor(b)
		answer, text := v.get(t, path)
		if answer.StatusCode != http.StatusOK || v.cookie != nil || !strings.Contains(text, `value="`+one.Get("link")+`"`) {
			t.Fatalf("link: %d, cookie %v:\n%s", answer.StatusCode, v.cookie, text)
		}
	}
	other := newBrowser(t, b, registry.RoleViewer)
	if _, text := other.get(t, path); !strings.Contains(text, "as <strong translate=\"no\">the operator</strong> (operator)") || !strings.Contains(text, "as <strong translate=\"no\">the viewer</strong> (viewer)") {
		t.Errorf("the link's page does not say as whom it signs in, and whose session it ends:\n%s", text)
	}
	if _, text := visitor(b).get(t, path); strings.Contains(text, "That session ends") {
		t.Errorf("a session that there is none of ends:\n%s", text)
	}
	var group sync.WaitGroup
	var won atomic.Int32
	for range 6 {
		v := visitor(b)
		group.Go(func() {
			if answer, _ := v.post(t, "/login", one); answer.StatusCode == http.StatusSeeOther && v.cookie != nil {
				won.Add(1)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of 6 clicks at once signed in, want 1", won.Load())
	}
	v := visitor(b)
	if answer, text := v.post(t, "/login", one); answer.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "holdfast login") {
		t.Errorf("used again: %d\n%s", answer.StatusCode, text)
	}
	if answer, text := v.get(t, path); answer.StatusCode != http.StatusUnauthorized || strings.Contains(text, one.Get("link")) || !strings.Contains(text, `role="alert"`) {
		t.Errorf("looked at when it was used: %d\n%s", answer.StatusCode, text)
	}
	if strings.Contains(b.log.String(), one.Get("link")) {
		t.Error("the link is in the log")
	}

	late := b.link(t, registry.RoleOperator)
	b.pass(10 * time.Minute)
	if answer, _ := v.post(t, "/login", url.Values{"link": {strings.TrimPrefix(late, "/login?link=")}}); answer.StatusCode != http.StatusUnauthorized || v.cookie != nil {
		t.Errorf("after ten minutes: %d", answer.StatusCode)
	}
}

// TestSignIn_Anew checks that every sign-in has its own secret and ends the browser's earlier
// session.
func TestSignIn_Anew(t *testing.T) {
	b := newBench(t, withPages)
	v := newBrowser(t, b, registry.RoleViewer)
	before := v.cookie
	v.post(t, "/login", url.Values{"token": {tokenText(registry.RoleViewer)}})
	if v.cookie.Value == before.Value {
		t.Fatal("the same secret again")
	}
	if answer, _ := v.get(t, "/operations"); answer.StatusCode != http.StatusOK {
		t.Errorf("new session: %d", answer.StatusCode)
	}
	v.cookie = before
	if answer, _ := v.get(t, "/operations"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("the session before: %d", answer.StatusCode)
	}
	planted := visitor(b) // by somebody who hopes that it becomes the session's
	planted.cookie = &http.Cookie{Name: before.Name, Value: "planted"}
	planted.post(t, "/login", url.Values{"token": {tokenText(registry.RoleViewer)}})
	if planted.cookie.Value == "planted" {
		t.Error("a session has the secret that the browser came with")
	}
}

// TestSignOut checks that signing out ends the session on the server too.
func TestSignOut(t *testing.T) {
	b := newBench(t, withPages)
	v := newBrowser(t, b, registry.RoleViewer)
	before := v.cookie
	if answer, _ := v.send(t, http.MethodPost, "/logout", nil, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("from another site: %d", answer.StatusCode)
	}
	if answer, text := v.post(t, "/logout", nil); answer.StatusCode != http.StatusOK || v.cookie != nil || !strings.Contains(text, "You have signed out") {
		t.Fatalf("signed out: %d, cookie %v\n%s", answer.StatusCode, v.cookie, text)
	}
	v.cookie = before
	if answer, _ := v.get(t, "/operations"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the cookie of before: %d", answer.StatusCode)
	}
	if !slices.Contains(b.entries(t), registry.EventSignedOut) {
		t.Error("not audited")
	}
}

// TestSession_Ends checks that a session ends when it is idle (reloads of a page do not count), at
// its limit, and with its token.
func TestSession_Ends(t *testing.T) {
	b := newBench(t, func(b *bench, o *api.Options) {
		o.SignIn = signin.New(signin.Options{Store: b.store, Log: o.Log, Now: b.now, Lifetime: registry.Lifetime{Idle: time.Hour, Most: 3 * time.Hour}})
		withPages(b, o)
	})
	batch, _ := b.batchOf(t, "x")
	status := func(v *browser, path string) int {
		answer, _ := v.get(t, path)
		return answer.StatusCode
	}
	idle, used, sending := newBrowser(t, b, registry.RoleViewer), newBrowser(t, b, registry.RoleOperator), newBrowser(t, b, registry.RoleDepositor)
	for range 3 {
		b.pass(29 * time.Minute)
		status(idle, "/live?page=/help") // what keeps a page up to date, or says that it needs nothing
		status(idle, "/static/style.css")
		idle.send(t, http.MethodGet, "/operations", nil, "Sec-Fetch-Dest", "image")
		idle.send(t, http.MethodGet, "/api/v1/batches", nil, "Sec-Fetch-Dest", "empty")
		status(used, "/batches/"+batch)
		sending.send(t, http.MethodPatch, "/api/v1/uploads/x", nil, append(fromHere, "Sec-Fetch-Dest", "empty")...)
	}
	if got := status(sending, "/objects"); got != http.StatusOK {
		t.Errorf("after uploads of 87 minutes: %d", got)
	}
	if got := status(idle, "/operations"); got != http.StatusUnauthorized {
		t.Errorf("unused for 87 minutes but for what a page loads by itself: %d", got)
	}
	if got := status(used, "/operations"); got != http.StatusOK {
		t.Errorf("in use: %d", got)
	}
	for range 4 {
		b.pass(29 * time.Minute)
		status(used, "/operations")
	}
	if got := status(used, "/operations"); got != http.StatusUnauthorized {
		t.Errorf("after its end, although in use: %d", got)
	}
	gone := newBrowser(t, b, registry.RoleViewer)
	must(t, b.as(t, registry.RoleAdmin).RevokeToken(t.Context(), string(registry.RoleViewer)))
	if got := status(gone, "/operations"); got != http.StatusUnauthorized {
		t.Errorf("with a revoked token: %d", got)
	}
}

// TestSessions_ListAndEnd checks that users see and end their own sessions, and an admin all.
func TestSessions_ListAndEnd(t *testing.T) {
	b := newBench(t, withPages)
	viewer, elsewhere, admin := newBrowser(t, b, registry.RoleViewer), newBrowser(t, b, registry.RoleViewer), newBrowser(t, b, registry.RoleAdmin)
	list := func(role registry.Role) (ids []string) {
		_, text := b.send(t, http.MethodGet, "/api/v1/sessions", "", "Authorization", "Bearer "+tokenText(role))
		var page registry.Page[registry.Session]
		must(t, json.Unmarshal([]byte(text), &page))
		for _, s := range page.Rows {
			ids = append(ids, s.ID)
		}
		if strings.Contains(text, signin.Hash(viewer.cookie.Value)) || strings.Contains(text, viewer.cookie.Value) {
			t.Errorf("a list tells a secret: %s", text)
		}
		return ids
	}
	if all, own := list(registry.RoleAdmin), list(registry.RoleViewer); len(all) != 3 || len(own) != 2 {
		t.Fatalf("an admin sees %d sessions and the viewer %d, want 3 and 2", len(all), len(own))
	}
	ids := regexp.MustCompile(`name="id" value="([^"]+)"`)
	_, text := viewer.get(t, "/sessions")
	mine := ids.FindAllStringSubmatch(text, -1)
	if len(mine) != 1 || !strings.Contains(text, "this one") {
		t.Fatalf("the viewer's page has %d buttons, want one for the other browser:\n%s", len(mine), text)
	}
	_, text = admin.get(t, "/sessions")
	if got := ids.FindAllStringSubmatch(text, -1); len(got) != 2 {
		t.Errorf("the admin's page has %d buttons, want 2:\n%s", len(got), text)
	}
	end := url.Values{"id": {mine[0][1]}}
	depositor := newBrowser(t, b, registry.RoleDepositor)
	depositor.post(t, "/sessions/end", end)
	if answer, _ := elsewhere.get(t, "/operations"); answer.StatusCode != http.StatusOK {
		t.Errorf("ended by somebody else: %d", answer.StatusCode)
	}
	if answer, _ := viewer.send(t, http.MethodPost, "/sessions/end", end); answer.StatusCode != http.StatusForbidden {
		t.Errorf("from no page: %d", answer.StatusCode)
	}
	if answer, _ := viewer.post(t, "/sessions/end", end); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("end: %d", answer.StatusCode)
	}
	if answer, _ := elsewhere.get(t, "/operations"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a session that was ended: %d", answer.StatusCode)
	}
	answer, text := b.send(t, http.MethodDelete, "/api/v1/sessions/"+mine[0][1], "")
	wantProblem(t, answer, text, http.StatusNotFound, wire.CodeNotFound)
	own := list(registry.RoleViewer)
	answer, text = b.send(t, http.MethodDelete, "/api/v1/sessions/"+own[0][:8], "", "Authorization", "Bearer "+tokenText(registry.RoleOperator))
	wantProblem(t, answer, text, http.StatusNotFound, wire.CodeNotFound)
	answer, text = b.send(t, http.MethodDelete, "/api/v1/sessions/"+own[0], "", "Authorization", "Bearer "+tokenText(registry.RoleOperator))
	wantProblem(t, answer, text, http.StatusNotFound, wire.CodeNotFound)
	if answer, text := b.send(t, http.MethodDelete, "/api/v1/sessions/"+own[0][:8], ""); answer.StatusCode != http.StatusNoContent {
		t.Errorf("ended by an admin: %d %s", answer.StatusCode, text)
	}
	if answer, _ := viewer.get(t, "/operations"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a session that an admin ended: %d", answer.StatusCode)
	}
}

// TestSignIn_Limits checks that attempts are bounded per address and per prefix of a token, that
// refusals are audited, and that other users can still sign in.
func TestSignIn_Limits(t *testing.T) {
	b := newBench(t, withPages)
	v := visitor(b)
	wrong := url.Values{"token": {"hf_AAAAAAAAAAAAAAAA"}}
	for range 10 {
		if answer, _ := v.post(t, "/login", wrong); answer.StatusCode != http.StatusUnauthorized {
			t.Fatalf("a wrong token: %d", answer.StatusCode)
		}
	}
	answer, text := v.post(t, "/login", wrong)
	if after := answer.Header.Get("Retry-After"); answer.StatusCode != http.StatusTooManyRequests || after == "" || !strings.Contains(text, "wait") {
		t.Errorf("the eleventh: %d, Retry-After %q\n%s", answer.StatusCode, after, text)
	}
	if answer, _ := v.post(t, "/login", url.Values{"token": {tokenText(registry.RoleViewer)}}); answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the right one after ten wrong ones: %d", answer.StatusCode)
	}
	if got := strings.Count(strings.Join(b.entries(t), " "), registry.EventRefused); got != 12 {
		t.Errorf("%d refusals are audited, want 12", got)
	}
	b.pass(time.Minute)
	if answer, _ := v.post(t, "/login", url.Values{"token": {tokenText(registry.RoleViewer)}}); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("a minute later: %d", answer.StatusCode)
	}
}

// TestSignIn_LinkAtTheLimit checks that a valid link is exempt from the bounds, and that an invalid
// one counts.
func TestSignIn_LinkAtTheLimit(t *testing.T) {
	b := newBench(t, withPages)
	link := url.Values{"link": {strings.TrimPrefix(b.link(t, registry.RoleViewer), "/login?link=")}}
	v := visitor(b)
	for _, want := range append(slices.Repeat([]int{http.StatusUnauthorized}, 10), http.StatusTooManyRequests) {
		if answer, _ := v.post(t, "/login", url.Values{"link": {"WRONG"}}); answer.StatusCode != want {
			t.Fatalf("a wrong link: %d, want %d", answer.StatusCode, want)
		}
	}
	if answer, _ := v.post(t, "/login", link); answer.StatusCode != http.StatusSeeOther || v.cookie == nil {
		t.Errorf("the right one: %d", answer.StatusCode)
	}
}

// TestSignIn_DropsOldToken checks that the cookie of old versions is removed on refusal and on
// sign-in, but not that of another port.
func TestSignIn_DropsOldToken(t *testing.T) {
	b := newBench(t, withPages)
	_, port, _ := strings.Cut(b.server.Listener.Addr().String(), ":")
	dropped := func(answer reply) (names []string) {
		for _, c := range (&http.Response{Header: answer.Header}).Cookies() {
			if c.MaxAge < 0 {
				names = append(names, c.Name)
			}
		}
		return names
	}
	old := "holdfast_token_" + port
	cookies := []string{"Cookie", old + "=" + tokenText(registry.RoleAdmin) + "; holdfast_token_1=x; holdfast_token=y"}
	v := visitor(b)
	answer, _ := v.send(t, http.MethodGet, "/operations", nil, cookies...)
	if got := dropped(answer); answer.StatusCode != http.StatusUnauthorized || !slices.Equal(got, []string{old}) {
		t.Errorf("refused: %d, drops %q", answer.StatusCode, got)
	}
	answer, _ = v.send(t, http.MethodPost, "/login", url.Values{"token": {tokenText(registry.RoleViewer)}}, append(cookies, fromHere...)...)
	if got := dropped(answer); answer.StatusCode != http.StatusSeeOther || !slices.Equal(got, []string{old}) {
		t.Errorf("signed in: %d, drops %q", answer.StatusCode, got)
	}
	if answer, _ := visitor(b).get(t, "/operations"); len(dropped(answer)) != 0 {
		t.Error("drops what is not there")
	}
}

// TestSession_StreamEnds checks that a browser's stream ends with its session.
func TestSession_StreamEnds(t *testing.T) {
	b := newBench(t, withPages, func(_ *bench, o *api.Options) { o.KeepAlive = 10 * time.Millisecond })
	v := newBrowser(t, b, registry.RoleViewer)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+"/api/v1/events", nil)
	must(t, err)
	r.AddCookie(v.cookie)
	answer, err := v.client.Do(r)
	must(t, err)
	defer answer.Body.Close()
	v.post(t, "/logout", nil)
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Error(err)
	}
}

// TestSignIn_Multipart checks that nobody can send files, or a body larger than a form, without
// signing in.
func TestSignIn_Multipart(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	b := newBench(t, withPages)
	send := func(path string, mib int) int {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("token", "x")
		must(t, err)
		_, err = part.Write(make([]byte, mib<<20))
		must(t, err)
		must(t, form.Close())
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.server.URL+path, &body)
		must(t, err)
		r.Header.Set("Content-Type", form.FormDataContentType())
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		answer, err := b.server.Client().Do(r)
		if err != nil {
			return http.StatusRequestEntityTooLarge // it was refused while it was still being sent
		}
		must(t, answer.Body.Close())
		return answer.StatusCode
	}
	for path, want := range map[string]int{"/login": http.StatusUnsupportedMediaType, "/batches/b/x": http.StatusUnauthorized, "/items/act": http.StatusUnauthorized} {
		if got := send(path, 0); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
		if got := send(path, 48); got != http.StatusRequestEntityTooLarge { // more than Go reads into memory
			t.Errorf("%s, 48 MiB: %d", path, got)
		}
	}
	left, err := os.ReadDir(temp)
	must(t, err)
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "multipart-") {
			t.Errorf("%s is left", entry.Name())
		}
	}
}
