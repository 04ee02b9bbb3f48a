package ocfl_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// A version is planned first, which touches nothing, and then committed, which may be repeated
// after any crash.
func ExampleRoot_Commit() {
	ctx := context.Background()
	content := "a letter"
	staged := storagetest.NewMemory()
	if _, err := storage.Put(ctx, staged, "upload", []byte(content)); err != nil {
		panic(err)
	}

	root, err := ocfl.OpenRoot(ctx, storagetest.NewMemory(), "", nil)
	if err != nil {
		panic(err)
	}
	empty, err := ocfl.New("ark:/99999/fk4x2y", ocfl.SHA512)
	if err != nil {
		panic(err)
	}
	planned, _, err := ocfl.NewVersion(empty, ocfl.Change{
		Files: ocfl.Files([]ocfl.File{
			{Path: "producer/letter.txt", Digest: digestOf("sha512", content)},
		}),
		Message: "first deposit", User: &ocfl.User{Name: "Holdfast", Address: "https://example.org/holdfast"},
		Created: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC),
	})
	if err != nil {
		panic(err)
	}
	from := func(ocfl.ContentFile) (storage.Store, string, error) { return staged, "upload", nil }
	if err := root.Commit(ctx, planned, from, ocfl.CommitOptions{}); err != nil {
		panic(err)
	}

	object, err := root.Head(ctx, "ark:/99999/fk4x2y")
	if err != nil {
		panic(err)
	}
	report, err := root.Verify(ctx, object.ID, ocfl.ValidateOptions{})
	if err != nil {
		panic(err)
	}
	fmt.Println("version", object.Head, "of OCFL", object.Spec, "with", len(report.Faults), "faults")
	// Output: version 1 of OCFL 1.1 with 0 faults
}
