package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// deposit makes a folder with names that are hard on tar, and returns what is in it.
func deposit(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{
		"b.txt": "b", "a.txt": "a", "sub/c": strings.Repeat("c", 1300), "sub/empty": "", "größe.txt": "ü",
		filepath.Join(strings.Repeat("d", 200), strings.Repeat("e", 200)): "deep",
	}
	for name, content := range files {
		writeFile(t, filepath.Join(dir, name), content)
	}
	if err := os.Mkdir(filepath.Join(dir, "nothing"), 0o755); err != nil {
		t.Fatal(err)
	}
	return files
}

func tarOf(t *testing.T, dir string) (raw []byte, size int64) {
	t.Helper()
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := f.reader(t.Context())
	raw, err = io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return raw, f.size
}

func TestFolderTar_HoldsTheFolder(t *testing.T) {
	dir := t.TempDir()
	want := deposit(t, dir)
	raw, size := tarOf(t, dir)
	if int64(len(raw)) != size {
		t.Errorf("the tar file has %d bytes, %d were announced", len(raw), size)
	}
	got := map[string]string{}
	var names []string
	tr := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Typeflag == tar.TypeDir {
			continue
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(content)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if joined := strings.Join(names, " "); !strings.HasPrefix(joined, "a.txt b.txt ") || !strings.HasSuffix(joined, "nothing/ sub/ sub/c sub/empty größe.txt") &&
		!strings.HasSuffix(joined, "größe.txt nothing/ sub/ sub/c sub/empty") {
		t.Errorf("entries are not sorted: %q", names)
	}
}

// The same files with the same times give the same bytes, so that they are recognised: whoever owns them, wherever they lie.
func TestFolderTar_IsDeterministic(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	deposit(t, one)
	deposit(t, other)
	at := time.Unix(1, 2000)
	for _, dir := range []string{one, other} {
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Chtimes(path, at, at))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(other, "b.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, _ := tarOf(t, one)
	b, _ := tarOf(t, other)
	if !bytes.Equal(a, b) {
		t.Error("two folders with the same content give different tar files")
	}
	later := at.Add(time.Hour)
	if err := os.Chtimes(filepath.Join(other, "a.txt"), later, later); err != nil {
		t.Fatal(err)
	}
	if b, _ = tarOf(t, other); bytes.Equal(a, b) {
		t.Error("the time of a file is lost")
	}
}

func TestFolderTar_RefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	deposit(t, dir)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "sub", "link")); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Skip("no socket can be made here:", err)
	}
	defer socket.Close()
	_, err = openFolder(dir)
	if !errors.Is(err, errNotAFile) {
		t.Fatalf("error %v, want errNotAFile", err)
	}
	for _, name := range []string{"sub/link", "socket"} {
		if !strings.Contains(err.Error(), filepath.Join(dir, name)) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}

func TestFolderTar_NoticesChanges(t *testing.T) {
	for name, content := range map[string]string{"longer": "more than it was", "shorter": ""} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := writeFile(t, filepath.Join(dir, "a"), "as it was")
			f, err := openFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			writeFile(t, file, content)
			if err := f.send(t.Context(), io.Discard); !errors.Is(err, errChanged) || !strings.Contains(err.Error(), file) {
				t.Errorf("error %v, want errChanged with %s", err, file)
			}
		})
	}
}

// A reader that goes away ends the goroutine that makes the tar file; goleak sees to it.
func TestFolderTar_ClosedEarly(t *testing.T) {
	dir := t.TempDir()
	deposit(t, dir)
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := f.reader(t.Context())
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestPayloadOf(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, filepath.Join(dir, "a.checkm"), "x")
	plain, bag, hollow := filepath.Join(dir, "plain"), filepath.Join(dir, "bag"), filepath.Join(dir, "hollow")
	writeFile(t, filepath.Join(plain, "sub", "bagit.txt"), "x")
	writeFile(t, filepath.Join(plain, "other", "a.txt"), "x")
	around := filepath.Join(dir, "around")
	writeFile(t, filepath.Join(around, "sub", "bagit.txt"), "x")
	writeFile(t, filepath.Join(bag, "bagit.txt"), "x")
	if err := os.Mkdir(hollow, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, arg string
		typ       registry.PayloadType
		wantType  registry.PayloadType
		wantName  string
		code      outcome
	}{
		{"address", "https://example.org/a.checkm", registry.AutoType, registry.AutoType, "https://example.org/a.checkm", exitOK},
		{"other address", "ftp://example.org/a", registry.AutoType, registry.AutoType, "ftp://example.org/a", exitOK},
		{"file", file, registry.AutoType, registry.AutoType, "a.checkm", exitOK},
		{"folder", plain, registry.AutoType, registry.ContainerType, "plain.tar", exitOK},
		{"folder with slash", plain + "/", registry.AutoType, registry.ContainerType, "plain.tar", exitOK},
		{"bag", bag, registry.AutoType, registry.BagType, "bag.tar", exitOK},
		{"folder around a bag", around, registry.AutoType, registry.BagType, "around.tar", exitOK},
		{"bag as container", bag, registry.ContainerType, registry.ContainerType, "bag.tar", exitOK},
		{"folder as file", plain, registry.FileType, "", "", exitUsage},
		{"empty folder", hollow, registry.AutoType, "", "", exitContent},
		{"absent", filepath.Join(dir, "absent"), registry.AutoType, "", "", exitNotFound},
		{"device", os.DevNull, registry.AutoType, "", "", exitContent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := payloadOf(tt.arg, tt.typ)
			if got := codeOf(err); got != int(tt.code) {
				t.Fatalf("exit code %d (%v), want %d", got, err, tt.code)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tt.arg) {
					t.Errorf("the error does not name %s: %v", tt.arg, err)
				}
				return
			}
			defer p.release()
			if p.typ != tt.wantType || p.name != tt.wantName {
				t.Errorf("type %s, name %q; want %s, %q", p.typ, p.name, tt.wantType, tt.wantName)
			}
		})
	}
}
