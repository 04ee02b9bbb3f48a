package ui_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// visit sends a request with cookies.
func (s *site) visit(t *testing.T, method, path string, form url.Values, cookies []*http.Cookie) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Authorization", "Bearer "+s.Token)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	return w.Result()
}

// A person chooses language, time zone and colours. Cookies keep them, and the form leads back.
func TestPreferences(t *testing.T) {
	s := newSite(t)
	show := func(cookies []*http.Cookie) string {
		t.Helper()
		answer := s.visit(t, http.MethodGet, "/help", nil, cookies)
		defer answer.Body.Close()
		var b strings.Builder
		if err := answer.Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if text := show(nil); !strings.Contains(text, `<html lang="en">`) || !strings.Contains(text, " UTC</time>") || !strings.Contains(text, `content="light dark"`) {
		t.Errorf("without preferences the page is\n%s", text)
	}
	form := url.Values{"lang": {"de"}, "zone": {" Pacific/Kiritimati "}, "theme": {"dark"}, "next": {"/objects?q=x"}}
	answer := s.visit(t, http.MethodPost, "/preferences", form, nil)
	defer answer.Body.Close()
	if to := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || to != "/objects?q=x" {
		t.Fatalf("the form is answered with %d to %s", answer.StatusCode, to)
	}
	text := show(answer.Cookies())
	for _, want := range []string{`<html lang="de" data-theme="dark">`, " &#43;14</time>", `content="dark"`, `value="Pacific/Kiritimati"`, `<option value="dark" selected>`} {
		if !strings.Contains(text, want) {
			t.Errorf("with preferences the page lacks %s", want)
		}
	}
	for _, c := range answer.Cookies() {
		if c.Path != "/" || c.MaxAge <= 0 || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("cookie %v", c)
		}
	}
	for name, tt := range map[string]struct {
		form   url.Values
		status int
		to     string
	}{
		"another site":    {url.Values{"zone": {"UTC"}, "next": {"https://example.com/"}}, http.StatusSeeOther, "/"},
		"another host":    {url.Values{"zone": {"UTC"}, "next": {"//example.com/"}}, http.StatusSeeOther, "/"},
		"an unknown zone": {url.Values{"zone": {"Mars/Olympus"}}, http.StatusBadRequest, ""},
		"the server's":    {url.Values{"zone": {"Local"}}, http.StatusBadRequest, ""},
		"a long zone":     {url.Values{"zone": {strings.Repeat("Europe/", 100)}}, http.StatusBadRequest, ""},
	} {
		answer := s.visit(t, http.MethodPost, "/preferences", tt.form, nil)
		answer.Body.Close()
		if answer.StatusCode != tt.status || answer.Header.Get("Location") != tt.to {
			t.Errorf("%s: %d to %q, want %d to %q", name, answer.StatusCode, answer.Header.Get("Location"), tt.status, tt.to)
		}
	}
	hostile := []*http.Cookie{{Name: "lang", Value: "<script>"}, {Name: "zone", Value: "../../etc/passwd"}, {Name: "theme", Value: "x onload=1"}}
	if text := show(hostile); strings.Contains(text, "<script>") || strings.Contains(text, "passwd") || strings.Contains(text, "onload") {
		t.Error("a cookie's text is on the page")
	}
}
