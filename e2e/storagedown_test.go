package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// TestStorageDown: each of a collection's two storages, a directory and S3, goes away while jobs
// run. The jobs wait with a system fault that names the storage, no version is recorded that one of
// them lacks, preserved files are read from the other, and once the storage is back all jobs
// complete.
func TestStorageDown(t *testing.T) {
	t.Parallel()
	bucket := s3test.Start(t)
	way := newProxy(t, strings.TrimPrefix(bucket.Endpoint, "http://"))
	h := up(t, append(s3test.Env(), "HOLDFAST_STORAGE_URL=away="+s3test.Address("http://"+way.addr(), "away"))...)
	h.storedIn("kept", registry.DefaultStorage, "away")
	h.storedIn("turned", "away", registry.DefaultStorage)
	deposit := func(collection, text string, more ...string) (summary, int) {
		path := filepath.Join(t.TempDir(), "a.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return h.submit(append([]string{path, "--collection", collection}, more...)...)
	}
	before, code := deposit("kept", "before")
	if code != 0 {
		t.Fatalf("exit=%d summary=%+v", code, before)
	}

	way.outage(true)
	waiting := map[string]string{} // items by the stage where they wait
	for collection, stage := range map[string]string{"kept": "replicate", "turned": "process"} {
		path := filepath.Join(t.TempDir(), "a.txt")
		if err := os.WriteFile(path, []byte("while it is away, to "+collection), 0o600); err != nil {
			t.Fatal(err)
		}
		waiting[stage] = h.job(h.begin(path, "--collection", collection)).ID
	}
	for stage, id := range waiting {
		h.comes("the job at "+stage+" has met it", func() bool { return h.item(id).Tries > 0 })
		it := h.item(id)
		if it.Stage != stage || it.FinishedAt != nil || it.ErrorClass != string(registry.SystemFault) || !strings.Contains(it.Note, `storage "away"`) {
			t.Errorf("at %s %s, class %s, note %q; want it to wait at %s and name the storage", it.Stage, it.State, it.ErrorClass, it.Note, stage)
		}
		says(t, "why "+stage, h.must(0, "item", "why", id).stdout, "away")
	}
	if got := h.exportAll(before); got["a.txt"] != "before" {
		t.Errorf("exported %v", got)
	}
	if objects := rows[registry.Object](h, "object", "list"); len(objects) != 1 {
		t.Errorf("%d objects are recorded, want the one of before: %+v", len(objects), objects)
	}

	way.outage(false)
	for stage, id := range waiting {
		h.comes("the job at "+stage+" is through", func() bool { return h.item(id).FinishedAt != nil })
		if it := h.item(id); it.State != "Completed" {
			t.Fatalf("%s: %s, %s", stage, it.State, it.Note)
		}
	}
	objects := rows[registry.Object](h, "object", "list")
	if len(objects) != 3 {
		t.Errorf("%d objects, want 3", len(objects))
	}
	for _, o := range objects {
		says(t, "verify", h.must(0, "object", "verify", o.ID).stdout, "in storage storage", "in storage away")
	}
}

// comes waits for what a retry brings about, which comes a minute after its fault.
func (h *holdfast) comes(what string, met func() bool) {
	h.t.Helper()
	h.within(4*time.Minute, what, met)
}
