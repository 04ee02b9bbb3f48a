package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/browsertest"
)

// chooseAll opens the list of what matches a query, and asks for an act on all of it.
func chooseAll(tab *browsertest.Tab, query, act string) {
	tab.Go("/items?q=" + url.QueryEscape(query))
	tab.Click(`.selection input[name="all"]`)
	tab.Follow(`.selection button[value="` + act + `"]`)
}

// TestBrowser_Bulk acts on 10,000 items that match a query: with a preview whose counts are right,
// progress without a reload, a stop in the middle, and an undo before it begins. What was not done is
// not done to the data.
func TestBrowser_Bulk(t *testing.T) {
	t.Parallel()
	const jobs, cancelled = 10_000, 3
	h := up(t)
	server, source := listen(t, filesBatch(jobs, "plate-"))
	server.Start()
	h.must(0, "hold", "add", "--scope", "stage", "--key", "estimate", "--reason", "so that they wait")
	batch := h.begin(source+"/batch.checkm", "--title", "Glass plates")
	h.until("all jobs wait", func() bool { return h.item(batch).Stage == "report" })
	for _, it := range rows[item](h, "item", "list", "batch:"+batch, "--limit", fmt.Sprint(cancelled)) {
		h.must(0, "item", "cancel", it.ID, "--yes")
	}
	having := func(priority int) int { return len(h.list("batch:"+batch, fmt.Sprintf("priority:%d", priority))) }
	query := "batch:" + batch
	base, _ := h.address()
	tab := browsertest.Open(t, base, browsertest.Mode{})
	tab.SignIn(h.link())

	chooseAll(tab, query, "priority")
	tab.AwaitText("10,000 items match now; 3 are skipped")
	if text := tab.Text("h1"); !strings.Contains(text, "9,997 items") {
		t.Errorf("the preview is headed %q", text)
	}
	tab.Type("#priority", "77")
	tab.Type("#reason", "a mistake")
	tab.Follow("form.act button")
	tab.AwaitText("Nothing has changed yet.")
	undone := strings.TrimPrefix(tab.Path(), "/bulk/")
	tab.Follow("#bulk form button")
	tab.AwaitText("Undone before it started. Nothing was changed.")
	if it := h.item(undone); it.State != "Cancelled" {
		t.Errorf("what was undone is %s", it.State)
	}
	if n := having(77); n != 0 {
		t.Errorf("%d items were changed by what was undone", n)
	}

	// It is stopped in the middle. A machine that is too fast for that gets another chance.
	const chances = 8
	stopped := false
	for i := range chances {
		priority := 10 + i
		chooseAll(tab, query, "priority")
		tab.Type("#priority", fmt.Sprint(priority))
		tab.Click(`input[name="now"]`)
		tab.Follow("form.act button")
		act := strings.TrimPrefix(tab.Path(), "/bulk/")
		browsertest.Eval[bool](tab, "window.stayed = true")
		tab.Await(`document.querySelector("#bulk progress").value > 0 || !document.querySelector("#bulk form")`)
		if !browsertest.Eval[bool](tab, "window.stayed === true") {
			t.Error("the page was loaded again")
		}
		const stop = `(() => { const b = document.querySelector("#bulk form button"); b?.click(); return !!b; })()`
		if browsertest.Eval[bool](tab, stop) {
			tab.Await(`!window.stayed && document.readyState === "complete" && !document.querySelector("#bulk form")`)
		}
		h.until("the act has ended", func() bool { state := h.item(act).State; return state == "Cancelled" || state == "Completed" })
		tab.Go("/bulk/" + act)
		shown := browsertest.Eval[int](tab, `Number(document.querySelector("#bulk dl dd").textContent.replace(/\D/g, ""))`)
		if n := having(priority); n != shown {
			t.Errorf("the page says that %d items were changed; %d were", shown, n)
		}
		if h.item(act).State == "Cancelled" && shown > 0 && shown < jobs-cancelled {
			stopped = true
			break
		}
	}
	if !stopped {
		t.Errorf("it was never stopped in the middle")
	}

	// Now to its end.
	chooseAll(tab, query, "priority")
	tab.Type("#priority", "5")
	tab.Click(`input[name="now"]`)
	tab.Follow("form.act button")
	browsertest.Eval[bool](tab, "window.stayed = true")
	tab.AwaitText("10,000 of 10,000") // looked at
	tab.Await(`document.querySelector("#bulk .state").textContent.includes("Completed")`)
	if !browsertest.Eval[bool](tab, "window.stayed === true") {
		t.Error("the page was loaded again")
	}
	if n := having(5); n != jobs-cancelled {
		t.Errorf("%d items were changed, want %d", n, jobs-cancelled)
	}
}

// TestBrowser_RequeueByCause: items failed for two causes. One cause is requeued from the page of
// operations, and only its items run again.
func TestBrowser_RequeueByCause(t *testing.T) {
	t.Parallel()
	const jobs, missing = 12, 4
	source, mend := twoCauses(t, jobs, func(n int) bool { return n < missing })
	h := up(t, "HOLDFAST_MAX_ATTEMPTS=1")
	s, _ := h.submit("-q", source+"/batch.checkm", "--title", "Letters of the harbour master")
	if s.Failed != jobs {
		t.Fatalf("%d failed, want %d", s.Failed, jobs)
	}
	mend()
	base, _ := h.address()
	tab := browsertest.Open(t, base, browsertest.Mode{})
	tab.SignIn(h.link())
	for _, path := range []string{"/batches/" + s.BatchID, "/operations"} {
		tab.Go(path)
		tab.AwaitText("http-404")
		tab.AwaitText("http-503")
	}
	tab.Leaves(func() {
		const button = `[...document.querySelectorAll("#causes tbody tr")].find((r) => r.textContent.includes("http-503")).querySelector("button")`
		if text := browsertest.Eval[string](tab, button+".textContent"); text != fmt.Sprintf("Requeue these %d", jobs-missing) {
			t.Errorf("the button says %q", text)
		}
		browsertest.Eval[bool](tab, "("+button+".click(), true)")
	})
	tab.AwaitText(fmt.Sprintf("%d items match now", jobs-missing))
	tab.AwaitText("http-503")
	if strings.Contains(tab.Text("main"), "http-404") {
		t.Error("the preview has the other cause, too")
	}
	tab.Axe()
	tab.Type("#reason", "the server is mended")
	tab.Click(`input[name="now"]`)
	tab.Follow("form.act button")
	browsertest.Eval[bool](tab, "window.stayed = true")
	tab.AwaitText(fmt.Sprintf("%d of %d", jobs-missing, jobs-missing))
	tab.Await(`document.querySelector("#bulk .state").textContent.includes("Completed")`)
	if !browsertest.Eval[bool](tab, "window.stayed === true") {
		t.Error("the page was loaded again")
	}
	h.until("what was requeued has completed", func() bool { return len(h.list("state:completed", "batch:"+s.BatchID)) == jobs-missing })
	for _, it := range h.list("batch:" + s.BatchID) {
		again := 0
		if it.State == "Completed" {
			again = 1
		}
		if it.RetryCount != again || again == 0 && it.State != "Failed" {
			t.Errorf("%s is %s after %d requeues", it.Name, it.State, it.RetryCount)
		}
	}
}
