package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
)

// TestReconcile: ingest, back up, ingest more, update and delete, lose the database, restore the older
// backup, reconcile, and go on: users see what they had seen, and nothing is named or stored twice.
func TestReconcile(t *testing.T) {
	t.Parallel()
	h := up(t, fourSlots)
	deposit := func(local, text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "a.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, code := h.submit(path, "--local-id", local)
		if code != 0 || len(s.Jobs) != 1 {
			t.Fatalf("exit=%d summary=%+v", code, s)
		}
		return s.Jobs[0].ObjectID
	}
	updated, kept := deposit("id 1", "one"), deposit("id 2", "two")
	place := t.TempDir()
	taken := h.backupPath(place)
	if again := deposit("id 1", "one more"); again != updated {
		t.Fatalf("the update made %s, not %s", again, updated)
	}
	fresh := deposit("id 3", "three")
	seen := func() map[string][]registry.Object {
		t.Helper()
		out := map[string][]registry.Object{}
		for _, id := range []string{updated, kept, fresh} {
			all := rows[registry.Object](h, "object", "show", id)
			for i := range all {
				all[i].Unchecked, all[i].CheckedAt = "", all[i].CreatedAt
			}
			out[id] = all
		}
		return out
	}
	want := seen()
	if err := h.signal(syscall.SIGKILL); err == nil {
		t.Fatal("holdfast ended cleanly when it was killed")
	}
	restored := filepath.Join(t.TempDir(), "restored")
	offline := func(code int, args ...string) result {
		t.Helper()
		r := h.runIn("", args...)
		if r.code != code {
			t.Fatalf("%v ended with %d, want %d: %s%s", args, r.code, code, r.stdout, r.stderr)
		}
		return r
	}
	offline(0, "backup", "restore", taken, "--dir", restored)
	if err := os.Rename(filepath.Join(h.dir, "storage"), filepath.Join(restored, "storage")); err != nil {
		t.Fatal(err)
	}
	h.dir = restored
	said := offline(7, "reconcile", "--dir", restored)
	says(t, "reconcile", said.stdout, updated+": adopt version 2", fresh+": adopt version 1", "3 objects compared: 2 adopted (2 versions)")
	offline(2, "reconcile", "--dir", restored, "--accept", "x")
	h.start()
	says(t, "the queue", h.must(0, "queue", "status").stdout, "RESTORED", "holdfast reconcile")
	offline(5, "reconcile", "--dir", restored, "--apply")
	h.stop()

	lines := strings.Split(strings.TrimSpace(offline(0, "reconcile", "--dir", restored, "--apply", "--json").stdout), "\n")
	var end struct {
		node.Reconciled
		Applied bool `json:"applied"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil {
		t.Fatal(err)
	}
	if !end.Released || !end.Applied || end.Adopted != 2 || end.Disagree != 0 {
		t.Errorf("its last line is %+v", end)
	}
	offline(2, "reconcile", "--dir", restored, "--apply") // it bears no open mark any more
	h.start()
	if holds := rows[registry.Hold](h, "hold", "list"); len(holds) != 0 {
		t.Errorf("it is still held: %v", holds)
	}
	if diff := cmp.Diff(want, seen()); diff != "" {
		t.Errorf("users see something else (-before +after):\n%s", diff)
	}
	h.must(0, "object", "verify", updated, kept, fresh)
	h.must(0, "object", "audit", "--all")
	if again := deposit("id 3", "three more"); again != fresh {
		t.Errorf("a known local id got %s, not %s", again, fresh)
	}
	if again := deposit("id 1", "one more again"); again != updated {
		t.Errorf("the next update made %s, not %s", again, updated)
	}
	versions := func(id string) int { return rows[registry.Object](h, "object", "show", id)[0].Head }
	if got := []int{versions(updated), versions(kept), versions(fresh)}; !slices.Equal(got, []int{3, 1, 2}) {
		t.Errorf("versions %v", got)
	}
}
