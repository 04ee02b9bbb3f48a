package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// storage returns what the service says of a storage.
func (h *holdfast) storage(name string) (s registry.Storage) {
	h.t.Helper()
	report := rows[registry.StorageReport](h, "storage", "list")[0]
	i := slices.IndexFunc(report.Storages, func(s registry.Storage) bool { return s.Name == name })
	if i < 0 {
		h.t.Fatalf("storage %s is not listed: %+v", name, report)
	}
	return report.Storages[i]
}

// killed kills the service twice, at any moment of what it does, and starts it again.
func (h *holdfast) killed(what string) {
	h.t.Helper()
	for range 2 {
		time.Sleep(rand.N(1500 * time.Millisecond)) // wherever it is by then
		if err := h.signal(syscall.SIGKILL); err == nil {
			h.t.Fatal("it was not killed")
		}
		h.start()
		h.t.Logf("%s, after a kill: second has %d objects, third %d", what, h.storage("second").Objects, h.storage("third").Objects)
	}
}

// TestStorages_Killed: while a storage is filled, and while another takes the place of the first, the
// service is killed. It goes on, and in the end each object has its copies. When the first storage was
// retired, and what lay there is erased, objects are exported, restored, verified and updated.
func TestStorages_Killed(t *testing.T) {
	t.Parallel()
	second, third := filepath.Join(t.TempDir(), "second"), filepath.Join(t.TempDir(), "third")
	for _, folder := range []string{second, third} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := up(t, "HOLDFAST_STORAGE_URL=second=file://"+second+" third=file://"+third, "HOLDFAST_COPY_BYTES_PER_SECOND=8000")
	source, objects := t.TempDir(), []string{}
	for i := range 5 {
		path := filepath.Join(source, fmt.Sprintf("plate %d.txt", i))
		if err := os.WriteFile(path, fmt.Appendf(nil, "plate %d %01000d", i, i), 0o600); err != nil {
			t.Fatal(err)
		}
		s, code := h.submit(path, "--local-id", fmt.Sprintf("plate-%d", i))
		if code != 0 || len(s.Jobs) != 1 {
			t.Fatalf("exit=%d summary=%+v", code, s)
		}
		objects = append(objects, s.Jobs[0].ObjectID)
	}
	in := func(storages ...string) {
		t.Helper()
		for _, id := range objects {
			o := h.object(id)
			var has []string
			for _, r := range o.Versions[len(o.Versions)-1].Replicas {
				has = append(has, r.Storage)
			}
			slices.Sort(has)
			if !slices.Equal(has, storages) || o.Copies == nil || !o.Copies.Met {
				t.Errorf("%s is in %v (%+v), want %v", id, has, o.Copies, storages)
			}
		}
		h.must(0, "object", "verify", "--all")
	}

	h.must(0, "storage", "add", "second", "--yes", "--reason", "a second copy")
	h.killed("filling")
	h.until("the second storage is filled", func() bool { return h.storage("second").State == registry.StorageInUse })
	in("second", "storage")

	h.must(0, "storage", "migrate", "storage", "third", "--yes", "--reason", "new disks")
	h.killed("migrating")
	h.until("the first storage is retired", func() bool {
		s := h.storage("storage")
		return s.State == registry.StorageRetired && s.Objects == 0
	})
	in("second", "third")

	h.stop()
	place := filepath.Join(h.dir, "storage")
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(place, 0o755); err != nil {
		t.Fatal(err)
	}
	h.start()
	want := map[string]string{"plate 0.txt": fmt.Sprintf("plate 0 %01000d", 0)}
	for _, flags := range [][]string{nil, bagged} {
		out := filepath.Join(t.TempDir(), "exported")
		h.must(0, append([]string{"object", "export", objects[0], "--out", out}, flags...)...)
		if diff := cmp.Diff(want, payload(t, out, flags)); diff != "" {
			t.Errorf("exported with %v (-want +got):\n%s", flags, diff)
		}
	}
	restored := filepath.Join(t.TempDir(), "restored.tar")
	h.must(0, "object", "restore", objects[0], "--out", restored)
	if diff := cmp.Diff(want, payload(t, restored, bagged)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(source, "plate 0.txt"), []byte("a better scan"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, code := h.submit(filepath.Join(source, "plate 0.txt"), "--local-id", "plate-0"); code != 0 || s.Jobs[0].ObjectID != objects[0] {
		t.Errorf("an update: exit=%d, %+v", code, s)
	}
	in("second", "third")
}
