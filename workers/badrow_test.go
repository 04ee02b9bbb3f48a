package workers_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
)

// badRows serves a batch manifest of n rows, of which some are bad, and returns its address and the
// lines of its rows.
func badRows(t *testing.T, r *rig, n int, bad ...int) (url string, lines []int) {
	t.Helper()
	var rows []checkm.Row
	for i := range n {
		rows = append(rows, checkm.Row{URL: r.site.put(fmt.Sprint("f", i), fmt.Sprint("text ", i)), Name: fmt.Sprint("f", i)})
	}
	r.site.manifest("b", checkm.FileBatch, rows...)
	text := r.site.files["b"]
	for _, i := range bad {
		text = strings.Replace(text, fmt.Sprintf("%sf%d", r.site.url, i), fmt.Sprintf("ftp://nowhere/f%d", i), 1)
	}
	for i, line := range strings.Split(text, "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, i+1)
		}
	}
	if len(lines) != n {
		t.Fatalf("%d lines of rows, want %d", len(lines), n)
	}
	return r.site.put("b", text), lines
}

// A job has the title of its row, else that of its batch. Only the former is its own, by which it is called.
func TestExpand_Titles(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.site.manifest("b", checkm.FileBatch,
		checkm.Row{URL: r.site.put("f0", "text 0"), Name: "f0", Title: "Harbour at dusk"}, checkm.Row{URL: r.site.put("f1", "text 1"), Name: "f1"})
	batch := r.submit(registry.Spec{Type: registry.SingleFileBatch, URL: r.site.url + "b", Title: "Glass plates"})
	var called []string
	for _, j := range r.expand(batch) {
		var spec registry.Spec
		must(t, json.Unmarshal(j.Spec, &spec))
		result, err := registry.JobResultOf(j)
		must(t, err)
		called = append(called, j.Heading()+"/"+j.NameBelow()+"/"+spec.Title+"/"+result.Title)
	}
	if want := []string{"Harbour at dusk/f0/Harbour at dusk/Harbour at dusk", "f1//Glass plates/"}; !slices.Equal(called, want) {
		t.Errorf("the jobs are called %q, want %q", called, want)
	}
}

// A bad row fails alone wherever it is, and names its line; the report lists it.
func TestExpand_BadRowFailsAlone(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string][]int{"first": {0}, "middle": {2}, "last": {4}, "two": {1, 3}, "all": {0, 1, 2, 3, 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			url, lines := badRows(t, r, 5, bad...)
			batch := r.submit(registry.Spec{Type: registry.SingleFileBatch, URL: url})
			jobs := r.expand(batch)
			if len(jobs) != 5 {
				t.Fatalf("%d jobs, want 5", len(jobs))
			}
			failed := map[int64]bool{}
			for _, i := range bad {
				isContent(t, jobs[i], fmt.Sprintf("line %d", lines[i]), "ftp://nowhere")
				failed[int64(lines[i])] = true
			}
			for i, j := range jobs {
				if j.Row != int64(i+1) || j.Line != int64(lines[i]) {
					t.Errorf("job %d is of row %d, line %d; want row %d, line %d", i, j.Row, j.Line, i+1, lines[i])
				}
				if !failed[j.Line] {
					r.complete(j.ID)
				}
			}
			if v, err := r.run(batch); err != nil || v.Status != registry.Failed {
				t.Fatalf("batch: %+v, %v", v, err)
			}
			if it := r.item(batch); it.ErrorClass != registry.JobsFault {
				t.Errorf("class %s, want %s", it.ErrorClass, registry.JobsFault)
			}
			reported, err := r.registry.ReportJobs(t.Context(), registry.ReportQuery{BatchID: batch, Closing: 1, Limit: 100})
			must(t, err)
			for i, j := range reported {
				if j.Row != int64(i+1) || j.Line != int64(lines[i]) || failed[j.Line] != (j.State == registry.StateFailed) {
					t.Errorf("row %d, line %d is reported as %s", j.Row, j.Line, j.State)
				}
			}
			if len(reported) != 5 {
				t.Errorf("%d jobs reported, want 5", len(reported))
			}
		})
	}
}

// In a collection that stops on a bad row, nothing of such a batch is ingested, and all bad rows
// are reported at once.
func TestExpand_StopsOnBadRow(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string][]int{"first": {0}, "middle": {2}, "last": {4}, "two": {1, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.profile("whole", registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, StopOnBadRow: true})
			url, lines := badRows(t, r, 5, bad...)
			batch := r.submitTo("whole", registry.Spec{Type: registry.AutoType, URL: url})
			it := r.fails(batch)
			if it.Stage != registry.Expand || it.Attempt != 1 || it.BlockerCount != 0 {
				t.Errorf("stage=%s attempt=%d blocker_count=%d, want expand, 1 and 0", it.Stage, it.Attempt, it.BlockerCount)
			}
			if jobs := r.jobs(batch); len(jobs) != 0 {
				t.Errorf("%d jobs, want none", len(jobs))
			}
			events, err := r.registry.Events(t.Context(), batch, 0, 100)
			must(t, err)
			var told intake.Report
			for _, e := range events {
				if e.Type == "manifest-refused" {
					decode(t, e.Data, &told)
				}
			}
			if told.RowsRefused != int64(len(bad)) || len(told.Faults) != len(bad) {
				t.Fatalf("told of %d bad rows and %d faults, want %d", told.RowsRefused, len(told.Faults), len(bad))
			}
			for i, row := range bad {
				isContent(t, it, fmt.Sprintf("line %d", lines[row]))
				if told.Faults[i].Line != lines[row] {
					t.Errorf("fault %d is of line %d, want %d", i, told.Faults[i].Line, lines[row])
				}
			}
		})
	}
}

// A missing file at the source is no bad row: it fails its own job.
func TestExpand_StopsOnBadRow_NotOnAMissingFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.profile("whole", registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, StopOnBadRow: true})
	url := r.site.manifest("b", checkm.FileBatch,
		checkm.Row{URL: r.site.url + "missing", Name: "missing"}, checkm.Row{URL: r.site.put("f", "f"), Name: "f"})
	jobs := r.expand(r.submitTo("whole", registry.Spec{Type: registry.SingleFileBatch, URL: url}))
	if len(jobs) != 2 {
		t.Fatalf("%d jobs, want 2", len(jobs))
	}
	isContent(t, r.fails(jobs[0].ID), "404")
	r.complete(jobs[1].ID)
}
