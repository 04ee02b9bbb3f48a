package dir_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// TestMain lets the test binary be a program that is traced.
func TestMain(m *testing.M) {
	if path := os.Getenv("DIR_TEST_PATH"); path != "" {
		if err := act(path, os.Getenv("DIR_TEST_ACT")); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// open returns a store in path that the test closes.
func open(t *testing.T, path string, opts ...dir.Option) *dir.Store {
	t.Helper()
	s, err := dir.Open(path, opts...)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// files returns every file and empty folder below path.
func files(t *testing.T, path string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(path, name)
		if !d.IsDir() {
			found = append(found, rel)
		} else if entries, err := os.ReadDir(name); err == nil && len(entries) == 0 {
			found = append(found, rel+"/")
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk: %v", err)
	}
	return found
}

func TestStore(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, t.TempDir()) })
}

func TestStoreWithNamedFiles(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, t.TempDir(), dir.WithNamedFiles()) })
}

func TestStoreWithoutOpenat2(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, t.TempDir(), dir.Walking) })
}

func TestStoreBesideOtherWriters(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, t.TempDir(), dir.Crowded) })
}

func TestFaultyPassesOn(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return storagetest.NewFaulty(open(t, t.TempDir())) })
}

func TestOddNamesAreFileNames(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	for _, name := range storagetest.OddNames() {
		if _, err := storage.Put(t.Context(), s, name, []byte(name)); err != nil {
			t.Errorf("put %q: %v", name, err)
		}
		if got, err := os.ReadFile(filepath.Join(path, name)); string(got) != name || err != nil {
			t.Errorf("file %q = %q, %v", name, got, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	path := t.TempDir()
	if _, err := dir.Open(filepath.Join(path, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: err = %v, want fs.ErrNotExist", err)
	}
	file := filepath.Join(path, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Open(file); err == nil {
		t.Error("a file was opened as a directory")
	}
	if _, err := dir.Open(path, dir.WithScratch("../out")); err == nil {
		t.Error("a scratch folder outside the directory was accepted")
	}
	if os.Geteuid() == 0 {
		t.Skip("the superuser may write anywhere")
	}
	readOnly := filepath.Join(path, "read-only")
	if err := os.Mkdir(readOnly, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Open(readOnly); err == nil || !strings.Contains(err.Error(), "not writable") {
		t.Errorf("read-only directory: err = %v, want one that says so", err)
	}
}

func TestCreateMakesTheDirectory(t *testing.T) {
	s, err := dir.Create(filepath.Join(t.TempDir(), "a", "b"))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestR03_SuccessorInAnotherProcess: the predecessor is killed after a checkpoint, or only stopped.
// The successor has only the checkpoint, and later writes of the predecessor change nothing.
func TestR03_SuccessorInAnotherProcess(t *testing.T) {
	path := t.TempDir()
	old := open(t, path)
	w, err := old.Create(t.Context(), "job/1/file")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	cp, err := w.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	successor := open(t, path)
	next, err := successor.Resume(t.Context(), "job/2/file", cp)
	if err != nil {
		t.Fatalf("resume: %v", err)
	}
	defer next.Close()
	if _, err := w.Write([]byte("from the one thought dead")); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Write([]byte("end")); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Commit(t.Context()); err != nil {
		t.Fatalf("commit: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("abort: %v", err)
	}
	got, err := storage.ReadAll(t.Context(), successor, "job/2/file", 8<<20)
	if want := append(content, "end"...); err != nil || !bytes.Equal(got, want) {
		t.Errorf("successor has %d bytes, %v, want %d", len(got), err, len(want))
	}
	if left, want := strings.Join(files(t, path), " "), "extensions/holdfast-scratch/config.json job/2/file"; left != want {
		t.Errorf("directory holds %s, want %s", left, want)
	}
}

// TestKilledWriterLeavesNothing: a killed process has closed only its descriptors.
func TestKilledWriterLeavesNothing(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	w, err := s.Create(t.Context(), "a/b/c")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if got := files(t, path); len(got) != 1 || got[0] != "./" {
		t.Errorf("directory holds %q while a writer is at work, want nothing", got)
	}
	if err := w.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestCommittedObjectsAreReadOnly(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	if _, err := storage.Put(t.Context(), s, "k", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"k", "r"} {
		if info, err := os.Stat(filepath.Join(path, key)); err != nil || info.Mode() != 0o444 {
			t.Errorf("mode of %s = %v, %v, want 0444", key, info.Mode(), err)
		}
	}
}

func TestCopyLinksOnOneFileSystem(t *testing.T) {
	path := t.TempDir()
	from, err := dir.Create(filepath.Join(path, "from"))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := dir.Create(filepath.Join(path, "to"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := storage.Put(t.Context(), from, "k", []byte("content")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "from", "writable"), []byte("by hand"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		key    string
		linked bool
	}{{"k", true}, {"writable", false}} {
		if _, err := storage.Copy(t.Context(), to, "x/"+test.key, from, test.key); err != nil {
			t.Fatalf("copy %s: %v", test.key, err)
		}
		a, errA := os.Stat(filepath.Join(path, "from", test.key))
		b, errB := os.Stat(filepath.Join(path, "to", "x", test.key))
		if errA != nil || errB != nil || os.SameFile(a, b) != test.linked {
			t.Errorf("%s: linked = %v, want %v (%v, %v)", test.key, os.SameFile(a, b), test.linked, errA, errB)
		}
	}
}

// TestCopyLinksOnce: two copies of one object do not share their bytes, so that damage to one
// spares the other.
func TestCopyLinksOnce(t *testing.T) {
	path := t.TempDir()
	from, to := open(t, t.TempDir()), open(t, path)
	if _, err := storage.Put(t.Context(), from, "k", []byte("content")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"first", "second", "third"} {
		if _, err := storage.Copy(t.Context(), to, key, from, "k"); err != nil {
			t.Fatal(err)
		}
		if _, err := storage.Copy(t.Context(), to, key, from, "k"); !errors.Is(err, storage.ErrExists) {
			t.Errorf("copy again: err = %v, want ErrExists", err)
		}
	}
	var infos []fs.FileInfo
	for _, key := range []string{"first", "second", "third"} {
		info, err := os.Stat(filepath.Join(path, key))
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range infos {
			if os.SameFile(info, other) {
				t.Errorf("%s is the same file as another object", key)
			}
		}
		infos = append(infos, info)
	}
}

// TestCopyLinksOnceAtATime: the same holds for objects that are copied at the same time. Two jobs may
// have the same upload.
func TestCopyLinksOnceAtATime(t *testing.T) {
	path := t.TempDir()
	from, to := open(t, t.TempDir()), open(t, path)
	if _, err := storage.Put(t.Context(), from, "k", []byte("content")); err != nil {
		t.Fatal(err)
	}
	var batches []storage.Batch
	for _, key := range []string{"first", "second"} {
		b := to.Batch()
		defer b.Close()
		if err := b.Copy(t.Context(), key, from, "k"); err != nil {
			t.Fatal(err)
		}
		batches = append(batches, b)
	}
	var infos []fs.FileInfo
	for i, key := range []string{"first", "second"} {
		if taken, err := batches[i].Publish(t.Context()); err != nil || len(taken) > 0 {
			t.Fatal(taken, err)
		}
		info, err := os.Stat(filepath.Join(path, key))
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, info)
	}
	if os.SameFile(infos[0], infos[1]) {
		t.Error("two objects are one file")
	}
}

// TestRelyOpensLittle: a batch may rely on objects in any number of folders, as a commit does that
// goes on with an object of many files.
func TestRelyOpensLittle(t *testing.T) {
	s := open(t, t.TempDir())
	b := s.Batch()
	defer b.Close()
	before := openFiles(t)
	for i := range 100 {
		key := fmt.Sprintf("%d/k", i)
		if err := storage.PutIn(t.Context(), b, key, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if err := b.Rely(t.Context(), fmt.Sprintf("%d/k", i)); err != nil {
			t.Fatal(err)
		}
	}
	if after := openFiles(t); after > before+10 {
		t.Errorf("%d files are open, before it %d", after, before)
	}
	if _, err := b.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// openFiles returns how many files this process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("open files cannot be counted here: %v", err)
	}
	return len(entries)
}

// TestMergedNames: a file system that merges names is refused; this one does not. The test of it
// leaves nothing.
func TestMergedNames(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	if got := files(t, path); len(got) != 1 || got[0] != "./" {
		t.Errorf("directory holds %q after it was opened, want nothing", got)
	}
	if err := s.TellsApart("a", "A"); err != nil {
		t.Errorf("two names: %v", err)
	}
	if err := s.TellsApart("b", "b"); err == nil || !strings.Contains(err.Error(), "would be merged") {
		t.Errorf("one name: err = %v, want it refused", err)
	}
}

func TestReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if remarks, err := s.Ready(t.Context()); err != nil || len(remarks) > 0 {
		t.Errorf("ready = %q, %v", remarks, err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ready(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ready without its directory: err = %v, want fs.ErrNotExist", err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ready(t.Context()); err == nil {
		t.Error("ready in another directory than was opened")
	}
}

// TestForeignEntries: only regular files are objects, and no link leads out, however names are opened.
func TestForeignEntries(t *testing.T) {
	for name, opts := range map[string][]dir.Option{"openat2": nil, "os.Root": {dir.Walking}} {
		t.Run(name, func(t *testing.T) { testForeignEntries(t, opts...) })
	}
}

func testForeignEntries(t *testing.T, opts ...dir.Option) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	s := open(t, path, opts...)
	for name, target := range map[string]string{"file": filepath.Join(outside, "secret"), "folder": outside, "up": "..", "way": "../" + filepath.Base(outside)} {
		if err := os.Symlink(target, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"file", "folder/secret", "up/x", "way/secret"} {
		if r, err := s.Open(t.Context(), key, 0, -1); err == nil {
			t.Errorf("%q led out of the directory", key)
			_ = r.Close()
		}
	}
	if _, err := storage.Put(t.Context(), s, "folder/new", nil); err == nil {
		t.Error("an object was written outside the directory")
	}
	if _, err := os.Stat(filepath.Join(outside, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("outside: %v, want no such file", err)
	}
	for info, err := range s.List(t.Context(), "") {
		t.Errorf("list shows %q, %v", info.Key, err)
	}
}

func TestScratchIsOutOfReach(t *testing.T) {
	s := open(t, t.TempDir(), dir.WithScratch("tmp/scratch"))
	w, err := s.Create(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cp, err := w.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"tmp", "tmp/scratch", "tmp/scratch/pending/k"} {
		keyErr := (*storage.KeyError)(nil)
		if err := s.DeletePrefix(t.Context(), key); !errors.As(err, &keyErr) {
			t.Errorf("delete folder %q: err = %v, want a KeyError", key, err)
		}
		if _, err := s.Create(t.Context(), key); !errors.As(err, &keyErr) {
			t.Errorf("create %q: err = %v, want a KeyError", key, err)
		}
	}
	for _, prefix := range []string{"", "tmp", "tmp/", "tmp/scratch/", "tmp/scratch/pending/"} {
		for info := range s.List(t.Context(), prefix) {
			t.Errorf("list %q shows %q", prefix, info.Key)
		}
	}
	if _, err := s.Resume(t.Context(), "l", cp); err != nil {
		t.Errorf("resume: %v", err)
	}
}

func TestCopyToBrokenKeyLeavesObjects(t *testing.T) {
	s := open(t, t.TempDir())
	if _, err := storage.Put(t.Context(), s, "a", []byte("a")); err != nil {
		t.Fatal(err)
	}
	keyErr := (*storage.KeyError)(nil)
	if _, err := storage.Copy(t.Context(), s, "a/b", s, "a"); !errors.As(err, &keyErr) {
		t.Errorf("copy below an object: err = %v, want a KeyError", err)
	}
	if got, err := storage.ReadAll(t.Context(), s, "a", 10); string(got) != "a" || err != nil {
		t.Errorf("a = %q, %v", got, err)
	}
}
