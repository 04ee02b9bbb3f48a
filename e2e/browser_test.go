package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/browsertest"
)

// link is the path of a one-time link that signs in the first admin.
func (h *holdfast) link() string {
	h.t.Helper()
	base, _ := h.address()
	return strings.TrimPrefix(strings.TrimSpace(h.must(0, "login").stdout), base)
}

// someOfEverything hands in deposits of which some fail, and makes what the pages show. It returns
// the addresses of their pages.
func (h *holdfast) someOfEverything() []string {
	h.t.Helper()
	files := filesBatch(8, "photograph-of-the-harbour-in-winter-")
	server, url := listen(h.t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/batch.checkm":
			files(w, r)
		case strings.HasSuffix(r.URL.Path, "-3.txt") || strings.HasSuffix(r.URL.Path, "-5.txt"):
			w.WriteHeader(http.StatusNotFound)
		default:
			content(r.URL.Path)(w, r)
		}
	}))
	server.Start()
	s, code := h.submit("-q", url+"/batch.checkm", "--title", "Photographs of the harbour")
	if code == 0 || s.Failed != 2 {
		h.t.Fatalf("exit=%d, %d failed, want 2", code, s.Failed)
	}
	h.must(0, "hold", "add", "--scope", "collection", "--key", "default", "--reason", "the shelves are being moved")
	h.token("--name", "reading room", "--role", "viewer")
	paths := []string{"/batches/" + s.BatchID, "/no-such-page"}
	for state, found := range map[string]bool{"completed": false, "failed": false} {
		for _, it := range h.list("batch:"+s.BatchID, "state:"+state) {
			if it.Action != "batch" && !found {
				paths, found = append(paths, "/items/"+it.ID), true
			}
		}
	}
	for _, o := range rows[struct {
		ID string `json:"id"`
	}](h, "object", "list", "--limit", "1") {
		paths = append(paths, "/objects/"+o.ID)
	}
	return paths
}

// TestBrowser_Menu opens each page of the menu, and pages of single things, in four modes: everybody
// can use them, nothing is wider than the screen, and the browser finds no fault.
func TestBrowser_Menu(t *testing.T) {
	t.Parallel()
	h := up(t)
	more := h.someOfEverything()
	base, _ := h.address()
	tab := browsertest.Open(t, base, browsertest.Mode{})
	tab.Allow("404 (Not Found)") // of the error page
	tab.SignIn(h.link())
	paths := browsertest.Eval[[]string](tab, `[...document.querySelectorAll("nav.side a")].map((a) => a.getAttribute("href"))`)
	const fewest = 8
	if len(paths) < fewest {
		t.Fatalf("an admin's menu has only %v", paths)
	}
	for _, mode := range browsertest.Modes {
		tab.Mode(mode)
		for _, path := range append(paths, more...) {
			t.Run(mode.String()+" "+strings.Split(path, "/")[1], func(t *testing.T) {
				tab.For(t)
				tab.Go(path)
				if tab.Text("h1") == "" {
					t.Errorf("%s has no heading", path)
				}
				tab.Axe()
				tab.Fits()
				tab.Check()
			})
		}
		tab.For(t)
	}
}
