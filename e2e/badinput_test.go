package e2e

import (
	"archive/zip"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadInput: bad input gets a clear message with the remedy and the right exit code, and leaves
// nothing behind.
func TestBadInput(t *testing.T) {
	h := up(t)
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	slip := filepath.Join(folder, "slip.zip")
	zipTo(t, slip, map[string]string{"../../escape.txt": "out", "fine.txt": "in"})
	fifo := filepath.Join(folder, "links")
	if err := os.Mkdir(fifo, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(fifo, "passwd")); err != nil {
		t.Fatal(err)
	}
	good := write("good.txt", "good")
	tests := []struct {
		name     string
		args     []string
		code     int
		mentions []string
	}{
		{"empty file", []string{write("empty.bin", "")}, 6, []string{"empty.bin", "empty"}},
		{"no such path", []string{filepath.Join(folder, "nowhere")}, 4, []string{"nowhere"}},
		{"a link in a folder", []string{fifo}, 6, []string{"passwd"}},
		{"unknown type", []string{good, "--type", "zipfile"}, 2, []string{"zipfile", "container"}},
		{"unknown collection", []string{good, "--collection", "nobody"}, 4, []string{"nobody"}},
		{"malformed ARK", []string{good, "--ark", "ark:/foo"}, 2, []string{"ark:/foo"}},
		{"update of nothing that is named", []string{good, "--update"}, 2, []string{"update", "ARK or a local id"}},
		{"wrong digest", []string{good, "--digest", "md5:00000000000000000000000000000000"}, 6, []string{"00000000000000000000000000000000"}},
		{"digest of the wrong length", []string{good, "--digest", "sha256:abc"}, 2, []string{"sha256", "64"}},
		{"scheme that is not fetched", []string{"ftp://example.org/file"}, 2, []string{"ftp"}},
		{"manifest without an end", []string{write("cut.checkm", strings.TrimSuffix(manifest("mrt-ingest-manifest", "http://example.org/a | | | | | a"), "#%eof\n"))}, 6, []string{"#%eof"}},
		{"manifest with names that escape", []string{write("up.checkm", manifest("mrt-ingest-manifest", "http://example.org/a | | | | | ../../etc/passwd"))}, 6, []string{"../../etc/passwd", "6"}},
		{"manifest that names a file twice", []string{write("twice.checkm", manifest("mrt-ingest-manifest", "http://example.org/a | | | | | a", "http://example.org/b | | | | | a"))}, 6, []string{"twice.checkm", "7"}},
		{"container with names that escape", []string{slip, "--wait"}, 6, []string{"../../escape.txt"}},
		{"unknown option", []string{good, "--colection", "x"}, 2, []string{"colection"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h.t = t
			r := h.run(append([]string{"submit"}, tt.args...)...)
			if r.code != tt.code {
				t.Errorf("exit=%d, want %d\n%s%s", r.code, tt.code, r.stdout, r.stderr)
			}
			for _, m := range tt.mentions {
				if !strings.Contains(r.stdout+r.stderr, m) {
					t.Errorf("no mention of %q in:\n%s%s", m, r.stdout, r.stderr)
				}
			}
			if strings.Contains(r.stderr, "goroutine ") {
				t.Errorf("a stack trace: %s", r.stderr)
			}
		})
	}
	t.Run("refused uploads leave nothing", func(t *testing.T) {
		h.t = t
		for name := range files(t, filepath.Join(h.dir, "staging")) {
			if strings.HasPrefix(name, "uploads/") && !uploadOf(t, h, name, slip) {
				t.Errorf("left behind: %s", name)
			}
		}
		if objects := rows[struct{}](h, "object", "list"); len(objects) != 0 {
			t.Errorf("%d objects were made of bad input", len(objects))
		}
	})
}

// uploadOf reports whether a stored upload is of this file: its job failed and may still be
// requeued.
func uploadOf(t *testing.T, h *holdfast, name, path string) bool {
	t.Helper()
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(h.dir, "staging", name))
	return err == nil && string(got) == string(want)
}

func zipTo(t *testing.T, path string, members map[string]string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, text := range members {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUp_BadStart: each cause that keeps Holdfast from starting is reported in one line, with the
// remedy.
func TestUp_BadStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := up(t)
	tests := []struct {
		name     string
		args     []string
		env      string
		code     int
		mentions []string
	}{
		{name: "port in use", args: []string{"--dir", filepath.Join(t.TempDir(), "d"), "--listen", taken.Addr().String()}, code: 5, mentions: []string{taken.Addr().String(), "--listen"}},
		{name: "folder cannot be made", args: []string{"--dir", filepath.Join(file, "d")}, code: 1, mentions: []string{file, "--dir"}},
		{name: "folder cannot be written", args: []string{"--dir", "/proc/self"}, code: 1, mentions: []string{"/proc/self", "--dir"}},
		{name: "folder in use", args: []string{"--dir", h.dir, "--listen", "127.0.0.1:0"}, code: 5, mentions: []string{h.dir, "another"}},
		{name: "misspelt setting, of which it only warns", args: []string{"--dir", filepath.Join(t.TempDir(), "d"), "--listen", taken.Addr().String()}, env: "HOLDFAST_NET_ALOW=1", code: 5, mentions: []string{"HOLDFAST_NET_ALOW", "HOLDFAST_NET_ALLOW"}},
		{name: "malformed setting", args: []string{"--dir", filepath.Join(t.TempDir(), "d")}, env: "HOLDFAST_LEASE=soon", code: 2, mentions: []string{"HOLDFAST_LEASE", "soon"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			other := &holdfast{t: t, env: []string{tt.env}}
			if tt.env == "" {
				other.env = nil
			}
			r := other.runIn("", append([]string{"up"}, tt.args...)...)
			if r.code != tt.code {
				t.Errorf("exit=%d, want %d: %s", r.code, tt.code, r.stderr)
			}
			for _, m := range tt.mentions {
				if !strings.Contains(r.stderr, m) {
					t.Errorf("no mention of %q in: %s", m, r.stderr)
				}
			}
		})
	}
}
