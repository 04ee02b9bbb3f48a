package safefs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/holdfast/holdfast/safefs"
)

// sample is a folder beside a file that it must not lead to.
func sample(t *testing.T) (folder string) {
	t.Helper()
	above := t.TempDir()
	folder = filepath.Join(above, "folder")
	for _, name := range []string{"../secret", "top", "a/1", "a/2", "a/3", "a/b/1", "a/b/2", "c/1"} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("content of "+name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func open(t *testing.T, folder string) *safefs.FS {
	t.Helper()
	f, err := safefs.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestFS(t *testing.T) {
	t.Parallel()
	if err := fstest.TestFS(open(t, sample(t)), "top", "a/1", "a/2", "a/3", "a/b/1", "a/b/2", "c/1"); err != nil {
		t.Error(err)
	}
}

// TestFS_AsRoot compares FS with os.Root.FS for all kinds of paths in any order: each must give the
// same bytes or the same error. Links within the folder are followed, and links that lead out of it
// are not, whether they are of folders or files, absolute or relative.
func TestFS_AsRoot(t *testing.T) {
	t.Parallel()
	folder := sample(t)
	for link, target := range map[string]string{
		"a/within": "2", "a/up": "../c/1", "a/out": "../../secret", "a/absolute": filepath.Join(filepath.Dir(folder), "secret"),
		"a/nowhere": "none", "linked": "a", "outside": "..", "a/b/round": "round",
	} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	f := open(t, folder)
	got, refused := 0, 0
	for range 3 { // the first time in a folder, the second, and with the folder open
		for _, name := range []string{
			"a/1", "a/2", "a/within", "a/up", "a/out", "a/absolute", "a/nowhere", "a/none", "a/b", "a/../a/1", "a//1", "/a/1", "", ".", "top",
			"a/b/1", "a/b/2", "a/b/round", "linked/1", "linked/2", "linked/up", "linked/out", "outside/secret", "outside/folder/top",
			"none/1", "none/2", "top/1", "top/2", "c/1",
		} {
			for range 2 {
				want, wantErr := content(root.FS(), name)
				text, err := content(f, name)
				if text != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("%q: %q, %v; want %q, %v", name, text, err, want, wantErr)
				}
				if strings.Contains(text, "secret") {
					t.Errorf("%q leads out of the folder", name)
				}
				if err == nil {
					got++
				} else {
					refused++
				}
			}
		}
	}
	if got == 0 || refused == 0 {
		t.Errorf("%d were read and %d refused, want some of each", got, refused)
	}
}

func content(f fs.FS, name string) (string, error) {
	file, err := f.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.IsDir() {
		return "a folder", err
	}
	text, err := io.ReadAll(file)
	return string(text), err
}

// TestFS_Concurrent checks that concurrent readers of several folders get the right files.
func TestFS_Concurrent(t *testing.T) {
	t.Parallel()
	f := open(t, sample(t))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 300 {
				name := []string{"a/1", "a/2", "a/b/1", "a/b/2", "c/1"}[(n/3+i)%5]
				if got, err := content(f, name); err != nil || got != "content of "+name {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
		})
	}
	all.Wait()
}

// TestFS_LinkInTheWay checks that a file that is replaced by a link out of the folder, while the
// folder is open, is not followed.
func TestFS_LinkInTheWay(t *testing.T) {
	t.Parallel()
	folder := sample(t)
	f := open(t, folder)
	for range 2 {
		if _, err := content(f, "a/1"); err != nil {
			t.Fatal(err)
		}
	}
	victim := filepath.Join(folder, "a", "1")
	if err := errors.Join(os.Remove(victim), os.Symlink("../../secret", victim)); err != nil {
		t.Fatal(err)
	}
	if got, err := content(f, "a/1"); err == nil {
		t.Errorf("it was followed to %q", got)
	}
}

// TestFS_InfoStaysWithin checks that an entry does not describe a file outside, if its folder is
// replaced by a link after it was listed.
func TestFS_InfoStaysWithin(t *testing.T) {
	t.Parallel()
	folder := sample(t)
	opened, err := open(t, folder).Open("a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	listed, ok := opened.(fs.ReadDirFile)
	if !ok {
		t.Fatalf("%T is no folder", opened)
	}
	entries, err := listed.ReadDir(-1)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := errors.Join(os.Rename(filepath.Join(folder, "a"), outside), os.Symlink(outside, filepath.Join(folder, "a"))); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			t.Errorf("%s: the FS describes %s of %d bytes, which lies outside", e.Name(), info.Name(), info.Size())
		}
	}
}

func TestOpen_None(t *testing.T) {
	t.Parallel()
	if _, err := safefs.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want ErrNotExist", err)
	}
}
