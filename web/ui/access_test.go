package ui_test

import (
	"bytes"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/wire"
)

var (
	menuEntry = regexp.MustCompile(`<li><a href="([^"]+)"`)
	// postForm finds what a page can do: forms, and buttons that send a form elsewhere.
	postForm = regexp.MustCompile(`<form[^>]*\bmethod="post"[^>]*>|<(?:button|input)[^>]*\bformmethod="post"[^>]*>`)
	action   = regexp.MustCompile(`action="([^"]*)"`)
	heading  = regexp.MustCompile(`<h1[^>]*>([^<]+)`)
)

// forms are the addresses to which a page's forms are posted, without those that every page has.
func forms(text string) (all []string) {
	for _, form := range postForm.FindAllString(text, -1) {
		to := ""
		if m := action.FindStringSubmatch(form); m != nil {
			to = m[1]
		}
		if to != "/preferences" && to != "/logout" {
			all = append(all, to)
		}
	}
	return all
}

// staff are those who see the work of everybody.
var staff = []registry.Role{registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin}

// TestAccess_Menu: each role's menu has the pages that it may use, and each of them opens.
func TestAccess_Menu(t *testing.T) {
	s := newSite(t)
	s.fill(t)
	pages := map[string][]registry.Role{
		"/deposit":     {registry.RoleDepositor, registry.RoleOperator, registry.RoleAdmin},
		"/deposits":    append([]registry.Role{registry.RoleDepositor}, staff...),
		"/objects":     append([]registry.Role{registry.RoleDepositor}, staff...),
		"/operations":  staff,
		"/items":       staff,
		"/holds":       nil, // whoever the API lets see them
		"/collections": staff,
		"/deletions":   staff,
		"/tokens":      {registry.RoleAdmin},
		"/audit":       {registry.RoleOperator, registry.RoleAdmin},
		"/help":        append([]registry.Role{registry.RoleDepositor}, staff...),
		"/api":         append([]registry.Role{registry.RoleDepositor}, staff...),
	}
	for _, role := range []registry.Role{registry.RoleDepositor, registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin} {
		t.Run(string(role), func(t *testing.T) {
			s.Token = s.TokenOf(t, "menu of "+string(role), role)
			var menu []string
			for _, m := range menuEntry.FindAllStringSubmatch(s.get(t, "/help", http.StatusOK), -1) {
				menu = append(menu, m[1])
				text := s.get(t, m[1], http.StatusOK)
				if !heading.MatchString(text) {
					t.Errorf("%s has no heading", m[1])
				}
				if role == registry.RoleViewer {
					if all := forms(text); len(all) > 0 {
						t.Errorf("%s offers a viewer %v", m[1], all)
					}
				}
			}
			for path, roles := range pages {
				if roles == nil || s.Send(t, http.MethodGet, path, nil).Code == http.StatusNotFound {
					continue // this site has no such page
				}
				if in := slices.Contains(menu, path); in != slices.Contains(roles, role) {
					t.Errorf("the menu has %s: %t", path, in)
				}
			}
		})
	}
}

// reached are the addresses of pages to which a page leads: by links, and by the buttons of forms that
// ask what to do.
func reached(text string) (all []string) {
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		all = append(all, html.UnescapeString(m[1]))
	}
	for _, form := range getForm.FindAllStringSubmatch(text, -1) {
		for _, button := range choice.FindAllStringSubmatch(form[2], -1) {
			all = append(all, form[1]+"?"+url.Values{button[1]: {html.UnescapeString(button[2])}}.Encode())
		}
	}
	return all
}

var (
	link    = regexp.MustCompile(`<a [^>]*href="(/[^"#]*)`)
	getForm = regexp.MustCompile(`(?s)<form action="([^"]*)" method="get"[^>]*>(.*?)</form>`)
	choice  = regexp.MustCompile(`<button[^>]*name="([^"]+)" value="([^"]*)"`)
)

// TestAccess_Forms follows an admin's links through the pages. What their forms can do, a viewer
// cannot, even without the button.
func TestAccess_Forms(t *testing.T) {
	s := newSite(t)
	batch, jobs := s.fill(t)
	admin, viewer := s.TokenOf(t, "an admin", registry.RoleAdmin), s.TokenOf(t, "another viewer", registry.RoleViewer)
	s.Token = admin
	next := []string{"/help", "/batches/" + batch}
	for _, job := range jobs {
		next = append(next, "/items/"+job.ID)
	}
	seen, found := map[string]bool{}, map[string]bool{}
	const most = 150 // pages; lists could lead on and on
	for len(next) > 0 && len(seen) < most {
		path := next[0]
		next = next[1:]
		if seen[path] || strings.HasPrefix(path, "/api/v1") || strings.HasPrefix(path, "/static") {
			continue
		}
		seen[path] = true
		w := s.Send(t, http.MethodGet, path, nil)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s is answered with %d", path, w.Code)
		}
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			continue
		}
		for _, to := range forms(w.Body.String()) {
			if to == "" {
				to = path
			}
			found[to] = true
		}
		next = append(next, reached(w.Body.String())...)
	}
	delete(found, "/sessions/end") // which ends one's own
	delete(found, "/account/link") // which signs in as oneself
	const fewest = 2
	if len(found) < fewest {
		t.Errorf("an admin's %d pages can do only %v", len(seen), found)
	}
	s.Token = viewer
	for to := range found {
		if w := s.Post(t, to, url.Values{"reason": {"test"}, "confirm": {"yes"}}); w.Code < http.StatusBadRequest {
			t.Errorf("a viewer may post to %s: %d to %s", to, w.Code, w.Header().Get("Location"))
		}
	}
}

// TestSecurityHeaders: every answer of the pages forbids what pages do not need, whatever its status.
func TestSecurityHeaders(t *testing.T) {
	s := newSite(t)
	for path, status := range map[string]int{
		"/help": http.StatusOK, "/none": http.StatusNotFound, "/items/" + strings.Repeat("x", 300): http.StatusUnprocessableEntity,
		"/find?q=x": http.StatusSeeOther, "/static/style.css": http.StatusOK, "/static/none.js": http.StatusNotFound, "/live?page=/live": http.StatusBadRequest,
	} {
		w := s.Send(t, http.MethodGet, path, nil)
		if w.Code != status {
			t.Errorf("%s is answered with %d, want %d", path, w.Code, status)
		}
		for name, want := range map[string][]string{
			"Content-Security-Policy": {"default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"},
			"X-Content-Type-Options":  {"nosniff"},
			"Referrer-Policy":         {"same-origin"},
		} {
			got := w.Header().Get(name)
			for _, part := range want {
				if !strings.Contains(got, part) {
					t.Errorf("%s: %s is %q, want %q in it", path, name, got, part)
				}
			}
			if strings.Contains(got, "unsafe") || strings.Contains(got, "*") {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
	text := s.get(t, "/help", http.StatusOK)
	for _, bad := range []string{"<style", " style=", "onclick=", "onload=", "javascript:", "//cdn", "https://unpkg"} {
		if strings.Contains(text, bad) {
			t.Errorf("a page has %s", bad)
		}
	}
	if w := s.Send(t, http.MethodGet, "/help", nil); w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a page may be kept: %q", w.Header().Get("Cache-Control"))
	}
}

// TestErrorPages say what happened and what to do, with the number of the request, which is in the
// log. What is inside of an error of ours stays there.
func TestErrorPages(t *testing.T) {
	var log bytes.Buffer
	s := siteOver(t, func(r scope.Registry) scope.Registry { return broken{r} }, slog.New(slog.NewTextHandler(&log, nil)))
	number := regexp.MustCompile(`<code>([A-Z0-9]{20,})</code>`)
	for path, tt := range map[string]struct {
		status int
		says   string
		inLog  bool
	}{
		"/none":       {http.StatusNotFound, "No page at /none.", false},
		"/items":      {http.StatusInternalServerError, "tell an operator the number of the request", true},
		"/items/abcd": {http.StatusInternalServerError, "tell an operator the number of the request", true},
	} {
		log.Reset()
		w := s.Send(t, http.MethodGet, path, nil)
		m := number.FindStringSubmatch(w.Body.String())
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) || m == nil {
			t.Errorf("%s: %d, want %d with %q and a number:\n%s", path, w.Code, tt.status, tt.says, w.Body)
			continue
		}
		if id := w.Header().Get(wire.RequestIDHeader); id != m[1] {
			t.Errorf("%s names the request %s, which is %s", path, m[1], id)
		}
		if tt.inLog && !strings.Contains(log.String(), m[1]) {
			t.Errorf("the log does not have request %s of %s: %s", m[1], path, log.String())
		}
		if strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s shows what is inside", path)
		}
	}
	s.Token = s.TokenOf(t, "the viewer", registry.RoleViewer)
	w := s.Send(t, http.MethodGet, "/audit", nil) // by itself, not by the menu
	if w.Code == http.StatusNotFound {            // the site has no such page
		w = s.Post(t, "/items/act", url.Values{"act": {"requeue"}, "q": {"state:failed"}})
	}
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "Ask an operator or an admin.") {
		t.Errorf("what a role may not do is answered with %d:\n%s", w.Code, w.Body)
	}
}
