package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/browsertest"
)

// TestBrowser_Roles: in a browser, each role sees and can do what it should, also by hand.
// TestAccess_Roles tries all pages and forms, without a browser.
func TestBrowser_Roles(t *testing.T) {
	t.Parallel()
	h := up(t)
	h.collection("maps")
	deposit := func(collection, title string) summary {
		file := filepath.Join(t.TempDir(), "sheet.txt")
		if err := os.WriteFile(file, []byte(title), 0o600); err != nil {
			t.Fatal(err)
		}
		s, code := h.submit(file, "--title", title, "--collection", collection)
		if code != 0 {
			t.Fatalf("%d %+v", code, s)
		}
		return s
	}
	deposit("default", "Letters of the keepers")
	foreign := deposit("maps", "Charts of the coast")
	h.must(0, "hold", "add", "--scope", "stage", "--key", "expand", "--reason", "so that it waits")
	later := filepath.Join(t.TempDir(), "later.txt")
	if err := os.WriteFile(later, []byte("later"), 0o600); err != nil {
		t.Fatal(err)
	}
	waits := h.begin(later)
	base, _ := h.address()
	as := func(role string, more ...string) *browsertest.Tab {
		secret, _ := h.token(append([]string{"--name", "the " + role, "--role", role}, more...)...)
		tab := browsertest.Open(t, base, browsertest.Mode{})
		for _, status := range []string{"403 (Forbidden)", "404 (Not Found)"} {
			tab.Allow(status) // that the test provokes
		}
		tab.SignIn(secret)
		return tab
	}
	menu := func(tab *browsertest.Tab) string {
		return " " + browsertest.Eval[string](tab, `[...document.querySelectorAll("nav.side a")].map((a) => a.getAttribute("href")).join(" ")`) + " "
	}
	get := func(tab *browsertest.Tab, path string) int {
		return browsertest.Eval[int](tab, "fetch("+browsertest.Quoted(path)+").then((r) => r.status)")
	}
	post := func(tab *browsertest.Tab, path, form string) int {
		return browsertest.Eval[int](tab, fmt.Sprintf(`fetch(%s, { method: "POST", redirect: "manual", body: new URLSearchParams(%s) }).then((r) => r.status)`, browsertest.Quoted(path), browsertest.Quoted(form)))
	}
	const notFound, forbidden = 404, 403

	depositor := as("depositor", "--collection", "default")
	if got := menu(depositor); strings.Contains(got, " /items ") || strings.Contains(got, " /tokens ") || !strings.Contains(got, " /deposit ") {
		t.Errorf("a depositor's menu is %s", got)
	}
	for _, path := range []string{"/deposits?of=all", "/objects"} {
		depositor.Go(path)
		depositor.AwaitText("Letters of the keepers")
		if strings.Contains(depositor.Text("main"), "Charts of the coast") {
			t.Errorf("%s shows a depositor another's collection", path)
		}
	}
	job := foreign.Jobs[0]
	for _, path := range []string{"/batches/" + foreign.BatchID, "/deposits/" + foreign.BatchID, "/items/" + job.ItemID, "/objects/" + job.ObjectID, "/collections/maps"} {
		if got := get(depositor, path); got != notFound {
			t.Errorf("a depositor is answered %d at %s", got, path)
		}
	}

	viewer := as("viewer")
	for _, path := range []string{"/batches/" + waits, "/items/" + waits, "/objects/" + job.ObjectID, "/operations", "/holds", "/items", "/collections/maps", "/deposits?of=all"} {
		viewer.Go(path)
		if n := viewer.Count(`main form[method="post"], main form[action$="/acts"], main form[action="/items/act"], main a.danger`); n != 0 {
			t.Errorf("%s offers a viewer %d acts", path, n)
		}
	}
	if got := post(viewer, "/items/"+waits+"/acts", "act=cancel&confirm=yes"); got != forbidden {
		t.Errorf("a viewer's act is answered with %d", got)
	}

	operator := as("operator")
	if got := menu(operator); strings.Contains(got, " /tokens ") || !strings.Contains(got, " /audit ") {
		t.Errorf("an operator's menu is %s", got)
	}
	for _, path := range []string{"/tokens", "/new/token", "/new/collection", "/collections/maps/edit"} {
		if got := get(operator, path); got != forbidden {
			t.Errorf("an operator is answered %d at %s", got, path)
		}
	}
	if got := post(operator, "/new/token", "name=sneaked+in&role=admin"); got != forbidden {
		t.Errorf("an operator's token is answered with %d", got)
	}
	if it := h.item(waits); it.State == "Cancelled" {
		t.Error("the viewer has cancelled it")
	}
	operator.Go("/batches/" + waits)
	operator.Follow(`#acts button[value="cancel"]`)
	operator.Follow("form.act button")
	if it := h.item(waits); it.State != "Cancelled" {
		t.Errorf("after an operator's act it is %s", it.State)
	}

	admin := as("admin")
	admin.Go("/new/token")
	admin.Type("#name", "Reading room")
	admin.Click("#role-viewer")
	admin.Follow("form.stacked button.main")
	admin.AwaitText("it is shown only now")
	tokens := h.must(0, "token", "list").stdout
	if !strings.Contains(tokens, "Reading room") || strings.Contains(tokens, "sneaked in") {
		t.Errorf("the tokens are\n%s", tokens)
	}
}
