package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

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
		ID string `json:"object_id"`
	}](h, "object", "list", "--limit", "1") {
		paths = append(paths, "/objects/"+o.ID)
	}
	return paths
}

// TestBrowser_SignIn: everybody can sign in, in each mode and without scripts, and learns what is
// wrong with a token.
func TestBrowser_SignIn(t *testing.T) {
	t.Parallel()
	h := up(t)
	base, _ := h.address()
	viewer, _ := h.token("--name", "reading room", "--role", "viewer")
	for _, mode := range append(browsertest.Modes, browsertest.Mode{NoScript: true}) {
		tab := browsertest.Open(t, base, mode)
		tab.Allow("401 (Unauthorized)")
		tab.Go("/batches?q=x")
		if !mode.NoScript {
			tab.Axe()
			tab.Fits()
		}
		tab.Click("summary")
		tab.AwaitText("They can send you a link")
		tab.Type("#token", "wrong")
		tab.Follow("form button")
		if alert := tab.Text("[role=alert]"); !strings.Contains(alert, "unknown, expired or revoked") {
			t.Errorf("%v: a wrong token is answered with %q", mode, alert)
		}
		if !mode.NoScript {
			tab.Axe()
		}
		tab.SignIn(viewer)
		if name := tab.Text(".who"); !strings.Contains(name, "reading room") {
			t.Errorf("%v: signed in as %q", mode, name)
		}
		// The first page of a fresh browser has the reader's zone already. Without scripts no zone is known.
		zone := map[bool]string{false: "CE", true: "UTC"}[mode.NoScript] // CET or CEST
		if as := tab.Text("footer time"); !strings.Contains(as, zone) {
			t.Errorf("%v: the first page shows the time %q, want it in the zone %s", mode, as, zone)
		}
		tab.Follow(".who button")
		tab.AwaitText("You have signed out")
	}
}

// TestBrowser_Keys finds an item, walks along a list and opens the help with keys alone.
func TestBrowser_Keys(t *testing.T) {
	t.Parallel()
	h := up(t)
	page := h.someOfEverything()[0] // that of a batch
	base, _ := h.address()
	tab := browsertest.Open(t, base, browsertest.Mode{})
	tab.SignIn(h.link())
	tab.Go(page)
	focus := func(what string) { tab.Await(`document.activeElement.matches(` + browsertest.Quoted(what) + `)`) }

	tab.Press("\t")
	focus(".skip")
	tab.Press("\r")
	focus("main")
	tab.Press("j")
	focus("main tbody tr a")
	first := browsertest.Eval[string](tab, "document.activeElement.href")
	tab.Press("j")
	tab.Await(`document.activeElement.href !== ` + browsertest.Quoted(first))
	tab.Press("k")
	tab.Await(`document.activeElement.href === ` + browsertest.Quoted(first))
	tab.Press("/")
	focus("input[type=search]")
	tab.Press("?j")                                              // in a field these are letters
	tab.Await(`document.activeElement.value.endsWith("?j")`)     //
	tab.Press("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)) // also from a field
	tab.Await(`document.querySelector("dialog[open] input") === document.activeElement`)
	tab.Axe()
	tab.Press("hel")
	tab.Await(`document.querySelector("dialog li a")?.textContent === "Help"`)
	tab.Press(kb.ArrowDown)
	focus("dialog li a")
	tab.Leaves(func() { tab.Press("\r") })
	if at := tab.Path(); at != "/help" {
		t.Errorf("the palette leads to %s", at)
	}
	tab.Press("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	tab.Await(`document.querySelector("dialog[open]")`)
	tab.Press(kb.Escape)
	tab.Await(`!document.querySelector("dialog[open]")`)
	batch := h.list("action:batch")[0].ID
	tab.Press("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	tab.Press(batch[:13])
	tab.Leaves(func() { tab.Press("\r") })
	if at := tab.Path(); at != "/batches/"+batch {
		t.Errorf("the beginning of a batch's id leads to %s", at)
	}
	// Deposits, items and objects are found by the words of their titles and names.
	for _, search := range []struct{ entry, words, found string }{
		{"Deposits: ", "HARBOUR", "Photographs of the harbour"}, {"Items: ", "in-winter-1", "photograph-of-the-harbour-in-winter-1.txt"}, {"Objects: ", "HARBOUR", "Photographs of the harbour"},
	} {
		palette(tab, search.words, search.entry)
		if rows := tab.Text("main tbody"); !strings.Contains(rows, search.found) {
			t.Errorf("%s%s leads to %s, without %q:\n%s", search.entry, search.words, tab.Path(), search.found, rows)
		}
	}
	palette(tab, "nowhere", "Items: ")
	tab.AwaitText("No batch or job matches.")
	tab.Leaves(func() { tab.Press("?") })
	if at := tab.Path(); at != "/help#keys" {
		t.Errorf("? leads to %s", at)
	}
	// Back to a form that was refused shows it again, without sending it again.
	tab.Allow("422 (Unprocessable Entity)")
	tab.Go("/operations/act?do=pause")
	tab.Type("main input[name=reason]", " ")
	tab.Leaves(func() { tab.Press("\r") })
	refused := tab.Text("main .fault")
	tab.Follow(`nav a[href="/holds"]`)
	browsertest.Eval[bool](tab, "history.back() === undefined")
	tab.Await(`document.querySelector("main .fault")?.innerText === ` + browsertest.Quoted(refused))
	tab.Check()
}
