package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/browsertest"
)

// TestBrowser_Deletion: one person asks for the deletion of an object, and another approves it. Nobody
// approves alone. What was declined or withdrawn stays, byte for byte; what was approved is gone, and
// its record stays.
func TestBrowser_Deletion(t *testing.T) {
	t.Parallel()
	h := up(t)
	preserve := func(text string) string {
		file := filepath.Join(t.TempDir(), "letter.txt")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, code := h.submit(file, "--title", text)
		if code != 0 {
			t.Fatalf("%d %+v", code, s)
		}
		return s.Jobs[0].ObjectID
	}
	kept, gone := preserve("A letter that stays"), preserve("A letter that goes")
	base, _ := h.address()
	person := func(name, role string) *browsertest.Tab {
		secret, _ := h.token("--name", name, "--role", role)
		tab := browsertest.Open(t, base, browsertest.Mode{})
		tab.SignIn(secret)
		return tab
	}
	ann, ben, viewer := person("ann", "admin"), person("ben", "admin"), person("vic", "viewer")
	const decision = `a[href*="decision="], button[name="decision"], form[action^="/deletions/"] button`
	offers := func(tab *browsertest.Tab, ark string) string {
		tab.Go("/objects/" + ark)
		return browsertest.Eval[string](tab, `[...document.querySelectorAll('`+decision+`')].map((e) => e.textContent.trim()).join(", ")`)
	}
	choose := func(tab *browsertest.Tab, ark, what string) {
		tab.Go("/objects/" + ark)
		tab.Leaves(func() {
			browsertest.Eval[bool](tab, `([...document.querySelectorAll('`+decision+`')].find((e) => e.textContent.trim() === `+browsertest.Quoted(what)+`).click(), true)`)
		})
	}
	ask := func(tab *browsertest.Tab, ark string) {
		choose(tab, ark, "Request deletion")
		tab.AwaitText("Another person must approve the deletion")
		tab.Type("#reason", "rights were withdrawn")
		tab.Follow("form.act button")
	}
	says := func(ark, state string) {
		t.Helper()
		if shown := h.must(0, "object", "show", ark).stdout; !strings.Contains(shown, state) {
			t.Errorf("the object's record is without %q:\n%s", state, shown)
		}
	}

	if got := offers(viewer, kept); got != "" {
		t.Errorf("a viewer is offered %s", got)
	}
	ask(ann, kept)
	if got := offers(ann, kept); strings.Contains(got, "Approve") || !strings.Contains(got, "Withdraw the request") {
		t.Errorf("who asked is offered %q", got)
	}
	ann.Allow("409 (Conflict)")
	ann.Go("/deletions/" + kept + "?decision=approve") // by hand
	if text := ann.Text("main"); !strings.Contains(text, "two people") && !strings.Contains(text, "same person") {
		t.Errorf("an approval of one's own request is answered with %q", text)
	}
	ben.Go("/deletions")
	ben.AwaitText("rights were withdrawn")
	if text := ben.Text("main"); !strings.Contains(text, "Look at it and decide") {
		t.Errorf("who may approve it sees %q", text)
	}
	choose(ben, kept, "Decline deletion")
	ben.AwaitText("The object stays as it is.")
	ben.Follow("form.act button")
	ask(ann, kept) // again, and ann thinks better of it
	choose(ann, kept, "Withdraw the request")
	ann.Follow("form.act button")
	says(kept, "A letter that stays")
	h.must(0, "object", "verify", kept)
	out := filepath.Join(t.TempDir(), "export")
	h.must(0, "object", "export", kept, "--out", out)
	if got := files(t, out)["letter.txt"]; got != "A letter that stays" {
		t.Errorf("the file is %q", got)
	}

	ask(ann, gone)
	choose(ben, gone, "Approve deletion")
	ben.AwaitText("This cannot be undone.")
	ben.Follow("form.act button")
	h.until("it is deleted", func() bool { return strings.Contains(h.run("object", "show", gone).stdout, "deleted") })
	ben.Await(`(document.querySelector("main") || document.body).innerText.includes("deleted")`)
	for _, tab := range []*browsertest.Tab{ben, viewer} { // the tombstone
		tab.Go("/objects/" + gone)
		for _, word := range []string{"rights were withdrawn", "ann", "ben"} {
			tab.AwaitText(word)
		}
		tab.Axe()
		if got := offers(tab, gone); got != "" {
			t.Errorf("a deleted object offers %s", got)
		}
	}
	for name, text := range files(t, h.place("storage")) {
		if strings.Contains(text, "A letter that goes") && strings.HasSuffix(name, "letter.txt") {
			t.Errorf("left in storage: %s", name)
		}
	}
	h.must(0, "object", "verify", kept)
	h.must(4, "object", "verify", gone)
}
