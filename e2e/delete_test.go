package e2e

import (
	"maps"
	"net/http"
	"path/filepath"
	"testing"
)

// TestDelete_FailedBatch deletes a failed batch: only after a confirmation, and never preserved
// objects.
func TestDelete_FailedBatch(t *testing.T) {
	t.Parallel()
	server := serve(t, map[string]http.HandlerFunc{
		"/batch.checkm": filesBatch(3, "f"), "/f0.txt": content("the first"), "/f2.txt": content("the third"),
	})
	h := up(t)
	s, code := h.submit(server + "/batch.checkm")
	if code != 3 || s.Completed != 2 || s.Failed != 1 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	before := h.exportAll(s)
	r := h.must(7, "batch", "delete", s.BatchID, "--reason", "sent twice")
	says(t, "delete without --yes", r.stderr, "1 job is deleted", "2 completed jobs", "stays", "--yes")
	if it := h.item(s.BatchID); it.State != "Failed" {
		t.Errorf("without a yes the batch is %s", it.State)
	}
	r = h.must(0, "batch", "delete", s.BatchID, "--reason", "sent twice", "--yes")
	says(t, "delete", r.stdout, s.BatchID, "Deleted")
	h.until("the failed job follows", func() bool {
		return len(h.list("batch:"+s.BatchID, "state:deleted")) == 1 && len(h.list("batch:"+s.BatchID, "state:completed")) == 2
	})
	if after := h.exportAll(s); len(before) != 2 || !maps.Equal(before, after) {
		t.Errorf("exported before %v, after %v", before, after)
	}
	h.must(8, "batch", "delete", s.BatchID, "--yes")
	says(t, "the cleanup", h.must(0, "batch", "cleanup", "--yes").stdout, s.BatchID+" removed")
	h.must(4, "item", "show", s.BatchID)
	if left := h.list("action:ingest,batch,bulk"); len(left) > 0 { // what sees to their staging is not due yet
		t.Errorf("the cleanup left %+v", left)
	}
	says(t, "the history of a batch that was cleaned up", h.must(0, "item", "history", s.BatchID).stdout, "submit", "delete", "sent twice", "purge")
	says(t, "the audit log", h.must(0, "audit", "list").stdout, "delete", "sent twice", "purge")
	h.must(10, "batch", "cleanup")
	if after := h.exportAll(s); !maps.Equal(before, after) {
		t.Errorf("exported before %v, after the cleanup %v", before, after)
	}
}

// exportAll exports the objects of a batch, and returns all files.
func (h *holdfast) exportAll(s summary) map[string]string {
	h.t.Helper()
	all := map[string]string{}
	for _, j := range s.Jobs {
		if j.ObjectID == "" {
			continue
		}
		out := filepath.Join(h.t.TempDir(), "out")
		h.must(0, "object", "export", j.ObjectID, "--out", out)
		maps.Copy(all, files(h.t, out))
	}
	return all
}
