package staging_test

import (
	"context"
	"fmt"
	"os"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage/dir"
)

// A list is written under a key of the attempt and read back by its digest.
func Example() {
	folder, err := os.MkdirTemp("", "staging")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	s, err := dir.Open(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	ctx := context.Background()

	key := staging.Key(registry.Lease{ItemID: "item-1", N: 3}, "files.jsonl")
	list, err := staging.CreateList[staging.File](ctx, s, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer list.Close()
	for i, name := range []string{"a.txt", "b.txt"} {
		if err := list.Add(staging.File{Seq: int64(i + 1), Name: name}); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := list.Commit(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(key)
	for f, err := range staging.ReadList[staging.File](ctx, s, list.List()) {
		fmt.Println(f.Seq, f.Name, err)
	}
	// Output:
	// items/item-1/3.files.jsonl
	// 1 a.txt <nil>
	// 2 b.txt <nil>
}
