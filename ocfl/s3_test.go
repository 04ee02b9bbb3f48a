package ocfl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// TestObjectsInABucket: versions are committed, taken once, verified and healed in S3 as they are in a directory, and the
// content that was staged beside them is copied inside the service.
func TestObjectsInABucket(t *testing.T) {
	s3test.Setenv(t)
	server := s3test.Start(t)
	open := func(prefix string) *s3.Store {
		s, err := s3.Open(t.Context(), server.Address(prefix))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	store, stage := open("objects"), staging{open("staging")}
	root := newRoot(t, store)
	large := strings.Repeat("0123456789abcdef", 9<<16)
	first := ocfl.Change{Message: "one", User: &user, Files: ocfl.Files([]ocfl.File{
		stage.file(t, "producer/large", large), stage.file(t, "producer/empty", ""), stage.file(t, "producer/こんにちは %00|.txt", "odd"),
	})}
	one, _ := plan(t, newObject(t, "ark:/99999/fk4"), first)
	commit(t, root, one, stage)
	commit(t, root, one, stage) // the same bytes again, as an attempt does whose predecessor died after the commit
	second := ocfl.Change{Message: "two", User: &user, Files: ocfl.Files([]ocfl.File{stage.file(t, "producer/c", "c")})}
	two, _ := plan(t, one, second)
	commit(t, root, two, stage)
	other, _ := plan(t, one, ocfl.Change{Message: "other", User: &user, Files: ocfl.Files([]ocfl.File{stage.file(t, "producer/d", "d")})})
	if err := root.Commit(t.Context(), other, stage.source, ocfl.CommitOptions{}); !errors.Is(err, ocfl.ErrVersionExists) {
		t.Errorf("another second version: err = %v, want ErrVersionExists", err)
	}

	base, err := root.ObjectKey(one.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Replace(t.Context(), base+"/inventory.json", []byte("torn")); err != nil {
		t.Fatal(err)
	}
	if changed, err := root.Heal(t.Context(), one.ID, 2); !changed || err != nil {
		t.Errorf("heal = %t, %v, want a change", changed, err)
	}
	wantValid(t, root, one.ID)
	want := map[string]string{"producer/large": large, "producer/empty": "", "producer/こんにちは %00|.txt": "odd"}
	wantFiles(t, root, one.ID, 1, want)
	want["producer/c"] = "c"
	wantFiles(t, root, one.ID, 2, want)

	for left, err := range store.Leftovers(t.Context(), "") {
		t.Errorf("%+v is left over (%v)", left, err)
	}
	if err := root.Remove(t.Context(), one.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Stat(t.Context(), base+"/inventory.json"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("after removal: err = %v, want ErrNotFound", err)
	}
}
