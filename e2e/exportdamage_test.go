package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// TestExport_Mends: every form of export finds a wrong bit in one storage, reads the file from the
// other, and says so. A file that is wrong everywhere comes out of none.
func TestExport_Mends(t *testing.T) {
	t.Parallel()
	second := filepath.Join(t.TempDir(), "second")
	if err := os.Mkdir(second, 0o755); err != nil {
		t.Fatal(err)
	}
	h := up(t, "HOLDFAST_STORAGE_URL=second=file://"+second)
	h.storedIn("kept", registry.DefaultStorage, "second")
	want := map[string]string{"a.txt": "alpha", "large.bin": string(bytes.Repeat([]byte("0123456789abcdef"), 33*mib/16)), "z/none": ""}
	folder := t.TempDir()
	for name, text := range want {
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, code := h.submit(folder, "--collection", "kept")
	if code != 0 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	ark, first := s.Jobs[0].ObjectID, filepath.Join(h.dir, "storage")
	forms := []string{"", "--bag", "--tar", "--tar --bag"}
	export := func(form, out string) (result, []string) {
		args := strings.Fields(form)
		return h.run(append([]string{"object", "export", ark, "--out", out}, args...)...), args
	}
	stream := func() result { return h.run("object", "export", ark, "--tar", "--out", "-") }

	damage(t, contentNamed(t, first, "a.txt"))
	r := stream()
	if r.code != 0 || !cmp.Equal(want, untarred(t, strings.NewReader(r.stdout))) {
		t.Errorf("a stream ended with %d: %s", r.code, r.stderr)
	}
	says(t, "a stream", r.stderr, "producer/a.txt", `from storage "second"`, `in storage "storage"`)

	damage(t, contentNamed(t, first, "large.bin"))
	for _, form := range forms {
		out := filepath.Join(t.TempDir(), "out")
		r, args := export(form, out)
		if r.code != 0 {
			t.Fatalf("%s ended with %d: %s", form, r.code, r.stderr)
		}
		if !cmp.Equal(want, payload(t, out, args)) {
			t.Errorf("%s: other bytes came out", form)
		}
		says(t, form, r.stderr, "producer/a.txt", "producer/large.bin", `from storage "second"`, `in storage "storage"`, "sha256")
	}
	// What has left cannot be taken back.
	r = stream()
	if r.code != 1 {
		t.Errorf("a stream of a large file ended with %d: %s", r.code, r.stderr)
	}
	says(t, "a stream of a large file", r.stderr, "producer/large.bin", "--out")

	damage(t, contentNamed(t, second, "large.bin"))
	for _, form := range forms {
		out := filepath.Join(t.TempDir(), "out")
		r, _ := export(form, out)
		if r.code != 1 {
			t.Errorf("%s, damaged in both: ended with %d: %s", form, r.code, r.stderr)
		}
		says(t, form, r.stderr, "producer/large.bin", `in storage "storage"`, `in storage "second"`, "object verify "+ark)
		for _, name := range []string{"large.bin", "data/large.bin"} {
			if _, err := os.Lstat(filepath.Join(out, name)); err == nil {
				t.Errorf("%s: wrong bytes have the name %s", form, name)
			}
		}
		if info, err := os.Lstat(out); err == nil && !info.IsDir() {
			t.Errorf("%s: a tar of wrong bytes has its name", form)
		}
	}
}
