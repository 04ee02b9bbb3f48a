package e2e

import (
	"cmp"
	"encoding/csv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReport_RowsAndLines: a report names each job's row in the batch, counted from 1, and its line
// in the manifest: as a table, JSON and CSV. So does the batch's page.
func TestReport_RowsAndLines(t *testing.T) {
	t.Parallel()
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/batch.checkm" {
			content("some text")(w, r)
			return
		}
		content(manifest("mrt-single-file-batch-manifest", self(r)+"/a.txt | | | | | a.txt", "# a remark", "ftp://nowhere/b.txt | | | | | b.txt", self(r)+"/c.txt | | | | | c.txt"))(w, r)
	}))
	server.Start()
	h := up(t)
	s, code := h.submit(url + "/batch.checkm")
	if code != 3 {
		t.Fatalf("exit=%d", code)
	}
	type place struct {
		Row, Line int64
		Name      string
	}
	got := rows[place](h, "batch", "report", s.BatchID)[1:] // after its figures
	lines := strings.Split(manifest("mrt-single-file-batch-manifest", "a", "#", "b", "c"), "\n")
	first := int64(slices.Index(lines, "a") + 1)
	want := []place{{1, first, "a.txt"}, {2, first + 2, "b.txt"}, {3, first + 3, "c.txt"}}
	slices.SortFunc(got, func(a, b place) int { return cmp.Compare(a.Row, b.Row) })
	if !slices.Equal(got, want) {
		t.Errorf("JSON has %v, want %v", got, want)
	}
	table, err := csv.NewReader(strings.NewReader(h.must(0, "batch", "report", s.BatchID, "--csv").stdout)).ReadAll()
	if err != nil || len(table) != 4 || table[0][0] != "row" || table[0][1] != "line" {
		t.Fatalf("CSV: %v, %v", table, err)
	}
	text := h.must(0, "batch", "report", s.BatchID).stdout
	t.Log(text)
	for _, p := range want {
		row, line := strconv.FormatInt(p.Row, 10), strconv.FormatInt(p.Line, 10)
		if got := table[p.Row]; got[0] != row || got[1] != line {
			t.Errorf("CSV has row %s, line %s for %s; want %s and %s", got[0], got[1], p.Name, row, line)
		}
		if !slices.ContainsFunc(strings.Split(text, "\n"), func(l string) bool {
			words := strings.Fields(l)
			return len(words) > 2 && words[0] == row && words[1] == line && slices.Contains(words, p.Name)
		}) {
			t.Errorf("the table has no row %s, line %s for %s:\n%s", row, line, p.Name, text)
		}
	}
}
