package ocfl_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// same checks that a root has an object as another one has it, to the byte, and valid.
func same(t *testing.T, want, got *ocfl.Root, id string) {
	t.Helper()
	report, err := got.Verify(t.Context(), id, ocfl.ValidateOptions{})
	if err != nil || !report.Valid() {
		t.Fatalf("verify the replica: %v %+v", err, report)
	}
	texts := func(r *ocfl.Root) map[string]string {
		out := map[string]string{}
		folder, err := r.ObjectKey(id)
		if err != nil {
			t.Fatal(err)
		}
		for info, err := range r.Store().List(t.Context(), folder+"/") {
			if err != nil {
				t.Fatal(err)
			}
			data, err := storage.ReadAll(t.Context(), r.Store(), info.Key, 1<<24)
			if err != nil {
				t.Fatal(err)
			}
			out[info.Key] = string(data)
		}
		return out
	}
	a, b := texts(want), texts(got)
	for key, text := range a {
		if b[key] != text {
			t.Errorf("%s is %q, want %q", key, b[key], text)
		}
	}
	if len(a) != len(b) {
		t.Errorf("%d files, want %d", len(b), len(a))
	}
}

func TestReplicate(t *testing.T) {
	t.Parallel()
	from, inv := smallObject(t)
	behind, tap := storagetest.NewMemory(), storagetest.NewFaulty(from.Store())
	source := newRoot(t, tap)
	to := newRoot(t, behind)
	var versions []int
	replicate := func(head int) error {
		return to.Replicate(t.Context(), source, inv.ID, head, func(n int, _ string) (ocfl.CommitOptions, error) {
			versions = append(versions, n)
			return ocfl.CommitOptions{}, nil
		})
	}
	if err := replicate(1); err != nil {
		t.Fatal(err)
	}
	if head, err := to.Head(t.Context(), inv.ID); err != nil || head.Head != 1 {
		t.Errorf("head %+v (%v), want 1", head, err)
	}
	if err := replicate(2); err != nil {
		t.Fatal(err)
	}
	same(t, from, to, inv.ID)
	reads := tap.Count(storagetest.Open)
	if err := replicate(2); err != nil {
		t.Fatal(err)
	}
	// The beginning of the root inventory and the sidecar of each version.
	if got := tap.Count(storagetest.Open) - reads; got > 4 {
		t.Errorf("a repeat reads %d files of the source", got)
	}
	if len(versions) != 2 || versions[0] != 1 || versions[1] != 2 {
		t.Errorf("versions %v were copied, want 1 and 2 once each", versions)
	}
	if err := replicate(3); !errors.Is(err, ocfl.ErrNotFound) {
		t.Errorf("a version that is not there: %v", err)
	}
	if err := to.Replicate(t.Context(), source, "ark:/99999/none", 1, nil); !errors.Is(err, ocfl.ErrNotFound) {
		t.Errorf("an object that is not there: %v", err)
	}
}

// TestReplicate_SharesNothing checks that a replica has no hard links to its source. Storage in
// directories copies by linking, and then one bad block would damage both.
func TestReplicate_SharesNothing(t *testing.T) {
	t.Parallel()
	from, inv := smallObject(t)
	folder := t.TempDir()
	store, err := dir.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	to := newRoot(t, store)
	if err := to.Replicate(t.Context(), from, inv.ID, 2, nil); err != nil {
		t.Fatal(err)
	}
	same(t, from, to, inv.ID)
	files := 0
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		if links := linksOf(t, path); links != 1 {
			t.Errorf("%s has %d names", path, links)
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Errorf("%d files (%v)", files, err)
	}
}

// TestReplicate_DiesAnywhere stops the process at every operation on either side and checks that
// the next call completes the replica and that every version is whole or absent.
func TestReplicate_DiesAnywhere(t *testing.T) {
	t.Parallel()
	from, inv := smallObject(t)
	for _, side := range []string{"source", "replica"} {
		survived := false
		for n := 1; !survived; n++ {
			for _, after := range []bool{false, true} {
				behind := storagetest.NewMemory()
				to, source := newRoot(t, behind), from
				faulty := storagetest.NewFaulty(behind)
				through := newRoot(t, faulty)
				if side == "source" {
					faulty = storagetest.NewFaulty(from.Store())
					source, through = newRoot(t, faulty), to
				}
				if after {
					faulty.DieAfter(n)
				} else {
					faulty.DieAt(n)
				}
				err := through.Replicate(t.Context(), source, inv.ID, 2, nil)
				if survived = err == nil; !survived && !errors.Is(err, storagetest.ErrDead) {
					t.Fatalf("%s, death at %d: %v", side, n, err)
				}
				if head, err := to.Head(t.Context(), inv.ID); err == nil {
					if _, err := to.Inventory(t.Context(), inv.ID, head.Head); err != nil && !survived && !errors.Is(err, storage.ErrNotFound) {
						t.Errorf("%s, death at %d: version %d is there and not whole: %v", side, n, head.Head, err)
					}
				}
				if err := to.Replicate(t.Context(), from, inv.ID, 2, nil); err != nil {
					t.Fatalf("%s, death at %d: the next call: %v", side, n, err)
				}
				same(t, from, to, inv.ID)
			}
		}
	}
}

// TestReplicate_OfWhatIsDamaged checks that damaged files, and files damaged while being copied,
// never become part of a replica.
func TestReplicate_OfWhatIsDamaged(t *testing.T) {
	t.Parallel()
	from, inv := smallObject(t)
	folder, err := from.ObjectKey(inv.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"v1/content/producer/a", "v1/inventory.json", "v2/inventory.json"} {
		for _, fault := range []string{"flipped", "cut"} {
			tap := storagetest.NewFaulty(from.Store())
			source, to := newRoot(t, tap), newRoot(t, storagetest.NewMemory())
			if fault == "flipped" {
				tap.Flip(folder+"/"+name, 0)
			} else {
				tap.Truncate(folder+"/"+name, 0)
			}
			if err := to.Replicate(t.Context(), source, inv.ID, 2, nil); err == nil {
				t.Errorf("%s %s: it was copied", name, fault)
			}
			tap.Heal()
			if err := to.Replicate(t.Context(), source, inv.ID, 2, nil); err != nil {
				t.Fatalf("%s %s: afterwards: %v", name, fault, err)
			}
			same(t, from, to, inv.ID)
		}
	}
}

func linksOf(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return linksIn(info)
}
