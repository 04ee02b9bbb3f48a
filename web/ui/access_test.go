package ui_test

import (
	"bytes"
	"html"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/ui/uitest"
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
		"/storages":    staff,
		"/deletions":   staff,
		"/tokens":      {registry.RoleAdmin},
		"/audit":       {registry.RoleOperator, registry.RoleAdmin},
		"/evidence":    {registry.RoleOperator, registry.RoleAdmin},
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

// own are the forms that everybody has: they concern the reader's own browsers and preferences.
var own = []string{"/preferences", "/logout", "/account/link", "/sessions/end"}

// offer is a form that a page offers: what it sends, by which button.
type offer struct {
	to     string
	button string
}

// walk opens all addresses as the owner of a token, and those to which they lead. It returns the forms
// that it finds, by what they do, the pages, and which pages led to an address that is refused.
func (s *site) walk(t testing.TB, token string, start []string) (forms map[offer]url.Values, pages map[string]uitest.Visited, refused map[string]string) {
	t.Helper()
	was := s.Token
	defer func() { s.Token = was }()
	s.Token = token
	forms, pages, refused = map[offer]url.Values{}, map[string]uitest.Visited{}, map[string]string{}
	from, met, pattern := map[string]string{}, map[string]int{}, uitest.Patterns(s.Site.Routes())
	next := slices.Clone(start)
	const enough = 3
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		if _, done := pages[path]; done || strings.HasPrefix(path, "/static") {
			continue
		}
		w := s.tried(t, path)
		p := uitest.Visited{Status: w.Code, Path: path, Text: w.Body.String()}
		pages[path] = p
		api := strings.HasPrefix(path, "/api/v1/") // some have the bytes of files, which are not there
		if w.Code >= http.StatusInternalServerError && !api {
			t.Errorf("%s is answered with %d", path, w.Code)
		}
		if (w.Code == http.StatusForbidden || w.Code == http.StatusNotFound && !api) && from[path] != "" {
			refused[path] = from[path]
		}
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || w.Code != http.StatusOK {
			continue
		}
		for _, f := range uitest.FormsOf(t, p) {
			if f.Method != http.MethodPost {
				continue
			}
			for name, values := range f.Buttons {
				for _, value := range values {
					sends := maps.Clone(f.Fields)
					if name != "" {
						sends.Set(name, value)
					}
					forms[offer{f.Action, asked(name+"="+value, sends)}] = sends
				}
			}
		}
		for _, to := range uitest.Reached(t, p) {
			k := uitest.Kind(pattern(http.MethodGet, to), to)
			if _, known := from[to]; !known && met[k] < enough {
				met[k]++
				from[to] = path
				next = append(next, to)
			}
		}
	}
	return forms, pages, refused
}

// tried asks for an address, whose answer may break off: objects have no bytes here.
func (s *site) tried(t testing.TB, path string) (w *httptest.ResponseRecorder) {
	t.Helper()
	w = httptest.NewRecorder()
	defer func() {
		if broken := recover(); broken != nil && broken != http.ErrAbortHandler { //nolint:errorlint // it is what was thrown
			panic(broken)
		}
	}()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+s.Token)
	for _, c := range s.cookies {
		r.AddCookie(c)
	}
	s.Handler.ServeHTTP(w, r)
	return w
}

// TestAccess_Roles walks through all pages as each role. Nobody is offered what is then refused. A
// viewer is offered nothing that acts. What a role is not offered it cannot do by hand. A depositor
// sees nothing of another's collection.
func TestAccess_Roles(t *testing.T) {
	keys, err := secret.Parse("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	must(t, err)
	s := siteOf(uitest.New(t, uitest.Options{Keys: keys}))
	start, foreign := s.everything(t)
	tokens := map[registry.Role]string{}
	for _, role := range []registry.Role{registry.RoleDepositor, registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin} {
		tokens[role] = s.TokenOf(t, "the "+string(role), role)
	}
	pattern := uitest.Patterns(s.Site.Routes())
	all, pages, _ := s.walk(t, tokens[registry.RoleAdmin], start)
	shown := map[string]bool{}
	for path, p := range pages {
		if p.Status == http.StatusOK || p.Status == http.StatusSeeOther || p.Status == http.StatusFound {
			shown[pattern(http.MethodGet, path)] = true
		}
	}
	// Streams, and what scripts ask for, are not linked.
	for _, route := range s.Site.Routes() {
		if strings.HasPrefix(route, "GET ") && !shown[route] && !slices.Contains([]string{"GET /live", "GET /static/", "GET /find", "GET /items/suggest"}, route) {
			t.Errorf("no page leads to %s: give the test something that it shows", route)
		}
	}
	for path := range pages {
		if strings.HasPrefix(pattern(http.MethodGet, path), "GET ") && !slices.Contains(start, path) {
			start = append(start, path)
		}
	}
	offered := map[registry.Role]map[offer]url.Values{}
	for _, role := range []registry.Role{registry.RoleDepositor, registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin} {
		t.Run(string(role), func(t *testing.T) {
			forms, pages, refused := s.walk(t, tokens[role], start)
			s.Token, offered[role] = tokens[role], forms
			for path, from := range refused {
				t.Errorf("%s leads to %s, which is answered with %d", from, path, pages[path].Status)
			}
			for o := range forms {
				if role == registry.RoleViewer && !slices.Contains(own, o.to) {
					t.Errorf("a viewer is offered %s (%s)", o.to, o.button)
				}
			}
			if role == registry.RoleDepositor {
				for path, p := range pages {
					if strings.Contains(html.UnescapeString(p.Text), foreignTitle) {
						t.Errorf("a depositor sees at %s what is in another's collection", path)
					}
				}
				for _, path := range foreign {
					if w := s.Send(t, http.MethodGet, path, nil); w.Code != http.StatusNotFound && w.Code != http.StatusForbidden {
						t.Errorf("a depositor is shown %s: %d", path, w.Code)
					}
				}
			}
			for o, sends := range all {
				if _, offered := forms[o]; offered || slices.Contains(own, o.to) {
					continue
				}
				w := s.Post(t, o.to, sends)
				if w.Code < http.StatusBadRequest && !strings.HasPrefix(o.to, "/uploads/") { // which answers so if there is no such upload
					t.Errorf("a %s is not offered %s (%s), and can do it: %d to %s", role, o.to, o.button, w.Code, w.Header().Get("Location"))
				}
			}
			for _, id := range []string{"upload-default", "upload-other"} {
				if _, err := s.store.IncomingByID(t.Context(), id); err != nil {
					t.Errorf("a %s has removed another's upload: %v", role, err)
				}
			}
		})
	}
	// Last, since it acts: what is offered is not refused.
	for _, role := range []registry.Role{registry.RoleDepositor, registry.RoleOperator, registry.RoleAdmin} {
		s.Token = tokens[role]
		for o, sends := range offered[role] {
			if w := s.Post(t, o.to, sends); !slices.Contains(own, o.to) && (w.Code == http.StatusForbidden || w.Code >= http.StatusInternalServerError) {
				t.Errorf("a %s is offered %s (%s), which is answered with %d:\n%s", role, o.to, o.button, w.Code, mainOf(w.Body.String()))
			}
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
