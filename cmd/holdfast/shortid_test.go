package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// TestTable_80Columns: on a terminal of 80 columns lists and reports keep every identifier, as far as it is needed to name the
// item, and put what is long below the row.
func TestTable_80Columns(t *testing.T) {
	const id, other, limit = "01a20514-45c2-7b38-9d9b-d8137c33ac0f", "01a20514-45c2-7b49-b986-e271d07fa566", 80
	const note = "file 1, missing.txt: open https://repository.example.org/deposits/2026/missing.txt: the server answered 404 Not Found"
	const remedy = "the producer puts the file there, then an admin requeues the item"
	long := strings.Repeat("a long name ", 9) + ".tiff"
	job := registry.JobResult{
		ItemID: id, Row: 7, State: registry.StateFailed, Stage: registry.Download, Name: long, Error: note, Class: registry.ContentFault, Fix: remedy,
		ARK: "ark:/99999/fk47vhkzjw7p",
	}
	item := registry.WorkItem{ID: id, Action: registry.Ingest, State: registry.StateFailed, Collection: "default", Name: long, Note: note}
	group := registry.FailureGroup{
		Fingerprint: "0affdaf32f492ce1", Count: 3, ItemID: id,
		Cause: registry.Cause{Stage: registry.Download, Class: registry.ContentFault, Text: note},
	}
	failed, repeated := reportSections(registry.BatchReport{})[0], reportSections(registry.BatchReport{Repeats: 1})[3]
	job.Line, job.Repeats = 1_000_012, &registry.RowPlace{Row: 1_000_000, Line: 1_000_005}
	for name, show := range map[string]struct {
		columns []column
		row     []string
		says    []string
	}{
		"report":   {failed.columns, failed.row(job), []string{"error: content: " + note, "LINE", "fix: " + remedy}},
		"repeats":  {repeated.columns, repeated.row(job), []string{"LINE", "row 1,000,000, line 1,000,005", "1,000,012"}},
		"jobs":     {jobColumns(), jobRow(job), []string{"error: content: " + note, job.ARK}},
		"items":    {itemColumns(), itemRow(item), []string{"note: file 1"}},
		"batches":  {batchColumns(), batchRow(item), []string{"note: file 1"}},
		"failures": {failureColumns(), failureRow(group), []string{"cause: " + note}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			table := newTable(&out, limit, show.columns...)
			if err := table.row(show.row...); err != nil {
				t.Fatal(err)
			}
			if err := table.end(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), shortID(id)) {
				t.Errorf("the id is not there:\n%s", out.String())
			}
			for line := range strings.Lines(out.String()) {
				if n := cells(strings.TrimRight(line, "\n")); n > limit {
					t.Errorf("a line of %d columns: %q", n, line)
				}
			}
			text := strings.Join(strings.Fields(out.String()), " ")
			for _, want := range show.says {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not there in full:\n%s", want, out.String())
				}
			}
		})
	}
	t.Run("not told apart", func(t *testing.T) {
		var out bytes.Buffer
		table := newTable(&out, 40, column{name: "id", id: true}, column{name: "name", flex: true})
		for _, same := range []string{id, id[:shownID] + other[shownID:]} {
			if err := table.row(same, long); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.end(); err != nil {
			t.Fatal(err)
		}
		for _, whole := range []string{id, id[:shownID] + other[shownID:]} {
			if !strings.Contains(out.String(), whole) {
				t.Errorf("%s is not there in whole:\n%s", whole, out.String())
			}
		}
	})
}

func TestWrapped(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		most int
		want []string
	}{
		{"short", "one two", 3, []string{"one two"}},
		{"two lines", "one two three", 3, []string{"one two", "three"}},
		{"a word that is longer than a line", "see https://example.org/a it", 3, []string{"see", "https://example.org/a", "it"}},
		{"too many lines", "one two three four five", 2, []string{"one two", "three fo…"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, wrapped(tt.text, 9, tt.most)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
