package e2e

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamesNotUTF8: a container whose names are not UTF-8 is refused with the remedy. A collection
// with name_encoding accepts it, and the object's history keeps the bytes of each name.
func TestNamesNotUTF8(t *testing.T) {
	t.Parallel()
	h := up(t)
	path := filepath.Join(t.TempDir(), "old.zip")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(file)
	for _, name := range []string{"M\x81ller.txt", "Stra\xe1e/a.txt", "plain.txt", "Zürich.txt"} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, NonUTF8: true})
		if err == nil {
			_, err = w.Write([]byte(strings.ToValidUTF8(name, "?")))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	refused := h.run("submit", path)
	if refused.code != 6 {
		t.Errorf("submit ended with %d, want 6", refused.code)
	}
	says(t, "submit", refused.stdout+refused.stderr, "M%81ller.txt", "not UTF-8", "name_encoding", `"Müller.txt" in cp437`, "Stra%E1e/a.txt")
	if v := h.runIn("", "check", path); v.code != 6 {
		t.Errorf("check ended with %d: %s", v.code, v.stdout)
	}
	if v := h.runIn("", "check", path, "--name-encoding", "cp437"); v.code != 0 {
		t.Errorf("check by cp437 ended with %d: %s%s", v.code, v.stdout, v.stderr)
	}

	profile := filepath.Join(t.TempDir(), "profile.yaml")
	write := func(encoding string) {
		t.Helper()
		text := "owner: ark:/99999/old\ncollections: [ark:/99999/old]\nname_encoding: " + encoding + "\n"
		if err := os.WriteFile(profile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("klingon")
	says(t, "a collection", h.must(2, "collection", "create", "old", "--profile", profile).stderr, "klingon", "cp437")
	write("cp437")
	h.must(0, "collection", "create", "old", "--profile", profile)
	s, code := h.submit(path, "--collection", "old")
	if code != 0 || len(s.Jobs) != 1 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	out := filepath.Join(t.TempDir(), "out")
	h.must(0, "object", "export", s.Jobs[0].ObjectID, "--out", out)
	got := files(t, out)
	for _, name := range []string{"Müller.txt", "Straße/a.txt", "plain.txt", "Zürich.txt"} {
		if _, ok := got[name]; !ok || len(got) != 4 {
			t.Errorf("no %s among %d files", name, len(got))
		}
	}
	events := h.must(0, "object", "events", s.Jobs[0].ObjectID, "--json").stdout
	if n := strings.Count(events, `"filename change"`); n != 2 {
		t.Errorf("%d events of names, want 2: %s", n, events)
	}
	says(t, "the events", events, "M%81ller.txt", "producer/Müller.txt", "Stra%E1e/a.txt", "producer/Straße/a.txt", "cp437")
}
