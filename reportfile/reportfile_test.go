package reportfile_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/reportfile"
)

// stored is a report of n jobs, of which every third failed; it breaks off after a row when that is
// not 0.
type stored struct {
	n, breaks int64
	calls     int
	most      int // jobs in one answer
}

var errBroken = errors.New("the database is gone")

func (s *stored) job(row int64) registry.JobResult {
	j := registry.JobResult{Row: row, Line: row + 2, ItemID: fmt.Sprint("job-", row), Name: fmt.Sprintf("f%d,\"x\".tif", row), State: registry.StateCompleted, ARK: "ark:/99999/x", Version: 2}
	if row%3 == 0 {
		j = registry.JobResult{
			Row: row, Line: row + 2, ItemID: j.ItemID, Name: "=cmd|x", State: registry.StateFailed, Stage: registry.Download, Error: "two\nlines",
			Class: registry.ContentFault, Code: "http-404", Cause: "c", Fix: "mend it", Change: registry.ChangeStillFailed, LocalIDs: []string{"a", "b"},
		}
	}
	if row == 2 {
		j.Repeats, j.Title = &registry.RowPlace{Row: 1, Line: 3}, "=1+1"
	}
	return j
}

func (s *stored) ReportJobs(_ context.Context, q registry.ReportQuery) (out []registry.JobResult, err error) {
	s.calls++
	for row := q.AfterRow + 1; row <= s.n && len(out) < q.Limit; row++ {
		if s.breaks > 0 && row > s.breaks {
			return nil, errBroken
		}
		j := s.job(row)
		failed := j.State != registry.StateCompleted
		if q.List == "" || failed == (q.List == registry.ListFailed) {
			out = append(out, j)
		}
	}
	s.most = max(s.most, len(out))
	return out, nil
}

func TestCSV(t *testing.T) {
	t.Parallel()
	s := &stored{n: 1200}
	var b bytes.Buffer
	if err := reportfile.CSV(&b, reportfile.Jobs(t.Context(), s, registry.ReportQuery{Closing: 1})); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1201 || s.most > 500 {
		t.Fatalf("%d rows, %d at once", len(rows), s.most)
	}
	want := [][]string{
		{"row", "line", "item_id", "name", "state", "ark", "version", "local_ids", "error_class", "error", "fix", "change", "stage", "error_code", "cause", "preserved", "repeats_row", "repeats_line", "title"},
		{"2", "4", "job-2", `f2,"x".tif`, "Completed", "ark:/99999/x", "2", "", "", "", "", "", "", "", "", "true", "1", "3", "'=1+1"},
		{"3", "5", "job-3", "'=cmd|x", "Failed", "", "", "a; b", "content", "two\nlines", "mend it", "still-failed", "download", "http-404", "c", "false", "", "", ""},
	}
	if diff := cmp.Diff(want, [][]string{rows[0], rows[2], rows[3]}); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestJSON checks that the document is one object whose lists hold every job once, unchanged.
func TestJSON(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, 1, 500, 501, 1600} {
		s := &stored{n: n}
		r := registry.BatchReport{BatchID: "b", Closing: 2, Jobs: n, Difference: &registry.ReportDifference{Since: 1, StillFailed: n / 3}}
		var b bytes.Buffer
		if err := reportfile.JSON(t.Context(), &b, s, r, registry.ReportQuery{}); err != nil {
			t.Fatal(err)
		}
		var got struct {
			registry.BatchReport
			FailedJobs    []registry.JobResult `json:"failed_jobs"`
			CompletedJobs []registry.JobResult `json:"completed_jobs"`
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%d jobs: %v\n%s", n, err, b.String())
		}
		if got.FailedJobs == nil || got.CompletedJobs == nil {
			t.Errorf("%d jobs: a list is missing", n)
		}
		if diff := cmp.Diff(r, got.BatchReport); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		all := append(got.FailedJobs, got.CompletedJobs...)
		slices.SortFunc(all, func(a, b registry.JobResult) int { return int(a.Row - b.Row) })
		for i, j := range all {
			if diff := cmp.Diff(s.job(int64(i+1)), j); diff != "" {
				t.Fatalf("job %d (-want +got):\n%s", i, diff)
			}
		}
		if int64(len(all)) != n {
			t.Errorf("%d jobs, want %d", len(all), n)
		}
	}
	var b bytes.Buffer
	if err := reportfile.JSON(t.Context(), &b, &stored{n: 3}, registry.BatchReport{}, registry.ReportQuery{List: registry.ListFailed}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "completed_jobs") || !strings.Contains(b.String(), `"failed_jobs":[`) {
		t.Errorf("only the failed: %s", b.String())
	}
}

// TestBreak checks that an interrupted report gives an error and that its document never looks
// complete.
func TestBreak(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	err := reportfile.JSON(t.Context(), &b, &stored{n: 2000, breaks: 1100}, registry.BatchReport{}, registry.ReportQuery{})
	if !errors.Is(err, errBroken) || json.Valid(b.Bytes()) {
		t.Errorf("JSON: %v", err)
	}
	b.Reset()
	err = reportfile.CSV(&b, reportfile.Jobs(t.Context(), &stored{n: 2000, breaks: 1100}, registry.ReportQuery{Closing: 1}))
	if !errors.Is(err, errBroken) {
		t.Errorf("CSV: %v", err)
	}
	if err := reportfile.CSV(full{}, reportfile.Jobs(t.Context(), &stored{n: 2000}, registry.ReportQuery{Closing: 1})); !errors.Is(err, errBroken) {
		t.Errorf("a disk that is full: %v", err)
	}
	if err := reportfile.JSON(t.Context(), full{}, &stored{n: 2000}, registry.BatchReport{}, registry.ReportQuery{}); !errors.Is(err, errBroken) {
		t.Errorf("a disk that is full: %v", err)
	}
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errBroken }
