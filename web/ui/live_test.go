package ui_test

import (
	"bufio"
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// streamOf finds the address of a page's stream.
var streamOf = regexp.MustCompile(`"(/live\?[^"]*)"`)

// TestLive_Alike: a page whose renderings all of a role share shows two of them the same, although one
// of them has submitted things, has asked for a deletion and has a view of their own.
func TestLive_Alike(t *testing.T) {
	s := siteOf(uitest.New(t, uitest.Options{}))
	start, _ := s.everything(t)
	tokens := []string{s.TokenOf(t, "ben", registry.RoleOperator), s.TokenOf(t, "anna", registry.RoleOperator)}
	_, err := s.store.AddView(t.Context(), registry.View{Name: "mine", Query: "state:failed", Owner: "ben"})
	must(t, err)
	server := httptest.NewServer(s.Handler)
	t.Cleanup(server.Close)
	_, pages, _ := s.walk(t, tokens[0], append(start, "/deposits", "/deposits?of=all", "/operations", "/holds", "/items?q=by%3Aben"))
	pattern := uitest.Patterns(s.Site.Routes())
	seen, shared, differ := map[string]int{}, map[string]bool{}, map[string]bool{}
	const enough = 2
	for path, p := range pages {
		at := pattern(http.MethodGet, path)
		stream := streamOf.FindStringSubmatch(p.Text)
		if strings.Contains(path, "view=") {
			continue // ben's own, which anna cannot open
		}
		if stream == nil || !strings.Contains(p.Text, " data-live") || seen[at] == enough && path != "/deposits" && path != "/deposits?of=all" {
			continue
		}
		seen[at]++
		address := server.URL + regexp.MustCompile(`&seen=.*`).ReplaceAllString(html.UnescapeString(stream[1]), "")
		ben, alike := firstOf(t, address, tokens[0])
		anna, _ := firstOf(t, address, tokens[1])
		if ben != anna { // time has passed: a batch has a rate when it is a second old
			ben, _ = firstOf(t, address, tokens[0])
		}
		if alike {
			shared[at] = true
		}
		if ben != anna {
			differ[at] = true
			if alike {
				t.Errorf("%s is shared and differs:\n%s\n%s", path, ben, anna)
			}
		}
	}
	for _, at := range []string{"GET /operations", "GET /deposits", "GET /items", "GET /batches/{id}", "GET /items/{id}", "GET /graphs/{id}", "GET /bulk/{id}", "GET /holds"} {
		if !shared[at] {
			t.Errorf("%s is not shared: %d pages were seen", at, seen[at])
		}
	}
	if !differ["GET /deposits"] { // without those of others
		t.Error("what the two have deposited does not differ")
	}
}

// figures change with the time.
var figures = regexp.MustCompile(`[0-9]+(,[0-9]+)*`)

// firstOf returns the first message of a stream, without its figures, and whether it is shared.
func firstOf(t *testing.T, address, token string) (text string, shared bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	var b strings.Builder
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, ": for all"):
			shared = true
		case strings.HasPrefix(line, "data:"):
			b.WriteString(line + "\n")
		case line == "" && b.Len() > 0:
			return figures.ReplaceAllString(b.String(), "0"), shared
		}
	}
	t.Fatalf("%s ends with status %s: %v", address, answer.Status, lines.Err())
	return "", false
}
