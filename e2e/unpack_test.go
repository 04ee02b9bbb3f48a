package e2e

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// unpack unpacks a container without our code: with the program tar, or the standard library's zip
// reader.
func unpack(t *testing.T, path, out string) {
	t.Helper()
	if !strings.HasSuffix(path, ".zip") {
		if msg, err := exec.Command("tar", "-xzf", path, "-C", out).CombinedOutput(); err != nil {
			t.Fatalf("tar: %v: %s", err, msg)
		}
		return
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(out, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
