package e2e

import (
	"html"
	"net/http"
	"strings"
	"testing"
)

// TestFailedBatch_IsTold: a batch whose manifest could not be read shows its failure everywhere:
// among its failures with a remedy, instead of its report, and on its page. No message advises to
// wait for a report.
func TestFailedBatch_IsTold(t *testing.T) {
	t.Parallel()
	cut := strings.TrimSuffix(manifest("mrt-single-file-batch-manifest", "http://127.0.0.1/a.txt | | | | | a.txt"), "#%eof\n")
	url := serve(t, map[string]http.HandlerFunc{"/cut.checkm": content(cut)})
	h := up(t)
	s, code := h.submit(url+"/cut.checkm", "--type", "single-file-batch-manifest")
	if code != 6 {
		t.Fatalf("exit=%d, want 6", code)
	}
	groups := rows[failureGroup](h, "batch", "failures", s.BatchID)
	if len(groups) != 1 || groups[0].ItemID != s.BatchID || groups[0].Stage != "expand" || groups[0].Class != "content" || !strings.Contains(groups[0].Note, "#%eof") {
		t.Errorf("groups %+v, want the batch itself", groups)
	}
	says(t, "batch failures", h.must(0, "batch", "failures", s.BatchID).stdout, "expand", "content", "the producer corrects the deposit", "item requeue --match 'id:"+s.BatchID)
	r := h.must(4, "batch", "report", s.BatchID)
	says(t, "batch report", r.stderr, "failed before it had jobs", "#%eof", "no report will come", "batch failures "+s.BatchID)
	if strings.Contains(r.stderr, "watch") {
		t.Errorf("it is told to wait: %s", r.stderr)
	}
	says(t, "batch report --list", h.must(0, "batch", "report", "--list", s.BatchID).stderr, "no report will come")
	says(t, "the page", h.page("/batches/"+s.BatchID), "no report will come", "Failures", "The producer corrects the deposit")

	h.must(0, "item", "abort", s.BatchID, "--yes", "--reason", "wrong file")
	r = h.must(4, "batch", "report", s.BatchID)
	says(t, "report of an aborted batch", r.stderr, "it is aborted (aborted by holdfast up: wrong file)", "no report will come")
	says(t, "failures of an aborted batch", h.must(0, "batch", "failures", s.BatchID).stderr, "it is aborted", "no report will come")
	says(t, "its page", h.page("/batches/"+s.BatchID), "no report will come")
}

// page is the text of one of the pages.
func (h *holdfast) page(path string) string {
	h.t.Helper()
	status, text := h.get(path)
	if status != http.StatusOK {
		h.t.Fatalf("%s answered %d: %s", path, status, text)
	}
	return html.UnescapeString(string(text))
}
