package ocfl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// TestObjectsInABucket checks that versions are committed once, verified and healed in S3 as in a
// directory, and that content staged in the same bucket is copied within the service.
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
	if changed, err := root.Confirm(t.Context(), newestInventory(t, two), 0); !changed || err != nil {
		t.Errorf("confirm = %t, %v, want a change", changed, err)
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

// TestS3Root_ValidForEveryName checks that a root in a bucket is valid OCFL for another program
// whatever its objects are called, and that objects named by earlier versions of Holdfast can still
// be read here.
func TestS3Root_ValidForEveryName(t *testing.T) {
	s3test.Setenv(t)
	server := s3test.Start(t)
	store := bucket(t, server, "objects", s3.Open)
	stage := staging{newStore(t)}
	root := newRoot(t, store)
	want := map[string]string{}
	var files []ocfl.File
	for i, name := range []string{
		"a\nb", "a%0Ab", "tab\there", "\x01\x1f", "del\x7f", "c1\u0085", "\ufffe", "\uffff", "f\n/g", "f%0A/g", "__encoded-names/a%0Ab", "\r", strings.Repeat("\n", 100),
		"50%25 off", "plain", "ü", " ",
	} {
		name = "producer/" + name
		if strings.Contains(name, "__encoded") {
			name = strings.TrimPrefix(name, "producer/")
		}
		want[name] = fmt.Sprintf("content %d", i)
		files = append(files, stage.file(t, name, want[name]))
	}
	inv, _ := plan(t, newObject(t, "ark:/99999/fk4"), ocfl.Change{Message: "one", User: &user, Files: ocfl.Files(files)})
	commit(t, root, inv, stage)
	wantFiles(t, root, inv.ID, 1, want)
	wantValid(t, root, inv.ID)
	found := bucket(t, server, "objects", s3.OpenAsFound)
	report, err := ocfl.ValidateRoot(t.Context(), found, "", ocfl.ValidateOptions{}, anyReport)
	if err != nil || !report.Valid() || report.Objects != 1 || report.Files != len(want) {
		t.Errorf("as found: %+v, %v", report, err)
	}
	for info, err := range found.List(t.Context(), "extensions/holdfast-names/") {
		t.Errorf("outside of its object: %s %v", info.Key, err)
	}

	old, _ := plan(t, newObject(t, "ark:/99999/old"), ocfl.Change{Message: "one", User: &user, Files: ocfl.Files([]ocfl.File{stage.file(t, "producer/a\nb", "old")})})
	old.Manifest[0].Paths[0] = "v1/content/producer/a\nb" // where earlier versions stored it
	commit(t, root, old, stage)
	wantFiles(t, root, old.ID, 1, map[string]string{"producer/a\nb": "old"})
	wantValid(t, root, old.ID)
	if report, err = ocfl.ValidateRoot(t.Context(), found, "", ocfl.ValidateOptions{}, anyReport); err != nil || report.Valid() || report.Invalid != 1 {
		t.Errorf("an object with a file outside of it, as found: %+v, %v", report, err)
	}
}

func anyReport(string, *ocfl.Report) error { return nil }

func bucket(t *testing.T, server *s3test.Server, prefix string, open func(context.Context, string) (*s3.Store, error)) *s3.Store {
	t.Helper()
	s, err := open(t.Context(), server.Address(prefix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
