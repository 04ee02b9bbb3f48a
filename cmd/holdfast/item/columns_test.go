package item

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/registry"
)

// On a terminal of 80 columns lists keep enough of every identifier, and put long text below the
// row.
func TestTable_80Columns(t *testing.T) {
	const id = "01a20514-45c2-7b38-9d9b-d8137c33ac0f"
	const note = "file 1, missing.txt: open https://repository.example.org/deposits/2026/missing.txt: the server answered 404 Not Found"
	long := strings.Repeat("a long name ", 9) + ".tiff"
	item := registry.WorkItem{ID: id, Action: registry.Ingest, State: registry.StateFailed, Collection: "default", Name: long, Note: note}
	group := registry.FailureGroup{
		Fingerprint: "0affdaf32f492ce1", Count: 3, ItemID: id,
		Cause: registry.Cause{Stage: registry.Download, Class: registry.ContentFault, Text: note},
	}
	t.Run("items", func(t *testing.T) { clitest.Fits(t, itemColumns(), itemRow(item), id, "note: file 1") })
	t.Run("batches", func(t *testing.T) { clitest.Fits(t, batchColumns(), batchRow(item), id, "note: file 1") })
	t.Run("failures", func(t *testing.T) { clitest.Fits(t, failureColumns(), failureRow(group), id, "cause: "+note) })
}
