package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// A writer dies after a checkpoint. Its successor resumes there under its own name, and makes the
// object visible in one step.
func ExampleStore_Resume() {
	ctx := context.Background()
	store := storagetest.NewMemory()
	first, err := store.Create(ctx, "items/1/1/letter")
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(first, "dear ")
	checkpoint, err := first.Checkpoint(ctx)
	if err != nil {
		panic(err)
	}
	_ = first.Close()

	second, err := store.Resume(ctx, "items/1/2/letter", checkpoint)
	if err != nil {
		panic(err)
	}
	defer second.Close()
	_, _ = io.WriteString(second, "reader")
	info, err := second.Commit(ctx)
	fmt.Println(info.Size, "bytes", err)
	_, err = store.Stat(ctx, "items/1/1/letter")
	fmt.Println(errors.Is(err, storage.ErrNotFound))
	// Output:
	// 11 bytes <nil>
	// true
}
