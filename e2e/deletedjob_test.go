package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// TestDeletedJob_IsNoFailure: a deleted job no longer counts in its batch's failures. The next
// report omits it, and the batch, whose other job completed, is completed. Submitting the batch
// again is no duplicate.
func TestDeletedJob_IsNoFailure(t *testing.T) {
	t.Parallel()
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/batch.checkm":
			w.Header().Set("ETag", `"one"`)
			content(manifest("mrt-single-file-batch-manifest", self(r)+"/a.txt | | | | | a.txt", self(r)+"/gone.txt | | | | | gone.txt"))(w, r)
		case "/a.txt":
			content("some text")(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	server.Start()
	h := up(t)
	s, code := h.submit(url + "/batch.checkm")
	if code != 3 {
		t.Fatalf("exit=%d, want 3", code)
	}
	failed := h.list("batch:"+s.BatchID, "state:failed")
	h.must(0, "item", "delete", failed[0].ID, "--yes", "--reason", "it is not to be had")
	says(t, "batch show", h.must(0, "batch", "show", s.BatchID).stdout, "1 completed, 0 failed")
	if groups := rows[failureGroup](h, "batch", "failures", s.BatchID); len(groups) != 0 {
		t.Errorf("failures %+v, want none", groups)
	}
	h.must(0, "batch", "update-report", s.BatchID)
	h.becomes(s.BatchID, "Completed")
	report := h.must(0, "batch", "report", s.BatchID).stdout
	if says(t, "batch report", report, "1, 1 completed, 0 failed"); strings.Contains(report, "gone.txt") {
		t.Errorf("the report tells of what was deleted:\n%s", report)
	}
	again, code := h.submit(url + "/batch.checkm")
	if code != 3 || again.Failed != 1 {
		t.Errorf("again: exit=%d with %d failed, want 3 with 1: it is no duplicate", code, again.Failed)
	}
}
