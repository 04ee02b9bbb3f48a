package e2e

import (
	"net/http"
	"testing"
)

// TestUpdateOfNothing_IsRefusedAtOnce: a file that is to update an object and names none is refused when it is submitted, or, where only the
// source shows that it is a file, as soon as it is looked at; nothing is downloaded for it. A row is refused as rows are.
func TestUpdateOfNothing_IsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/batch.checkm" {
			content(manifest("mrt-single-file-batch-manifest", self(r)+"/a.txt | | | | | a.txt", self(r)+"/b.txt | | | | | b.txt | | mine"))(w, r)
			return
		}
		content("some text")(w, r)
	}))
	server.Start()
	h := up(t)
	r := h.must(2, "submit", url+"/a.txt", "--type", "file", "--update")
	says(t, "submit", r.stderr, "an update must say what it updates", "ARK or a local id")
	if batches := h.list("action:batch"); len(batches) != 0 {
		t.Errorf("%d batches were made", len(batches))
	}
	s, code := h.submit(url+"/a.txt", "--update")
	if it := h.item(s.BatchID); code != 6 || it.Stage != "expand" || len(h.list("--batch", s.BatchID)) != 0 {
		t.Errorf("exit=%d, it failed at %s, want 6 at expand and no jobs", code, it.Stage)
	}
	s, _ = h.submit(url+"/batch.checkm", "--update")
	codes := map[string]int{}
	for _, g := range rows[failureGroup](h, "batch", "failures", s.BatchID) {
		codes[g.Code] += g.Count
	}
	if codes["identifier-missing"] != 1 || codes["no-object"] != 1 || len(codes) != 2 {
		t.Errorf("failures %v, want one row without an identifier, and one whose object is not there", codes)
	}
}
