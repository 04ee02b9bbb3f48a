package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/browsertest"
)

// gated is a server whose files are sent only after open has been called.
func gated(t *testing.T, jobs int) (url string, open func()) {
	t.Helper()
	gate := make(chan struct{})
	files := filesBatch(jobs, "f")
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/batch.checkm" {
			files(w, r)
			return
		}
		select {
		case <-gate:
			content(r.URL.Path)(w, r)
		case <-r.Context().Done():
		}
	}))
	server.Start()
	return url, func() { close(gate) }
}

// shownLive are the texts of a page's live parts, without times, whose age differs, and without those
// of rows, which a fresh page may sort otherwise, and of volumes, which others fill, too.
func shownLive(tab *browsertest.Tab) []string {
	return browsertest.Eval[[]string](tab, `[...document.querySelectorAll("main [data-live]:not(tr, #volume-rows)")].map((e) => {
		const copy = e.cloneNode(true); for (const at of copy.querySelectorAll("time")) at.remove(); return e.id + ": " + copy.textContent.replace(/\s+/g, " ").trim(); })`)
}

// TestBrowser_Live watches 200 jobs on the page of their batch and on that of operations. Neither is
// loaded again, and their content does not jump. The server is restarted meanwhile: at the end both
// show what a page shows that is loaded then.
func TestBrowser_Live(t *testing.T) {
	t.Parallel()
	const jobs = 200
	h := up(t)
	base, _ := h.address()
	h.listen = strings.TrimPrefix(base, "http://")
	url, open := gated(t, jobs)
	batch := h.begin(url+"/batch.checkm", "--title", "Letters from the harbour master")
	h.until("jobs are running", func() bool { return len(h.list("batch:"+batch, "state:downloading")) > 0 })
	paths := []string{"/batches/" + batch, "/operations"}
	var tabs []*browsertest.Tab
	for _, path := range paths {
		tab := browsertest.Open(t, base, browsertest.Mode{})
		tab.Allow("net::ERR_") // while the server is restarted
		tab.Allow("[object Event]")
		tab.SignIn(h.link())
		tab.Go(path)
		if tab.Count("main [data-live]") == 0 || tab.Count("#stream") != 1 {
			t.Fatalf("%s is not kept up to date", path)
		}
		browsertest.Eval[bool](tab, "window.isFirst = true")
		tab.Shift()
		tabs = append(tabs, tab)
	}
	open()
	h.until("some have completed", func() bool { return len(h.list("batch:"+batch, "state:completed")) > 0 })
	h.stop()
	h.start()
	h.becomes(batch, "Completed")
	for i, tab := range tabs {
		fresh := browsertest.Open(t, base, browsertest.Mode{})
		fresh.SignIn(h.link())
		fresh.Go(paths[i])
		var want, got []string
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s shows %q, a fresh one %q", paths[i], got, want)
			}
		})
		h.until(paths[i]+" shows the end", func() bool {
			fresh.Go(paths[i])
			want, got = shownLive(fresh), shownLive(tab)
			return slices.Equal(got, want)
		})
		if !browsertest.Eval[bool](tab, "window.isFirst === true") {
			t.Errorf("%s was loaded again", paths[i])
		}
		const most = 0.02
		if shift, what := tab.Shift(); shift > most {
			t.Errorf("%s jumped by %.3f, want at most %.2f: %s", paths[i], shift, most, strings.Join(what, "\n"))
		}
	}
}

// TestBrowser_Chip: what is new in a list waits behind a link, and a hidden tab has no stream.
func TestBrowser_Chip(t *testing.T) {
	t.Parallel()
	h := up(t)
	base, _ := h.address()
	url, open := gated(t, 1)
	h.begin(url+"/batch.checkm", "--title", "Maps of the coast")
	tab := browsertest.Open(t, base, browsertest.Mode{})
	tab.SignIn(h.link())
	tab.Go("/deposits")
	tab.AwaitText("Maps of the coast")
	if tab.Count("#new[hidden]") != 1 {
		t.Fatal("the list has no place for what is new")
	}
	h.begin(url+"/f0.txt", "--title", "A letter of 1871")
	tab.Await(`document.querySelector("#new:not([hidden]) [data-count]")?.textContent === "1"`)
	if strings.Contains(tab.Text("main"), "A letter of 1871") {
		t.Error("the new row is there before anybody asked for it")
	}
	tab.Follow("#new a")
	tab.AwaitText("A letter of 1871")

	tab.Hide(true)
	tab.Await(`!document.getElementById("stream")`)
	before := shownRows(tab)
	open()
	h.until("all have completed", func() bool { return len(h.list("state:completed", "action:batch")) == 2 })
	if got := shownRows(tab); got != before {
		t.Errorf("a hidden tab changes from %q to %q", before, got)
	}
	tab.Hide(false)
	tab.Await(`document.getElementById("stream") && ` + rowsText + ` !== ` + browsertest.Quoted(before))
}

// rowsText is the text of a page's rows, without times.
const rowsText = `[...document.querySelectorAll("main tr[data-live]")].map((e) => { const copy = e.cloneNode(true);
	for (const at of copy.querySelectorAll("time")) at.remove(); return copy.textContent.replace(/\s+/g, " ").trim(); }).join("\n")`

func shownRows(tab *browsertest.Tab) string { return browsertest.Eval[string](tab, rowsText) }
