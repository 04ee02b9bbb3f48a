package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// refusedRows are rows of a single-file batch, each refused for a reason of its own. HOST is the
// server of the files.
var refusedRows = map[string]string{
	"algorithm":          "HOST/a.txt | sha3 | 0123 | | | a.txt",
	"digest":             "HOST/a.txt | md5 | 0123 | | | a.txt",
	"size":               "HOST/a.txt | | | ten | | a.txt",
	"extra-columns":      "HOST/a.txt | | | | | a.txt | | | | | | more",
	"name":               "HOST/a.txt | | | | | ../a.txt",
	"name-pipe":          "HOST/a%7cb.txt | | | | | a|b.txt",
	"url-scheme":         "ftp://127.0.0.1/a.txt | | | | | a.txt",
	"url-secret":         "http://me:secret@127.0.0.1/a.txt | | | | | a.txt",
	"url-missing":        " | | | | | a.txt",
	"primary-identifier": "HOST/a.txt | | | | | a.txt | ark:/nobody",
}

// TestRefusedRow_NeverRuns: a row that the manifest's rules refuse is never preserved. No act
// requeues it, no page offers that, all advise to submit the corrected row, and no name is minted
// for it. The batch's good row is preserved.
func TestRefusedRow_NeverRuns(t *testing.T) {
	t.Parallel()
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/batch.checkm" {
			content("some text")(w, r)
			return
		}
		rows := []string{self(r) + "/good.txt | | | | | good.txt"}
		for _, row := range refusedRows {
			rows = append(rows, strings.ReplaceAll(row, "HOST", self(r)))
		}
		content(manifest("mrt-single-file-batch-manifest", rows...))(w, r)
	}))
	server.Start()
	h := up(t)
	s, code := h.submit(url + "/batch.checkm")
	if code != 3 || s.Failed != len(refusedRows) {
		t.Fatalf("exit=%d with %d failed, want 3 with %d", code, s.Failed, len(refusedRows))
	}
	failed := h.list("batch:"+s.BatchID, "state:failed")
	for _, it := range failed {
		if r := h.run("item", "requeue", it.ID, "--reason", "try it"); r.code != 8 || !strings.Contains(r.stderr, "submit the corrected row") {
			t.Errorf("requeue of a refused row ended with %d: %s%s", r.code, r.stdout, r.stderr)
		}
		var shown struct {
			Allowed []string `json:"allowed_acts"`
		}
		if shown = rows[struct {
			Allowed []string `json:"allowed_acts"`
		}](h, "item", "show", it.ID)[0]; strings.Contains(fmt.Sprint(shown.Allowed), "requeue") {
			t.Errorf("allowed are %v", shown.Allowed)
		}
		says(t, "item why", h.must(0, "item", "why", it.ID).stdout, "corrects the row and submits it")
	}
	groups := rows[failureGroup](h, "batch", "failures", s.BatchID)
	codes := map[string]bool{}
	for _, g := range groups {
		codes[g.Code] = true
		if strings.Contains(g.Act, "requeue") || !strings.Contains(g.Act, "corrects the row") {
			t.Errorf("%s is put right by %q", g.Code, g.Act)
		}
	}
	for code := range refusedRows {
		if !codes[code] {
			t.Errorf("no group of rows that were refused for %s in %v", code, codes)
		}
	}
	for _, args := range [][]string{{"batch", "failures", s.BatchID}, {"item", "failures"}, {"batch", "report", s.BatchID}} {
		if out := h.must(0, args...).stdout; strings.Contains(out, "item requeue") || strings.Contains(out, "requeues") {
			t.Errorf("%v offers a requeue:\n%s", args, out)
		} else {
			says(t, strings.Join(args, " "), out, "corrects the row and submits it")
		}
	}
	// All at once, and by the batch: each is refused.
	r := h.run("item", "requeue", "--match", "batch:"+s.BatchID+" state:failed", "--yes", "--reason", "try them")
	h.becomes(strings.TrimSpace(r.stdout), "Completed")
	if rest := h.list("batch:"+s.BatchID, "state:failed", "retries:0"); len(rest) != len(refusedRows) {
		t.Errorf("%d rows are still refused, want %d", len(rest), len(refusedRows))
	}
	if objects := rows[registry.Object](h, "object", "list"); len(objects) != 1 {
		t.Errorf("%d objects, want that of the good row", len(objects))
	}
	if names := h.query("registry.db", `SELECT id FROM object`); len(names) != 1 {
		t.Errorf("names %v were taken, want one", names)
	}
	if events := h.query("registry.db", `SELECT item_id FROM event WHERE type = 'identifier-assignment'`); len(events) != 1 {
		t.Errorf("%d names were assigned, want one", len(events))
	}
}
