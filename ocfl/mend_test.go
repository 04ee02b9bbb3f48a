package ocfl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// TestMend repairs damaged and missing files of one storage from another, between folders and
// buckets, with large files in parts.
func TestMend(t *testing.T) {
	s3test.Setenv(t)
	server := s3test.Start(t)
	folder := func(t *testing.T, _ string) storage.Store {
		s, err := dir.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	bucket := func(t *testing.T, name string) storage.Store {
		s, err := s3.Open(t.Context(), server.Address(strings.ReplaceAll(t.Name(), "/", "-")+"-"+name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	for _, tt := range []struct {
		name     string
		from, to func(t *testing.T, name string) storage.Store
	}{
		{"folder from folder", folder, folder},
		{"folder from bucket", bucket, folder},
		{"bucket from folder", folder, bucket},
		{"bucket from bucket", bucket, bucket},
	} {
		t.Run(tt.name, func(t *testing.T) { mendAll(t, tt.from(t, "good"), tt.to(t, "bad")) })
	}
}

func mendAll(t *testing.T, goodStore, badStore storage.Store) {
	good, bad := newRoot(t, goodStore), newRoot(t, badStore)
	stage := staging{newStore(t)}
	inv, _ := plan(t, newObject(t, "ark:/99999/fk4"), ocfl.Change{Message: "one", User: &user, Files: ocfl.Files([]ocfl.File{
		stage.file(t, "producer/large", strings.Repeat("0123456789abcdef", 9<<16)), stage.file(t, "producer/empty", ""),
		stage.file(t, "producer/こんにちは %00|.txt", "odd"),
	})})
	commit(t, good, inv, stage)
	if err := bad.Replicate(t.Context(), good, inv.ID, 1, nil); err != nil {
		t.Fatal(err)
	}
	folder, err := bad.ObjectKey(inv.ID)
	if err != nil {
		t.Fatal(err)
	}
	inventory := ocfl.Stored{ID: inv.ID, Path: "v1/inventory.json"}
	if inventory.Algorithm, inventory.Digest, err = good.Sidecar(t.Context(), inv.ID, inventory.Path); err != nil {
		t.Fatal(err)
	}
	files := []ocfl.Stored{inventory}
	for _, f := range inv.ContentFiles() {
		files = append(files, ocfl.Stored{ID: inv.ID, Path: f.Path, Algorithm: inv.Algorithm, Digest: f.Digest})
	}
	examined := func(f ocfl.Stored, want ocfl.Condition) {
		t.Helper()
		if got, err := bad.Examine(t.Context(), f, nil); got != want || err != nil {
			t.Errorf("%s is %s, %v; want it %s", f.Path, got, err, want)
		}
	}
	for _, f := range files {
		key := folder + "/" + f.Path
		for want, harm := range map[ocfl.Condition]func() error{
			ocfl.Wrong: func() error { return badStore.Replace(t.Context(), key, []byte("not what was stored")) },
			ocfl.Gone:  func() error { return badStore.Delete(t.Context(), key) },
		} {
			if err := harm(); err != nil {
				t.Fatal(err)
			}
			examined(f, want)
			// What has no right bytes is no source: what is there stays as it is, for people to
			// look at.
			lie := f
			lie.Digest = strings.Repeat("0", len(f.Digest))
			if err := bad.Mend(t.Context(), lie, good, "test"); !errors.As(err, new(*ocfl.DigestError)) {
				t.Errorf("mend %s by other bytes: %v, want a *DigestError", f.Path, err)
			}
			examined(f, want)
			if err := bad.Mend(t.Context(), f, good, "test"); err != nil {
				t.Errorf("mend %s: %v", f.Path, err)
			}
			examined(f, ocfl.Right)
		}
	}
	for _, name := range []string{"0=ocfl_object_1.1", "inventory.json", "inventory.json.sha512", "v1/inventory.json.sha512"} {
		for _, harm := range []func() error{
			func() error { return badStore.Replace(t.Context(), folder+"/"+name, []byte("not what was stored")) },
			func() error { return badStore.Delete(t.Context(), folder+"/"+name) },
		} {
			if err := harm(); err != nil {
				t.Fatal(err)
			}
			for _, want := range []bool{true, false} {
				if changed, err := bad.Confirm(t.Context(), inventory, 0); changed != want || err != nil {
					t.Errorf("confirm %s: changed %v, %v; want %v", name, changed, err, want)
				}
			}
		}
	}
	same(t, good, bad, inv.ID)
	if has, err := ocfl.HasRoot(t.Context(), badStore, ""); !has || err != nil {
		t.Errorf("has a root: %v, %v", has, err)
	}
	for info, err := range badStore.List(t.Context(), "extensions/holdfast-mending/") {
		t.Errorf("left over: %+v, %v", info, err)
	}
	// A storage without a root is none that lost its files.
	if err := badStore.Delete(t.Context(), "0=ocfl_1.1"); err != nil {
		t.Fatal(err)
	}
	if err := badStore.Delete(t.Context(), folder+"/"+files[1].Path); err != nil {
		t.Fatal(err)
	}
	if got, err := bad.Examine(t.Context(), files[1], nil); err == nil {
		t.Errorf("without a root the file is %s, want an error", got)
	}
	if has, err := ocfl.HasRoot(t.Context(), badStore, ""); has || err != nil {
		t.Errorf("has a root: %v, %v", has, err)
	}
}
