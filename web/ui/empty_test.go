package ui_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// emptyBox is the box of a list without rows, and nextAct what it offers.
var (
	emptyBox = regexp.MustCompile(`(?s)<div class="empty">(.*?)</div>`)
	nextAct  = regexp.MustCompile(`<(?:a class="button[^"]*" href="[^"]+"|button)[^>]*>[^<]+|An? (?:depositor|operator|admin)[^<.]* can`)
	sentence = regexp.MustCompile(`<p>[^<]{10,}[.!]`)
)

// shownTables opens every page that has an address of its own, as somebody of a role sees it, and counts
// the tables that it shows. It returns the pages, too.
func (s *site) shownTables(t *testing.T, role registry.Role) (tables map[string]int, texts map[string]string) {
	t.Helper()
	name := string(role)
	if role == registry.RoleDepositor {
		name = "ben" // who has deposits, see everything
	}
	s.Token = s.TokenOf(t, name, role)
	tables, texts = map[string]int{}, map[string]string{}
	for _, route := range s.Site.Routes() {
		path, ok := strings.CutPrefix(route, "GET ")
		if !ok || strings.Contains(path, "{") || !s.Site.Has(path) {
			continue
		}
		w := s.Send(t, http.MethodGet, path, nil)
		if w.Code != http.StatusOK {
			continue // it is of an act that needs to be told on what, or not for this role
		}
		_, text, _ := strings.Cut(w.Body.String(), "<main")
		text, _, _ = strings.Cut(text, "</main>")
		tables[path], texts[path] = strings.Count(text, "<tbody"), text
	}
	return tables, texts
}

// TestEmpty: on an empty installation every list of the site says in a box what it is, and what to do
// next: an act, or who can do it. The lists are the pages that show more tables once there is something
// of everything; that of operations is the picture of a pipeline, which is shown at rest as well.
func TestEmpty(t *testing.T) {
	t.Parallel()
	empty, full := newSite(t), newSite(t)
	full.everything(t)
	now := time.Now()
	_, err := full.store.AddSession(t.Context(), registry.Session{ID: "s", Name: "ben", Role: registry.RoleAdmin, CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(time.Hour)}, registry.Lifetime{Idle: time.Hour, Most: time.Hour})
	must(t, err)
	for _, role := range []registry.Role{registry.RoleAdmin, registry.RoleOperator, registry.RoleViewer, registry.RoleDepositor} {
		before, texts := empty.shownTables(t, role)
		after, _ := full.shownTables(t, role)
		var lists []string
		for _, path := range slices.Sorted(maps.Keys(before)) {
			if after[path] <= before[path] || path == "/operations" {
				continue
			}
			lists = append(lists, path)
			box := emptyBox.FindStringSubmatch(texts[path])
			if box == nil || !sentence.MatchString(box[1]) || !nextAct.MatchString(box[1]) {
				t.Errorf("%s, empty, for the role %s: no box that says what it is and what to do next:\n%.1500s", path, role, texts[path])
			}
		}
		if len(lists) < 4 {
			t.Errorf("the lists of the role %s are %v, too few", role, lists)
		}
	}
}
