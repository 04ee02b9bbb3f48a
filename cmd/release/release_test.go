package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNotesOf(t *testing.T) {
	const changes = "# Changelog\n\nWhat users notice.\n\n## Unreleased\n\n## v1.2.0 (2027-01-31)\n\n### Added\n\n- A thing.\n\n### Fixed\n\n- Another.\n\n## v1.1.0 (2026-12-01)\n\n- Old.\n"
	got, err := notesOf(changes, "v1.2.0")
	if want := "# Holdfast v1.2.0 (2027-01-31)\n\n### Added\n\n- A thing.\n\n### Fixed\n\n- Another.\n"; err != nil || got != want {
		t.Errorf("notes %q, %v; want %q", got, err, want)
	}
	for name, c := range map[string][3]string{
		"an older version":     {changes, "v1.1.0", `the first section is "v1.2.0"`},
		"an unknown version":   {"# Changelog\n", "v1.2.0", "no section"},
		"changes left over":    {strings.Replace(changes, "Unreleased\n", "Unreleased\n\n- Forgotten.\n", 1), "v1.2.0", "## v1.2.0 (DATE)"},
		"no date":              {strings.Replace(changes, " (2027-01-31)", "", 1), "v1.2.0", "no date"},
		"nothing in it":        {"## v1.2.0 (2027-01-31)\n\n## v1.1.0 (2026-12-01)\n\n- Old.\n", "v1.2.0", "is empty"},
		"a part of the number": {changes, "v1.2", "not \"v1.2\""},
	} {
		if notes, err := notesOf(c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: %q, %v; want the error %q", name, notes, err, c[2])
		}
	}
}

func TestRelease_BadVersion(t *testing.T) {
	for _, version := range []string{"0.9.0", "v0.9", "v0.9.0;ls", "v0.9.0/../x", ""} {
		if err := release(t.Context(), version, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no version") {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// TestCommitOf: only a clean tree is released, and a tag is not used twice.
func TestCommitOf(t *testing.T) {
	t.Chdir(t.TempDir())
	at := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, setting := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+setting+"_NAME", "Ann")
		t.Setenv("GIT_"+setting+"_EMAIL", "ann@example.org")
		t.Setenv("GIT_"+setting+"_DATE", at.Format(time.RFC3339))
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := git(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile("a", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must("init", "-q")
	write("1")
	must("add", "a")
	must("commit", "-qm", "one")
	must("tag", "v1.0.0")
	commit, when, err := commitOf(t.Context(), "v1.0.0")
	if err != nil || commit != must("rev-parse", "HEAD") || !when.Equal(at) {
		t.Errorf("commit %s of %s, %v", commit, when, err)
	}
	write("2")
	if _, _, err := commitOf(t.Context(), "v1.1.0"); err == nil || !strings.Contains(err.Error(), "not clean") {
		t.Errorf("with changes: %v", err)
	}
	must("commit", "-qam", "two")
	if _, _, err := commitOf(t.Context(), "v1.0.0"); err == nil || !strings.Contains(err.Error(), "is a tag already") {
		t.Errorf("with another commit's tag: %v", err)
	}
}

// TestPack: an archive has one folder, and depends on nothing but its content and time.
func TestPack(t *testing.T) {
	at := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
	files := []file{{"share/man/man1/holdfast.1", []byte("page"), 0o644}, {"holdfast", []byte("program"), 0o755}, {"README.md", nil, 0o644}}
	var one, two bytes.Buffer
	if err := errors.Join(pack(&one, "holdfast-v1.2.0-linux-amd64", files, at), pack(&two, "holdfast-v1.2.0-linux-amd64", []file{files[1], files[2], files[0]}, at.Local())); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the same files in another order give another archive")
	}
	plain, err := gzip.NewReader(&one)
	if err != nil {
		t.Fatal(err)
	}
	if !plain.ModTime.IsZero() || plain.Name != "" {
		t.Errorf("gzip tells the time %s and the name %q", plain.ModTime, plain.Name)
	}
	var got []string
	for archive := tar.NewReader(plain); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(at) || h.Uid != 0 || h.Gid != 0 || h.Uname != "root" {
			t.Errorf("%s is of %s and belongs to %d, %s", h.Name, h.ModTime, h.Uid, h.Uname)
		}
		got = append(got, strings.TrimPrefix(h.Name, "holdfast-v1.2.0-linux-amd64/")+" "+h.FileInfo().Mode().String()+" "+string(content))
	}
	if want := []string{"README.md -rw-r--r-- ", "holdfast -rwxr-xr-x program", "share/man/man1/holdfast.1 -rw-r--r-- page"}; !slices.Equal(got, want) {
		t.Errorf("it has %q, want %q", got, want)
	}
}

// TestBillOf: the bill lists exactly the modules that `go version -m` prints, and Go's library.
func TestBillOf(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "program")
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nimport _ \"github.com/spf13/cobra\"\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := billOf(binary, "v1.2.0", "c0ffee", time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(raw, &b); err != nil {
		t.Fatal(err)
	}
	printed, err := exec.Command("go", "version", "-m", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(printed)) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); f[0] == "dep" {
			want = append(want, f[1]+" "+f[2]+" "+f[3])
		}
	}
	var got []string
	for _, c := range b.Components[1:] {
		got = append(got, c.Name+" "+c.Version+" "+c.Properties[0].Value)
	}
	if len(want) < 2 || !slices.Equal(got, want) {
		t.Errorf("modules %q, want %q", got, want)
	}
	if std := b.Components[0]; std.Name != "std" || !strings.Contains(string(printed), "go"+std.Version+"\n") {
		t.Errorf("Go's library is %+v in\n%s", std, printed)
	}
	if c := b.Components[1]; !strings.HasPrefix(c.Purl, "pkg:golang/"+c.Name+"@"+c.Version) || !slices.Contains(b.Depends[0].DependsOn, c.Ref) {
		t.Errorf("a module is %+v in %+v", c, b.Depends)
	}
	if b.Metadata.Component.Version != "v1.2.0" || b.Metadata.Timestamp != "2027-01-31T12:00:00Z" {
		t.Errorf("it is about %+v", b.Metadata)
	}
}
