package interim_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/interim/sqlstore"
)

// A second attempt adopts the checkpoint of the first and continues there.
func Example() {
	folder, err := os.MkdirTemp("", "interim")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	ctx := context.Background()
	s, err := sqlstore.Open(ctx, filepath.Join(folder, "interim.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	first, second := interim.Attempt{ItemID: "item-1", N: 1}, interim.Attempt{ItemID: "item-1", N: 2}
	if err := s.Put(ctx, first, map[string][]byte{"files/1": []byte("4096 bytes")}); err != nil {
		fmt.Println(err)
		return
	}
	from, err := s.Adopt(ctx, second)
	fmt.Println("adopted from", from, err)
	value, err := s.Get(ctx, second, "files/1")
	fmt.Println(string(value), err)
	// Output:
	// adopted from 1 <nil>
	// 4096 bytes <nil>
}
