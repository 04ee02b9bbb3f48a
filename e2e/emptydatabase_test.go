package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// TestEmptyDatabase_StorageHoldsObjects: if its database is lost, Holdfast refuses to start beside
// preserved objects. It names the storage, an object and both remedies, and changes nothing there.
// It starts with the database restored, or after an admin accepted the storage.
func TestEmptyDatabase_StorageHoldsObjects(t *testing.T) {
	t.Parallel()
	h := up(t)
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("alpha"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, code := h.submit(path)
	if code != 0 || len(s.Jobs) != 1 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	kept := s.Jobs[0].ObjectID
	h.stop()
	move := func(from, to string) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(h.dir, from+"*"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%v, %v is the database", found, err)
		}
		for _, f := range found {
			if err := os.Rename(f, filepath.Join(h.dir, to+filepath.Base(f)[len(from):])); err != nil {
				t.Fatal(err)
			}
		}
	}
	move("registry.db", "lost.db")
	before := files(t, filepath.Join(h.dir, "storage"))
	start := func() result {
		t.Helper()
		cmd := exec.Command(binary, "up", "--dir", h.dir, "--listen", "127.0.0.1:0")
		cmd.Env = h.environment()
		return h.finish(cmd)
	}
	refused := start()
	if refused.code != 2 {
		t.Errorf("up ended with %d, want 2", refused.code)
	}
	says(t, "the start", refused.stderr, "HOLDFAST_STORAGE_URL", `storage "storage"`, filepath.Join(h.dir, "storage"), "objects that the Registry does not know",
		kept, "from its backup", "holdfast rebuild", "holdfast adopt", "holdfast storage accept")
	if after := files(t, filepath.Join(h.dir, "storage")); !maps.Equal(after, before) {
		t.Errorf("the start changed the storage: it has %d files, had %d", len(after), len(before))
	}

	move("registry.db", "new.db")
	move("lost.db", "registry.db")
	h.start()
	h.must(0, "object", "verify", kept)
	h.stop()
	move("registry.db", "lost.db")

	accept := regexp.MustCompile(`storage accept (\S+) --registry (urn:uuid:[0-9a-f-]{36})`).FindStringSubmatch(start().stderr)
	if accept == nil {
		t.Fatal("it does not say how to go on")
	}
	says(t, "without the Registry's name", h.runIn("", "storage", "accept", accept[1]).stderr, "--registry is missing")
	said := h.runIn("", "storage", "accept", accept[1], "--registry", accept[2])
	if said.code != 0 {
		t.Fatalf("storage accept ended with %d: %s", said.code, said.stderr)
	}
	for range 2 { // before and after something is recorded
		h.start()
		h.must(4, "object", "show", kept)
		if _, code := h.submit(path, "--force"); code != 0 {
			t.Errorf("a submission ended with %d", code)
		}
		h.stop()
	}
	says(t, "the storage", h.runIn("", "check", filepath.Join(h.dir, "storage")).stdout, "valid")
}

// TestRestoredDatabase_NewStorage: a backup from before a storage's first object is not called an
// empty database. The advice leads to the acceptance by two admins.
func TestRestoredDatabase_NewStorage(t *testing.T) {
	t.Parallel()
	second := t.TempDir()
	h := up(t, "HOLDFAST_STORAGE_URL=second=file://"+second)
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("alpha"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.storedIn("kept", registry.DefaultStorage, "second")
	if _, code := h.submit(path); code != 0 {
		t.Fatalf("a submission ended with %d", code)
	}
	h.stop()
	backup := read(t, filepath.Join(h.dir, "registry.db"))
	h.start()
	s, code := h.submit(path, "--collection", "kept", "--force")
	if code != 0 || len(s.Jobs) != 1 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	h.stop()
	restore(t, filepath.Join(h.dir, "registry.db"), backup)
	cmd := exec.Command(binary, "up", "--dir", h.dir, "--listen", "127.0.0.1:0")
	cmd.Env = h.environment()
	refused := h.finish(cmd)
	says(t, "the start", refused.stderr, `storage "second"`, s.Jobs[0].ObjectID, "After a backup was restored")
	accept := regexp.MustCompile(`storage accept (\S+) --registry (urn:uuid:[0-9a-f-]{36})`).FindStringSubmatch(refused.stderr)
	if refused.code != 2 || strings.Contains(refused.stderr, "empty database") || accept == nil {
		t.Fatalf("up ended with %d: %s", refused.code, refused.stderr)
	}
	if said := h.runIn("", "storage", "accept", accept[1], "--registry", accept[2]); said.code != 0 {
		t.Fatalf("storage accept ended with %d: %s", said.code, said.stderr)
	}
	h.start("--paused", "restored from a backup")
	says(t, "the restored queue", h.must(0, "queue", "status").stdout, "restored from a backup")
}
