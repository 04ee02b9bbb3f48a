package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// These differ only in their normal form, NFC and NFD.
const composed, decomposed = "caf\u00e9.txt", "cafe\u0301.txt"

// TestModified_ThereAndBack: a folder's times, and names that differ only in their normal form,
// survive exports to a folder and to tars, read by Holdfast, GNU tar and bsdtar in any locale. A
// file without a time shows none.
func TestModified_ThereAndBack(t *testing.T) {
	t.Parallel()
	h := up(t)
	folder := filepath.Join(t.TempDir(), "deposit")
	times := map[string]time.Time{
		"sub/2001.txt": time.Date(2001, 2, 3, 4, 5, 6, 789_123_000, time.UTC), "1944.txt": time.Date(1944, 6, 6, 6, 30, 0, 0, time.UTC),
		"2100.txt": time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		composed:   time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC), decomposed: time.Date(1998, 12, 31, 23, 59, 59, 0, time.UTC),
		"日本/" + strings.Repeat("長", 60) + ".txt": time.Date(2011, 3, 11, 5, 46, 0, 0, time.UTC),
	}
	for name, at := range times {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	s, code := h.submit(folder)
	if code != 0 || len(s.Jobs) != 1 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	id := s.Jobs[0].ObjectID
	for _, line := range strings.Split(strings.TrimSpace(h.must(0, "object", "files", id, "--json").stdout), "\n") {
		var f struct {
			Path     string
			Modified *time.Time
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if name, ok := strings.CutPrefix(f.Path, "producer/"); ok && (f.Modified == nil || !f.Modified.Equal(times[name])) {
			t.Errorf("%s is told to be of %v, want %s", name, f.Modified, times[name])
		}
	}
	receipt, document := h.must(0, "object", "receipt", id).stdout, h.must(0, "object", "events", id, "--premis").stdout
	for name, at := range times {
		if strings.Contains(name, "日本") {
			continue // its name stands escaped there
		}
		line := ""
		for l := range strings.Lines(receipt) {
			if strings.HasPrefix(l, `{"file":"producer/`+name+`"`) {
				line = l
			}
		}
		if !strings.Contains(line, `"modified":"`+at.Format("2006-01-02T15:04:05.000000Z")+`"`) {
			t.Errorf("the receipt has %q of %s, want %s", line, name, at)
		}
		if !strings.Contains(document, "<dateCreatedByApplication>"+at.Format(time.RFC3339Nano)+"<") {
			t.Errorf("the PREMIS document does not have %s of %s", at, name)
		}
	}
	compare := func(what, out string, least time.Duration) {
		t.Helper()
		got := files(t, out)
		if len(got) != len(times) {
			t.Errorf("%s: %d files, want %d", what, len(got), len(times))
		}
		for name, at := range times {
			if got[name] != "content of "+name {
				t.Errorf("%s: %q has %q", what, name, got[name])
			}
			info, err := os.Stat(filepath.Join(out, name))
			if err != nil || !info.ModTime().Truncate(least).Equal(at.Truncate(least)) {
				t.Errorf("%s: %q is of %v (%v), want %s", what, name, info, err, at)
			}
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	h.must(0, "object", "export", id, "--out", out)
	compare("a folder", out, time.Microsecond)

	archive := filepath.Join(t.TempDir(), "out.tar")
	h.must(0, "object", "export", id, "--tar", "--out", archive)
	for _, program := range []string{"tar", "bsdtar"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("REQUIRE_SERVICES") == "1" {
				t.Errorf("%v; scripts/deps.sh installs it", err)
			}
			continue
		}
		for _, locale := range []string{"C.UTF-8", "C"} {
			what, into := program+" in locale "+locale, filepath.Join(t.TempDir(), "x")
			if err := os.Mkdir(into, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, "-xf", archive, "-C", into)
			cmd.Env = append(os.Environ(), "LC_ALL="+locale)
			said, err := cmd.CombinedOutput()
			// Without UTF-8 bsdtar complains of every name of every pax archive that is not ASCII,
			// and unpacks it.
			if (err != nil || strings.Contains(string(said), "eyword")) && (program != "bsdtar" || locale != "C") {
				t.Errorf("%s: %v: %s", what, err, said)
			}
			compare(what, into, time.Microsecond)
		}
	}

	// The tar is a deposit, too.
	again, code := h.submit(archive)
	if code != 0 || len(again.Jobs) != 1 {
		t.Fatalf("exit=%d summary=%+v", code, again)
	}
	back := filepath.Join(t.TempDir(), "back")
	h.must(0, "object", "export", again.Jobs[0].ObjectID, "--out", back)
	compare("a tar that was submitted", back, time.Microsecond)

	// A file that is fetched has no time that anybody told.
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "of no known time") }))
	defer site.Close()
	one, code := h.submit(site.URL + "/undated.txt")
	if code != 0 || len(one.Jobs) != 1 {
		t.Fatalf("exit=%d summary=%+v", code, one)
	}
	for l := range strings.Lines(h.must(0, "object", "receipt", one.Jobs[0].ObjectID).stdout) {
		if strings.HasPrefix(l, `{"file":"producer/`) && strings.Contains(l, `"modified"`) {
			t.Errorf("the receipt has a time that nobody told: %s", l)
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(h.must(0, "object", "files", one.Jobs[0].ObjectID, "--json").stdout), "\n") {
		if strings.Contains(line, `"producer/`) && strings.Contains(line, `"modified"`) || strings.Contains(line, "1970") {
			t.Errorf("a time that nobody told: %s", line)
		}
	}
}

// TestModified_SingleFile: a file submitted alone keeps its time, in the inventory and in exports.
func TestModified_SingleFile(t *testing.T) {
	t.Parallel()
	h := up(t)
	at := time.Date(2001, 2, 3, 4, 5, 6, 789_123_000, time.UTC)
	path := filepath.Join(t.TempDir(), "plate.txt")
	if err := os.WriteFile(path, []byte("a plate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	s, code := h.submit(path)
	if code != 0 || len(s.Jobs) != 1 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	id := s.Jobs[0].ObjectID
	out := filepath.Join(t.TempDir(), "out")
	h.must(0, "object", "export", id, "--out", out)
	info, err := os.Stat(filepath.Join(out, "plate.txt"))
	if err != nil || !info.ModTime().Equal(at) {
		t.Errorf("exported: %v (%v), want one of %s", info, err, at)
	}
	says(t, "object files", h.must(0, "object", "files", id, "--json").stdout, "2001-02-03T04:05:06.789123Z")
}
