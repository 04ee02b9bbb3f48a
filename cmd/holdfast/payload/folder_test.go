package payload

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

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

func tarOf(t *testing.T, dir string) (raw []byte, size int64) {
	t.Helper()
	f, err := OpenFolder(dir)
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
	want := clitest.WriteDeposit(t, dir)
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

// The same files with the same times give the same bytes, whatever their owners and place.
func TestFolderTar_IsDeterministic(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	clitest.WriteDeposit(t, one)
	clitest.WriteDeposit(t, other)
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
	clitest.WriteDeposit(t, dir)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "sub", "link")); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Skip("no socket can be made here:", err)
	}
	defer socket.Close()
	_, err = OpenFolder(dir)
	if !errors.Is(err, ErrNotAFile) {
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
			file := clitest.WriteFile(t, filepath.Join(dir, "a"), "as it was")
			f, err := OpenFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			clitest.WriteFile(t, file, content)
			if err := f.send(t.Context(), io.Discard); !errors.Is(err, errChanged) || !strings.Contains(err.Error(), file) {
				t.Errorf("error %v, want errChanged with %s", err, file)
			}
		})
	}
}

// Closing a reader early ends the goroutine that makes the tar file; goleak checks it.
func TestFolderTar_ClosedEarly(t *testing.T) {
	dir := t.TempDir()
	clitest.WriteDeposit(t, dir)
	f, err := OpenFolder(dir)
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
	file := clitest.WriteFile(t, filepath.Join(dir, "a.checkm"), "x")
	plain, bag, hollow := filepath.Join(dir, "plain"), filepath.Join(dir, "bag"), filepath.Join(dir, "hollow")
	clitest.WriteFile(t, filepath.Join(plain, "sub", "bagit.txt"), "x")
	clitest.WriteFile(t, filepath.Join(plain, "other", "a.txt"), "x")
	around := filepath.Join(dir, "around")
	clitest.WriteFile(t, filepath.Join(around, "sub", "bagit.txt"), "x")
	clitest.WriteFile(t, filepath.Join(bag, "bagit.txt"), "x")
	if err := os.Mkdir(hollow, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, arg string
		typ       registry.PayloadType
		wantType  registry.PayloadType
		wantName  string
		code      exit.Code
	}{
		{"address", "https://example.org/a.checkm", registry.AutoType, registry.AutoType, "https://example.org/a.checkm", exit.OK},
		{"other address", "ftp://example.org/a", registry.AutoType, registry.AutoType, "ftp://example.org/a", exit.OK},
		{"file", file, registry.AutoType, registry.AutoType, "a.checkm", exit.OK},
		{"folder", plain, registry.AutoType, registry.ContainerType, "plain.tar", exit.OK},
		{"folder with slash", plain + "/", registry.AutoType, registry.ContainerType, "plain.tar", exit.OK},
		{"bag", bag, registry.AutoType, registry.BagType, "bag.tar", exit.OK},
		{"folder around a bag", around, registry.AutoType, registry.BagType, "around.tar", exit.OK},
		{"bag as container", bag, registry.ContainerType, registry.ContainerType, "bag.tar", exit.OK},
		{"folder as file", plain, registry.FileType, "", "", exit.Usage},
		{"empty folder", hollow, registry.AutoType, "", "", exit.Content},
		{"absent", filepath.Join(dir, "absent"), registry.AutoType, "", "", exit.NotFound},
		{"device", os.DevNull, registry.AutoType, "", "", exit.Content},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Of(tt.arg, tt.typ)
			if got := exit.Of(err); got != tt.code {
				t.Fatalf("exit code %d (%v), want %d", got, err, tt.code)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tt.arg) {
					t.Errorf("the error does not name %s: %v", tt.arg, err)
				}
				return
			}
			defer p.Release()
			if p.Type != tt.wantType || p.Name != tt.wantName {
				t.Errorf("type %s, name %q; want %s, %q", p.Type, p.Name, tt.wantType, tt.wantName)
			}
		})
	}
}
