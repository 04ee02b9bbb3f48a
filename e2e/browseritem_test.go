package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/browsertest"
)

// TestBrowser_Watch: the page of a batch shows how 200 jobs go on, without being loaded again and
// without a jump.
func TestBrowser_Watch(t *testing.T) {
	t.Parallel()
	const jobs = 200
	h := up(t)
	files := filesBatch(jobs, "plate-")
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/batch.checkm" {
			files(w, r)
			return
		}
		content(r.URL.Path)(w, r)
	}))
	server.Start()
	h.must(0, "hold", "add", "--scope", "stage", "--key", "download", "--reason", "until somebody watches")
	batch := h.begin(url+"/batch.checkm", "--title", "Glass plates")
	h.until("all jobs wait", func() bool { return len(h.list("batch:"+batch, "stage:download", "state:held")) == jobs })

	base, _ := h.address()
	tab := browsertest.Open(t, base, browsertest.Mode{})
	tab.SignIn(h.link())
	tab.Go("/batches/" + batch)
	tab.AwaitText(fmt.Sprintf("0 of %d jobs completed", jobs))
	rows := tab.Count(".jobs tbody tr")
	if rows != 100 {
		t.Errorf("the page lists %d jobs, want 100", rows)
	}
	browsertest.Eval[bool](tab, "window.stayed = true")
	tab.Shift() // of the page when it came
	h.must(0, "hold", "remove", "--scope", "stage", "--key", "download")
	tab.AwaitText(fmt.Sprintf("%d of %d jobs completed", jobs, jobs))
	tab.Await(`[...document.querySelectorAll(".jobs .state")].every((s) => s.textContent.includes("Completed"))`)
	if !browsertest.Eval[bool](tab, "window.stayed === true") {
		t.Error("the page was loaded again")
	}
	if got := tab.Count(".jobs tbody tr"); got != rows {
		t.Errorf("the page lists %d jobs, before %d", got, rows)
	}
	const most = 0.02
	if score, what := tab.Shift(); score > most {
		t.Errorf("the page jumped by %.3f: %s", score, strings.Join(what, "; "))
	}
	tab.Check()
}

// TestBrowser_Hold holds an item and releases it, from its page, with scripts and without. Both acts
// say what they do before they are done.
func TestBrowser_Hold(t *testing.T) {
	t.Parallel()
	h := up(t)
	server, url := listen(t, filesBatch(2, "plate-"))
	server.Start()
	h.must(0, "hold", "add", "--scope", "stage", "--key", "expand", "--reason", "so that it waits")
	batch := h.begin(url + "/batch.checkm")
	base, _ := h.address()
	for _, mode := range []browsertest.Mode{{}, {Phone: true}, {NoScript: true}} {
		t.Run(mode.String(), func(t *testing.T) {
			tab := browsertest.Open(t, base, mode)
			tab.SignIn(h.link())
			tab.Go("/batches/" + batch)
			tab.Follow(`#acts button[value="hold"]`)
			tab.AwaitText("start a further step until somebody releases the hold")
			tab.Type("#reason", "the curator looks at it")
			tab.Follow("form.act button")
			tab.AwaitText("Done: hold")
			tab.Follow(`#acts button[value="release-hold"]`)
			tab.AwaitText("unless another hold covers it")
			tab.Follow("form.act button")
			tab.AwaitText("Done: release-hold")
			tab.Check()
		})
	}
}
