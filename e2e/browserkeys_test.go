package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/holdfast/holdfast/internal/browsertest"
)

// tabTo presses the tabulator until something of a selector has the focus.
func tabTo(tab *browsertest.Tab, t *testing.T, selector string) {
	t.Helper()
	focused := `document.activeElement.matches(` + browsertest.Quoted(selector) + `)`
	for range 80 {
		if browsertest.Eval[bool](tab, focused) {
			return
		}
		tab.Press("\t")
	}
	t.Fatalf("the tabulator does not lead to %s on %s", selector, tab.Path())
}

// TestBrowser_DepositByKeys: a depositor signs in, deposits a file, sees it preserved and takes the receipt
// with keys alone. Only the window of the system in which files are chosen is not a part of the page.
func TestBrowser_DepositByKeys(t *testing.T) {
	t.Parallel()
	h := up(t)
	secret, _ := h.token("--name", "ann", "--role", "depositor", "--collection", "default")
	file := filepath.Join(t.TempDir(), "letter.txt")
	if err := os.WriteFile(file, []byte("Dear Ann"), 0o644); err != nil {
		t.Fatal(err)
	}
	base, _ := h.address()
	tab := browsertest.Open(t, base, browsertest.Mode{})
	tab.Go("/login")
	tabTo(tab, t, "#token")
	tab.Press(secret)
	tab.Leaves(func() { tab.Press("\r") })

	tabTo(tab, t, `nav.side a[href="/deposit"]`)
	tab.Leaves(func() { tab.Press("\r") })
	browsertest.Eval[bool](tab, `(document.getElementById("file").addEventListener("click", () => { window.asked = true; }), true)`)
	tabTo(tab, t, "#files")
	tab.Press("\r")
	tab.Await("window.asked")
	tab.Run(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	tab.Await(`document.querySelector("#payloads li")`)
	tabTo(tab, t, "#title")
	tab.Press("A letter to Ann")
	tabTo(tab, t, "#send")
	tab.Leaves(func() { tab.Press("\r") })

	tab.Await(`location.pathname.startsWith("/deposits/")`)
	tab.AwaitText("Preserved")
	const receipt = `main td a[download]`
	tab.Await(`document.querySelector("` + receipt + `")`)
	tabTo(tab, t, receipt)
	browsertest.Eval[bool](tab, `(document.activeElement.addEventListener("click", (e) => { e.preventDefault(); fetch(e.currentTarget.href).then((a) => a.text()).then((text) => { window.receipt = text; }); }), true)`)
	tab.Press("\r")
	tab.Await("window.receipt")
	if text := browsertest.Eval[string](tab, "window.receipt"); !strings.Contains(text, "ark:/99999/") || !strings.Contains(text, "letter.txt") {
		t.Errorf("the receipt: %s", text)
	}
}

// palette opens the palette, asks for words, and follows what begins with a text, with keys alone.
func palette(tab *browsertest.Tab, words, entry string) {
	tab.Press("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	tab.Await(`document.querySelector("dialog[open] input") === document.activeElement`)
	tab.Press(words)
	chosen := `document.activeElement.matches("dialog li a") && document.activeElement.textContent.startsWith(` + browsertest.Quoted(entry) + `)`
	for range 12 {
		tab.Press(kb.ArrowDown)
		if browsertest.Eval[bool](tab, chosen) {
			break
		}
	}
	tab.Await(chosen)
	tab.Leaves(func() { tab.Press("\r") })
}
