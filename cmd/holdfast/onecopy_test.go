package main

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

// A default installation keeps one copy of everything, and warns operators.
func TestUp_WarnsOfOneCopy(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole Holdfast")
	}
	dir := up(t)
	r := holdfast(t, "queue", "status", "--dir", dir).Wants(t, exit.OK)
	for _, part := range []string{"NO SECOND COPY", "1 collection has one storage only", "HOLDFAST_STORAGE_URL"} {
		if !strings.Contains(r.Out, part) {
			t.Errorf("queue status does not say %q:\n%s", part, r.Out)
		}
	}
	for line := range strings.Lines(r.Out) {
		if len(line) > 81 {
			t.Errorf("wider than 80 columns: %q", line)
		}
	}
}
