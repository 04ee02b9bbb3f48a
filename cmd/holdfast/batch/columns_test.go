package batch

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/registry"
)

// On a terminal of 80 columns reports keep enough of every identifier, and put long text below the
// row.
func TestReport_80Columns(t *testing.T) {
	const id = "01a20514-45c2-7b38-9d9b-d8137c33ac0f"
	const note = "file 1, missing.txt: open https://repository.example.org/deposits/2026/missing.txt: the server answered 404 Not Found"
	const remedy = "the producer puts the file there, then an admin requeues the item"
	job := registry.JobResult{
		ItemID: id, Row: 7, State: registry.StateFailed, Stage: registry.Download, Name: strings.Repeat("a long name ", 9) + ".tiff",
		Error: note, Class: registry.ContentFault, Fix: remedy, ARK: "ark:/99999/fk47vhkzjw7p",
	}
	failed, repeated := reportSections(registry.BatchReport{})[0], reportSections(registry.BatchReport{Repeats: 1})[3]
	job.Line, job.Repeats = 1_000_012, &registry.RowPlace{Row: 1_000_000, Line: 1_000_005}
	t.Run("report", func(t *testing.T) {
		clitest.Fits(t, failed.columns, failed.row(job), id, "error: content: "+note, "LINE", "fix: "+remedy)
	})
	t.Run("repeats", func(t *testing.T) {
		clitest.Fits(t, repeated.columns, repeated.row(job), id, "LINE", "row 1,000,000, line 1,000,005", "1,000,012")
	})
	t.Run("jobs", func(t *testing.T) {
		clitest.Fits(t, progress.JobColumns(), progress.JobRow(job), id, "error: content: "+note, job.ARK)
	})
}
