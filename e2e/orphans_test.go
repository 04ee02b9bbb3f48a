package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TestOrphans: `queue orphans` finds data that a dead worker wrote late, asks, and removes it.
// Foreign data and preserved objects stay.
func TestOrphans(t *testing.T) {
	t.Parallel()
	h := up(t)
	payload := filepath.Join(t.TempDir(), "a.txt")
	must(t, os.WriteFile(payload, []byte("text"), 0o600))
	s, code := h.submit("-q", payload)
	if code != 0 {
		t.Fatalf("exit %d: %+v", code, s)
	}
	h.must(10, "queue", "orphans", "--storages")
	job := h.job(s.BatchID)
	again, code := h.submit("-q", "--force", payload)
	if code != 0 {
		t.Fatalf("exit %d: %+v", code, again)
	}
	purged := h.job(again.BatchID)
	h.must(0, "batch", "cleanup", again.BatchID)
	old := time.Now().Add(-30 * 24 * time.Hour)
	place := func(key string) string {
		path := filepath.Join(h.place("staging"), filepath.FromSlash(key))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("late"), 0o600))
		must(t, os.Chtimes(path, old, old))
		return path
	}
	late, foreign := place("items/"+purged.ID+"/1/late"), place("notes.txt")
	young := place("items/" + job.ID + "/9/late") // its item has not been over for a week
	says(t, "the list", h.must(0, "queue", "orphans").stdout, "staged", "items/"+purged.ID, "its item was purged", "foreign", "notes.txt")
	h.must(7, "queue", "orphans", "--remove") // nobody says yes
	if _, err := os.Stat(late); err != nil {
		t.Fatal(err)
	}
	found := rows[registry.Orphan](h, "queue", "orphans", "--remove", "--yes", "--reason", "the disk is full")
	found = slices.DeleteFunc(found, func(o registry.Orphan) bool { return o.Kind == "" }) // lines of progress
	if len(found) != 2 || found[0].Kind != registry.OrphanStaged || !found[0].Removed || found[1].Kind != registry.OrphanForeign || found[1].Removed {
		t.Errorf("%+v", found)
	}
	for path, want := range map[string]bool{late: false, foreign: true, young: true} {
		if _, err := os.Stat(path); err == nil != want {
			t.Errorf("%s is there: %v", path, err == nil)
		}
	}
	h.must(0, "object", "verify", "--all")
}
