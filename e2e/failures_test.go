package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// failureGroup is a line of `failures --json`.
type failureGroup struct {
	Fingerprint string `json:"fingerprint"`
	Stage       string `json:"stage"`
	Class       string `json:"class"`
	Code        string `json:"code"`
	Host        string `json:"host"`
	Count       int    `json:"count"`
	ItemID      string `json:"item_id"`
	Name        string `json:"name"`
	Note        string `json:"note"`
	Act         string `json:"act"`
}

// twoCauses serves /batch.checkm, a manifest of some files, for failures of two causes: a file that is
// lost is missing for ever, and the server refuses the others until mend is called.
func twoCauses(t *testing.T, files int, lost func(n int) bool) (url string, mend func()) {
	t.Helper()
	var mended atomic.Bool
	manifest := filesBatch(files, "f")
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, err := fmt.Sscanf(r.URL.Path, "/f%d", &n)
		switch {
		case r.URL.Path == "/batch.checkm":
			manifest(w, r)
		case err == nil && lost(n):
			w.WriteHeader(http.StatusNotFound)
		case !mended.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			content(r.URL.Path)(w, r)
		}
	}))
	server.Start()
	return url, func() { mended.Store(true) }
}

// TestFailures_Grouped: some rows of a batch fail because the server answers 503, others because a
// file is missing. These are two groups. After the server is repaired, the printed command requeues
// the first group only.
func TestFailures_Grouped(t *testing.T) {
	t.Parallel()
	const jobs, missing = 90, 30 // every third row
	url, mend := twoCauses(t, jobs, func(n int) bool { return n%3 == 0 })
	h := up(t, "HOLDFAST_MAX_ATTEMPTS=1")
	s, code := h.submit("-q", url+"/batch.checkm")
	if code != 3 || s.Failed != jobs { // content and system faults
		t.Fatalf("exit=%d, %d failed, want %d", code, s.Failed, jobs)
	}
	groups := rows[failureGroup](h, "batch", "failures", s.BatchID)
	if len(groups) != 2 {
		t.Fatalf("groups %+v, want two", groups)
	}
	busy, gone := groups[0], groups[1]
	host := strings.TrimPrefix(url, "http://")
	for _, g := range []struct {
		failureGroup
		count             int
		class, code, note string
	}{{busy, jobs - missing, "system", "http-503", "503 Service Unavailable"}, {gone, missing, "content", "http-404", "404 Not Found"}} {
		if g.Count != g.count || g.Class != g.class || g.Code != g.code || g.Host != host || g.Stage != "download" || !strings.Contains(g.Note, g.note) {
			t.Errorf("group %+v, want %d with %s", g.failureGroup, g.count, g.code)
		}
		if it := h.item(g.ItemID); it.State != "Failed" {
			t.Errorf("the example is %s", it.State)
		}
	}
	table := h.must(0, "item", "failures", "batch:"+s.BatchID).stdout
	requeue := fmt.Sprintf("holdfast item requeue --match 'batch:%s cause:%s'", s.BatchID, busy.Fingerprint)
	says(t, "item failures", table, "http-503 from "+host, "http-404 from "+host, requeue, busy.Act, gone.Act, "  for example: "+busy.Name+"\n")

	mend()
	match := strings.Trim(requeue[strings.Index(requeue, "'"):], "'")
	r := h.must(0, "item", "requeue", "--match", match, "--yes", "--reason", "the server is mended")
	h.becomes(strings.TrimSpace(r.stdout), "Completed")
	h.until("all that were requeued have completed", func() bool {
		return len(h.list("state:completed", "retries:1", "batch:"+s.BatchID)) == jobs-missing
	})
	left := rows[failureGroup](h, "batch", "failures", s.BatchID)
	if len(left) != 1 || left[0] != gone {
		t.Errorf("left are %+v, want %+v as it was", left, gone)
	}
	if rest := h.list("cause:" + gone.Fingerprint); len(rest) != missing {
		t.Errorf("%d items are of the other cause, want %d", len(rest), missing)
	}
	for _, it := range h.list("state:failed", "action:ingest") {
		if it.RetryCount != 0 {
			t.Errorf("job %s of the other group was requeued", it.ID)
		}
	}
}
