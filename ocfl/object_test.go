package ocfl_test

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// created is when the versions of the tests are made.
func created(n int) time.Time { return time.Date(2026, 1, 2, 3, 4, n, 0, time.UTC) }

// newStore returns an empty store.
func newStore(t *testing.T) storage.Store {
	t.Helper()
	s, err := dir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// newRoot returns an empty storage root.
func newRoot(t *testing.T, store storage.Store) *ocfl.Root {
	t.Helper()
	root, err := ocfl.OpenRoot(t.Context(), store, "", nil)
	if err != nil {
		t.Fatalf("open root: %v", err)
	}
	return root
}

// newObject returns the inventory of an object without a version.
func newObject(t *testing.T, id string) *ocfl.Inventory {
	t.Helper()
	inv, err := ocfl.New(id, ocfl.SHA512)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// staging holds the bytes of files to come, under their digests.
type staging struct {
	store storage.Store
}

// file stages content as a file.
func (s staging) file(t testing.TB, path, content string) ocfl.File {
	t.Helper()
	digest := digestOf("sha512", content)
	if _, err := storage.Put(t.Context(), s.store, digest, []byte(content)); err != nil && !errors.Is(err, storage.ErrExists) {
		t.Fatalf("stage: %v", err)
	}
	return ocfl.File{Path: path, Digest: digest}
}

// source implements ocfl.Source.
func (s staging) source(f ocfl.ContentFile) (storage.Store, string, error) {
	return s.store, f.Digest, nil
}

// plan plans a version.
func plan(t testing.TB, prev *ocfl.Inventory, change ocfl.Change) (*ocfl.Inventory, []ocfl.ContentFile) {
	t.Helper()
	if change.Created.IsZero() {
		change.Created = created(prev.Head())
	}
	inv, files, err := ocfl.NewVersion(prev, change)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	return inv, files
}

// user is who makes the versions of the tests.
var user = ocfl.User{Name: "Holdfast", Address: "https://example.org/holdfast"}

// smallObject commits two versions of an object to a new root.
func smallObject(t *testing.T) (*ocfl.Root, *ocfl.Inventory) {
	t.Helper()
	root := newRoot(t, newStore(t))
	stage := staging{newStore(t)}
	first := ocfl.Change{Message: "one", User: &user, Files: ocfl.Files([]ocfl.File{
		stage.file(t, "producer/a", "a"), stage.file(t, "producer/b", "b"),
	})}
	inv, _ := plan(t, newObject(t, "ark:/99999/fk4"), first)
	commit(t, root, inv, stage)
	second := ocfl.Change{Message: "two", User: &user, Files: ocfl.Files([]ocfl.File{stage.file(t, "producer/c", "c")})}
	inv, _ = plan(t, inv, second)
	commit(t, root, inv, stage)
	return root, inv
}

// commit commits a version.
func commit(t *testing.T, root *ocfl.Root, inv *ocfl.Inventory, stage staging) {
	t.Helper()
	if err := root.Commit(t.Context(), inv, stage.source, ocfl.CommitOptions{}); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// wantFiles checks the logical state of a version and the bytes of its files.
func wantFiles(t *testing.T, root *ocfl.Root, id string, n int, want map[string]string) {
	t.Helper()
	inv, err := root.Inventory(t.Context(), id, n)
	if err != nil {
		t.Errorf("inventory of version %d: %v", n, err)
		return
	}
	if got := len(inv.State(0)); got != len(want) {
		t.Errorf("version %d has %d files, want %d", n, got, len(want))
	}
	for path, content := range want {
		f, ok := inv.Lookup(0, path)
		if !ok {
			t.Errorf("version %d has no %q", n, path)
			continue
		}
		in, err := root.OpenContent(t.Context(), inv, f.Digest, 0, -1)
		if err != nil {
			t.Errorf("open %q of version %d: %v", path, n, err)
			continue
		}
		got, err := io.ReadAll(in)
		_ = in.Close()
		if err != nil || string(got) != content {
			t.Errorf("%q of version %d = %q, %v, want %q", path, n, got, err, content)
		}
	}
}

// wantValid checks the object as a whole, without any fault or warning.
func wantValid(t *testing.T, root *ocfl.Root, id string) {
	t.Helper()
	report, err := root.Verify(t.Context(), id, ocfl.ValidateOptions{})
	if err != nil || len(report.Faults) > 0 {
		t.Errorf("verify = %+v, %v, want no fault", report, err)
	}
}

func TestCommitAndRead(t *testing.T) {
	root, inv := smallObject(t)
	wantValid(t, root, inv.ID)
	wantFiles(t, root, inv.ID, 1, map[string]string{"producer/a": "a", "producer/b": "b"})
	wantFiles(t, root, inv.ID, 2, map[string]string{"producer/a": "a", "producer/b": "b", "producer/c": "c"})
	in, err := root.OpenFile(t.Context(), inv.ID, 0, "producer/c")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(in)
	_ = in.Close()
	if string(got) != "c" || err != nil {
		t.Errorf("producer/c = %q, %v", got, err)
	}
	for _, missing := range []error{
		errOf(root.OpenFile(t.Context(), inv.ID, 1, "producer/c")),
		errOf(root.OpenFile(t.Context(), inv.ID, 3, "producer/c")),
		errOf(root.Inventory(t.Context(), inv.ID, -1)),
		errOf(root.Head(t.Context(), "ark:/99999/other")),
		errOf(root.Verify(t.Context(), "ark:/99999/other", ocfl.ValidateOptions{})),
	} {
		if !errors.Is(missing, ocfl.ErrNotFound) {
			t.Errorf("err = %v, want ErrNotFound", missing)
		}
	}
	var found []string
	for object, err := range root.Objects(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprint(object.ID, " ", object.Head, " ", object.Spec))
	}
	if len(found) != 1 || found[0] != "ark:/99999/fk4 2 1.1" {
		t.Errorf("objects = %q", found)
	}
	if err := root.Remove(t.Context(), inv.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Head(t.Context(), inv.ID); !errors.Is(err, ocfl.ErrNotFound) {
		t.Errorf("after removal: err = %v, want ErrNotFound", err)
	}
	if err := root.Remove(t.Context(), inv.ID); err != nil {
		t.Errorf("second removal: %v", err)
	}
}

func errOf[T any](_ T, err error) error { return err }

// TestR02_CrashPoints kills the commit of a second version before and after every storage
// operation. Until the commit point the first version can be read unchanged. Running Commit again
// always ends in the same valid object.
func TestR02_CrashPoints(t *testing.T) {
	stageStore := newStore(t)
	stage := staging{stageStore}
	firstFiles := map[string]string{"producer/a": "a", "producer/d/b": "b"}
	secondFiles := map[string]string{"producer/a": "new a", "producer/d/b": "b", "producer/e": "e"}
	one, _ := plan(t, newObject(t, "ark:/99999/crash"), ocfl.Change{Message: "1", User: &user, Files: ocfl.Files([]ocfl.File{
		stage.file(t, "producer/a", "a"), stage.file(t, "producer/d/b", "b"),
	})})
	two, _ := plan(t, one, ocfl.Change{Message: "2", User: &user, Files: ocfl.Files([]ocfl.File{
		stage.file(t, "producer/a", "new a"), stage.file(t, "producer/e", "e"),
	})})
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			inner := newStore(t)
			faulty := storagetest.NewFaulty(inner)
			root := newRoot(t, faulty)
			commit(t, root, one, stage)
			calls := faulty.Count(storagetest.Any)
			if after {
				faulty.DieAfter(n)
			} else {
				faulty.DieAt(n)
			}
			err := root.Commit(t.Context(), two, stage.source, ocfl.CommitOptions{Workers: 1})
			used := faulty.Count(storagetest.Any) - calls
			faulty.Heal()
			if err == nil {
				if used >= n && !after {
					t.Errorf("operation %d failed and Commit says nothing", n)
				}
				if used < n {
					if n < 12 {
						t.Errorf("a commit has %d operations, want more", used)
					}
					break
				}
			}
			head, err := root.Head(t.Context(), one.ID)
			if err != nil {
				t.Fatalf("head after a kill at operation %d (after=%v): %v", n, after, err)
			}
			wantFiles(t, root, one.ID, 1, firstFiles)
			if head.Head == 2 {
				wantFiles(t, root, one.ID, 2, secondFiles)
			}
			for range 2 {
				if err := root.Commit(t.Context(), two, stage.source, ocfl.CommitOptions{}); err != nil {
					t.Fatalf("commit after a kill at operation %d (after=%v): %v", n, after, err)
				}
			}
			wantValid(t, root, one.ID)
			wantFiles(t, root, one.ID, 2, secondFiles)
			wantFiles(t, root, one.ID, 1, firstFiles)
			if t.Failed() {
				t.Fatalf("after a kill at operation %d (after=%v)", n, after)
			}
		}
	}
}

// TestR02_ConfirmHealsRoot checks that Confirm writes the root's inventory from the version's when
// a worker died after the commit point.
func TestR02_ConfirmHealsRoot(t *testing.T) {
	stage := staging{newStore(t)}
	faulty := storagetest.NewFaulty(newStore(t))
	root := newRoot(t, faulty)
	one, _ := plan(t, newObject(t, "ark:/99999/heal"), ocfl.Change{User: &user, Message: "1", Files: ocfl.Files([]ocfl.File{stage.file(t, "a", "a")})})
	commit(t, root, one, stage)
	two, _ := plan(t, one, ocfl.Change{User: &user, Message: "2", Files: ocfl.Files([]ocfl.File{stage.file(t, "b", "b")})})
	faulty.Fail(storagetest.Replace, 1, nil)
	if err := root.Commit(t.Context(), two, stage.source, ocfl.CommitOptions{}); err == nil {
		t.Fatal("commit succeeded without a root inventory")
	}
	newest := newestInventory(t, two)
	for _, want := range []bool{true, false} {
		if changed, err := root.Confirm(t.Context(), newest, 0); changed != want || err != nil {
			t.Errorf("confirm = %v, %v, want %v", changed, err, want)
		}
	}
	wantValid(t, root, one.ID)
	wantFiles(t, root, one.ID, 0, map[string]string{"a": "a", "b": "b"})

	// One that was thought dead finishes the first version now: the root must not go back.
	commit(t, root, one, stage)
	wantValid(t, root, one.ID)
	wantFiles(t, root, one.ID, 0, map[string]string{"a": "a", "b": "b"})

	base, _ := root.ObjectKey(one.ID)
	for _, damage := range []string{"/inventory.json", "/inventory.json.sha512"} {
		if err := root.Store().Replace(t.Context(), base+damage, []byte("{")); err != nil {
			t.Fatal(err)
		}
		if changed, err := root.Confirm(t.Context(), newest, 0); !changed || err != nil {
			t.Errorf("confirm after damage of %s = %v, %v", damage, changed, err)
		}
		wantValid(t, root, one.ID)
	}
}

// halting is a store whose first Replace of a key stands still while others act.
type halting struct {
	storage.Store
	at     string
	others func()
}

func (h *halting) Replace(ctx context.Context, key string, data []byte) error {
	if others := h.others; others != nil && key == h.at {
		h.others = nil
		others()
	}
	return h.Store.Replace(ctx, key, data)
}

// TestR02_LateRoot checks that a process that stood still before it set the root, until later
// versions were committed, does not leave the root at its own version.
func TestR02_LateRoot(t *testing.T) {
	stage := staging{newStore(t)}
	store := &halting{Store: storagetest.NewMemory()}
	root := newRoot(t, store)
	versions := []*ocfl.Inventory{newObject(t, "ark:/99999/late")}
	for _, name := range []string{"a", "b", "c"} {
		inv, _ := plan(t, versions[len(versions)-1], ocfl.Change{User: &user, Message: name, Files: ocfl.Files([]ocfl.File{stage.file(t, name, name)})})
		versions = append(versions, inv)
	}
	base, _ := root.ObjectKey(versions[0].ID)
	store.at, store.others = base+"/inventory.json", func() {
		for _, inv := range versions[1:] {
			commit(t, root, inv, stage)
		}
	}
	commit(t, root, versions[1], stage)
	wantValid(t, root, versions[0].ID)
	wantFiles(t, root, versions[0].ID, 0, map[string]string{"a": "a", "b": "b", "c": "c"})
}

// newestInventory returns the inventory of the newest version as a stored file.
func newestInventory(t *testing.T, inv *ocfl.Inventory) ocfl.Stored {
	t.Helper()
	digest := sha512.New()
	if err := inv.Encode(digest); err != nil {
		t.Fatal(err)
	}
	return ocfl.Stored{
		ID: inv.ID, Path: inv.VersionName(inv.Head()) + "/inventory.json",
		Algorithm: ocfl.SHA512, Digest: hex.EncodeToString(digest.Sum(nil)),
	}
}

// TestAnotherVersionIsRefused checks that a committed version is kept: only the same plan may be
// committed again.
func TestAnotherVersionIsRefused(t *testing.T) {
	stage := staging{newStore(t)}
	root := newRoot(t, newStore(t))
	base := newObject(t, "ark:/99999/race")
	one, _ := plan(t, base, ocfl.Change{User: &user, Message: "1", Files: ocfl.Files([]ocfl.File{stage.file(t, "a", "a")})})
	other, _ := plan(t, base, ocfl.Change{User: &user, Message: "other", Files: ocfl.Files([]ocfl.File{stage.file(t, "b", "b")})})
	commit(t, root, one, stage)
	commit(t, root, one, stage)
	if err := root.Commit(t.Context(), other, stage.source, ocfl.CommitOptions{}); !errors.Is(err, ocfl.ErrVersionExists) {
		t.Errorf("commit of another version 1: err = %v, want ErrVersionExists", err)
	}
	two, _ := plan(t, one, ocfl.Change{User: &user, Message: "2", Files: ocfl.Files([]ocfl.File{stage.file(t, "c", "c")})})
	three, _ := plan(t, two, ocfl.Change{User: &user, Message: "3", Files: ocfl.Files([]ocfl.File{stage.file(t, "d", "d")})})
	if err := root.Commit(t.Context(), three, stage.source, ocfl.CommitOptions{}); !errors.Is(err, ocfl.ErrNoPredecessor) {
		t.Errorf("commit of version 3 after 1: err = %v, want ErrNoPredecessor", err)
	}
	wantValid(t, root, one.ID)
	wantFiles(t, root, one.ID, 0, map[string]string{"a": "a"})
	for inv, want := range map[*ocfl.Inventory]bool{one: true, other: false} {
		if got, err := root.Shows(t.Context(), one.ID, 1, inv.Algorithm, inventoryDigest(t, inv)); got != want || err != nil {
			t.Errorf("shows=%t, %v, want %t", got, err, want)
		}
	}
	if err := abandon(t, root, one); !errors.Is(err, ocfl.ErrComplete) {
		t.Errorf("abandon what is complete: %v", err)
	}
	var foreign *ocfl.ForeignError
	if err := abandon(t, root, other); !errors.As(err, &foreign) || !slices.Contains(foreign.Files, "inventory.json") {
		t.Errorf("abandon beside another inventory: %v", err)
	}
	wantValid(t, root, one.ID) // nothing of a committed version is touched
}

// TestWrongBytesAreNotCommitted checks that staged bytes with a wrong digest never become part of
// an object.
func TestWrongBytesAreNotCommitted(t *testing.T) {
	stage := staging{newStore(t)}
	root := newRoot(t, newStore(t))
	good := stage.file(t, "a", "a")
	inv, _ := plan(t, newObject(t, "ark:/99999/wrong"), ocfl.Change{User: &user, Message: "1", Files: ocfl.Files([]ocfl.File{good})})
	if _, err := storage.Put(t.Context(), stage.store, "rotten", []byte("x")); err != nil {
		t.Fatal(err)
	}
	rotten := func(ocfl.ContentFile) (storage.Store, string, error) { return stage.store, "rotten", nil }
	var digestErr *ocfl.DigestError
	for range 2 {
		err := root.Commit(t.Context(), inv, rotten, ocfl.CommitOptions{})
		if !errors.As(err, &digestErr) || digestErr.Existing {
			t.Errorf("commit of wrong bytes: err = %v, want a DigestError", err)
		}
		if _, err := root.Head(t.Context(), inv.ID); !errors.Is(err, ocfl.ErrNotFound) {
			t.Errorf("head: err = %v, want ErrNotFound", err)
		}
	}
	base, _ := root.ObjectKey(inv.ID)
	if _, err := storage.Put(t.Context(), root.Store(), base+"/v1/content/a", []byte("y")); err != nil {
		t.Fatal(err)
	}
	err := root.Commit(t.Context(), inv, stage.source, ocfl.CommitOptions{})
	if !errors.As(err, &digestErr) || !digestErr.Existing {
		t.Errorf("commit over wrong bytes: err = %v, want a DigestError of an existing file", err)
	}
	var foreign *ocfl.ForeignError
	if err := abandon(t, root, inv); !errors.As(err, &foreign) || !slices.Equal(foreign.Files, []string{"content/a"}) {
		t.Fatalf("abandon with bytes that are not ours: %v", err)
	}
	if err := root.Store().Delete(t.Context(), base+"/v1/content/a"); err != nil {
		t.Fatal(err)
	}
	commit(t, root, inv, stage)
	wantValid(t, root, inv.ID)
}

// TestAbandon interrupts Commit and then Abandon at every operation. Abandon removes exactly what
// was written of the version, and another version can take its place.
func TestAbandon(t *testing.T) {
	stage := staging{newStore(t)}
	files := []ocfl.File{stage.file(t, "a", "a"), stage.file(t, "b", "b")}
	inv, _ := plan(t, newObject(t, "ark:/99999/abandoned"), ocfl.Change{User: &user, Message: "1", Files: ocfl.Files(files)})
	next, _ := plan(t, newObject(t, inv.ID), ocfl.Change{User: &user, Message: "another", Files: ocfl.Files(files[:1])})
	for n := 1; ; n++ {
		faulty := storagetest.NewFaulty(storagetest.NewMemory())
		root := newRoot(t, faulty)
		base, _ := root.ObjectKey(inv.ID)
		faulty.DieAt(n)
		err := root.Commit(t.Context(), inv, stage.source, ocfl.CommitOptions{Workers: 1})
		faulty.Heal()
		shown, errShows := root.Shows(t.Context(), inv.ID, 1, inv.Algorithm, inventoryDigest(t, inv))
		if errShows != nil {
			t.Fatal(errShows)
		}
		if err == nil || shown {
			if n < 5 {
				t.Fatalf("committed after %d operations", n)
			}
			break
		}
		for k := 1; ; k++ {
			faulty.DieAt(k)
			err := abandon(t, root, inv)
			faulty.Heal()
			if err == nil {
				break
			}
		}
		for info, err := range root.Store().List(t.Context(), base) {
			t.Errorf("cut off at %d: %s, %v is left", n, info.Key, err)
		}
		commit(t, root, next, stage)
		wantValid(t, root, inv.ID)
	}
}

// TestLateFilesAreNotCommitted checks that files that a worker thought dead writes for an abandoned
// version are no part of the next one.
func TestLateFilesAreNotCommitted(t *testing.T) {
	stage := staging{newStore(t)}
	root := newRoot(t, newStore(t))
	inv, _ := plan(t, newObject(t, "ark:/99999/late"), ocfl.Change{User: &user, Message: "1", Files: ocfl.Files([]ocfl.File{stage.file(t, "a", "a")})})
	base, _ := root.ObjectKey(inv.ID)
	if _, err := storage.Put(t.Context(), root.Store(), base+"/v1/content/old", []byte("y")); err != nil {
		t.Fatal(err)
	}
	var foreign *ocfl.ForeignError
	if err := root.Commit(t.Context(), inv, stage.source, ocfl.CommitOptions{}); !errors.As(err, &foreign) || !slices.Equal(foreign.Files, []string{"content/old"}) {
		t.Fatalf("commit beside a late file: %v", err)
	}
	if err := root.Store().Delete(t.Context(), base+"/v1/content/old"); err != nil {
		t.Fatal(err)
	}
	commit(t, root, inv, stage)
	wantValid(t, root, inv.ID)
}

// arriving is a store into which somebody writes just before it is asked something.
type arriving struct {
	storage.Store
	write func() // once
}

func (a *arriving) Delete(ctx context.Context, key string) error {
	if write := a.write; write != nil {
		a.write = nil
		write()
	}
	return a.Store.Delete(ctx, key)
}

// TestAbandon_WhatComesMeanwhile checks that files written while a version is being removed are
// kept, whether they are foreign or the version's own inventory, and that the version is then
// reported neither as removed nor as complete.
func TestAbandon_WhatComesMeanwhile(t *testing.T) {
	for _, late := range []string{"foreign", "inventory.json", "inventory.json.bak"} {
		t.Run(late, func(t *testing.T) {
			stage := staging{newStore(t)}
			store := &arriving{Store: storagetest.NewMemory()}
			root := newRoot(t, store)
			inv, _ := plan(t, newObject(t, "ark:/99999/late"), ocfl.Change{User: &user, Message: "1", Files: ocfl.Files([]ocfl.File{stage.file(t, "a", "a")})})
			base, _ := root.ObjectKey(inv.ID)
			commit(t, root, inv, stage)
			for _, own := range []string{"v1/inventory.json", "v1/inventory.json.sha512", "inventory.json", "inventory.json.sha512"} {
				must(t, store.Store.Delete(t.Context(), base+"/"+own))
			}
			key := base + "/v1/" + late
			store.write = func() {
				var text bytes.Buffer
				must(t, inv.Encode(&text))
				_, err := storage.Put(t.Context(), store, key, text.Bytes())
				must(t, err)
			}
			var foreign *ocfl.ForeignError
			if err := abandon(t, root, inv); err == nil || !strings.Contains(err.Error(), "was written while") {
				t.Errorf("what came meanwhile: %v", err)
			}
			if err := abandon(t, root, inv); !errors.As(err, &foreign) || !slices.Equal(foreign.Files, []string{late}) {
				t.Errorf("what is there now: %v", err)
			}
			if _, err := store.Stat(t.Context(), key); err != nil {
				t.Errorf("%s: %v", late, err)
			}
			if late == "inventory.json.bak" {
				if err := root.Commit(t.Context(), inv, stage.source, ocfl.CommitOptions{}); !errors.As(err, &foreign) {
					t.Errorf("commit beside it: %v", err)
				}
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// abandon abandons version 1 as inv has announced it.
func abandon(t *testing.T, root *ocfl.Root, inv *ocfl.Inventory) error {
	t.Helper()
	return root.Abandon(t.Context(), inv.ID, 1, inv.Algorithm, inventoryDigest(t, inv), inv.Addition())
}

// inventoryDigest is that of an inventory as it is written.
func inventoryDigest(t *testing.T, inv *ocfl.Inventory) string {
	t.Helper()
	var text bytes.Buffer
	if err := inv.Encode(&text); err != nil {
		t.Fatal(err)
	}
	return digestOf(inv.Algorithm, text.String())
}

// TestFullDisk checks that a commit that runs out of space at any byte can be continued when there
// is space.
func TestFullDisk(t *testing.T) {
	stage := staging{newStore(t)}
	inv, _ := plan(t, newObject(t, "ark:/99999/full"), ocfl.Change{User: &user, Message: "1", Files: ocfl.Files([]ocfl.File{
		stage.file(t, "a", "aaaaaaaaaa"), stage.file(t, "b", "bbbbbbbbbb"),
	})})
	for quota := int64(0); ; quota += 97 {
		faulty := storagetest.NewFaulty(newStore(t))
		root := newRoot(t, faulty)
		faulty.Quota(quota)
		err := root.Commit(t.Context(), inv, stage.source, ocfl.CommitOptions{Workers: 1})
		if err == nil {
			break
		}
		if !errors.Is(err, storage.ErrNoSpace) {
			t.Fatalf("with %d bytes: err = %v, want ErrNoSpace", quota, err)
		}
		faulty.Heal()
		commit(t, root, inv, stage)
		wantValid(t, root, inv.ID)
	}
}

func TestProgress(t *testing.T) {
	stage := staging{newStore(t)}
	root := newRoot(t, newStore(t))
	var files []ocfl.File
	for i := range 20 {
		files = append(files, stage.file(t, fmt.Sprintf("f%02d", i), fmt.Sprint("content ", i)))
	}
	inv, planned := plan(t, newObject(t, "ark:/99999/progress"), ocfl.Change{User: &user, Message: "1", Files: ocfl.Files(files)})
	var last ocfl.Progress
	calls := 0
	err := root.Commit(t.Context(), inv, stage.source, ocfl.CommitOptions{Progress: func(p ocfl.Progress) {
		if p.Files != last.Files+1 || p.Bytes <= last.Bytes {
			t.Errorf("progress %+v after %+v", p, last)
		}
		last = p
		calls++
	}})
	if err != nil || calls != len(planned) || last.Files != last.TotalFiles {
		t.Errorf("commit = %v with %d calls, the last %+v, want %d", err, calls, last, len(planned))
	}
}

func TestEncodeIsStable(t *testing.T) {
	_, inv := smallObject(t)
	var first, second bytes.Buffer
	if err := inv.Encode(&first); err != nil {
		t.Fatal(err)
	}
	if err := inv.Encode(&second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two encodings differ")
	}
}
