package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUnstorable_KeepsNobody: an ARK is refused on content if its folder is another object's or
// OCFL's own. The job can be deleted, and the folder's object takes further versions.
func TestUnstorable_KeepsNobody(t *testing.T) {
	t.Parallel()
	h := up(t, "HOLDFAST_STORAGE_URL=flat=file://"+t.TempDir()+"?layout=0006%2Cdelimiter=/")
	h.collection("flat", `"storages": ["flat"]`)
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "f.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if s, code := h.submit(file("one"), "--collection", "flat", "--ark", "ark:/99999/X"); code != 0 {
		t.Fatalf("exit=%d: %+v", code, s)
	}
	for _, ark := range []string{"ark:/12345/X", "ark:/99999/extensions"} {
		s, code := h.submit(file("of "+ark), "--collection", "flat", "--ark", ark)
		if code != 6 {
			t.Errorf("%s: exit=%d, want 6", ark, code)
		}
		it := h.job(s.BatchID)
		says(t, "item show", it.Note, ark, "nothing was written", "another ARK")
		h.must(0, "item", "delete", it.ID, "--yes", "--reason", "another ARK")
		if s, code = h.submit(file("again for "+ark), "--collection", "flat", "--ark", "ark:/99999/X"); code != 0 {
			t.Errorf("after %s: exit=%d: %+v", ark, code, s)
		}
	}
	if o := h.object("ark:/99999/X"); o.Head != 3 {
		t.Errorf("head=%d, want 3", o.Head)
	}
	h.must(0, "object", "verify", "--all")
}
