package unpack_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/source/unpack"
)

// Walk delivers only regular files with safe names, and reports all bad entries at once.
func ExampleWalk() {
	var container bytes.Buffer
	z := zip.NewWriter(&container)
	for _, name := range []string{"maps/north.txt", "../outside.txt"} {
		w, err := z.Create(name)
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(w, "here be dragons")
	}
	if err := z.Close(); err != nil {
		panic(err)
	}

	in := unpack.FromReaderAt(bytes.NewReader(container.Bytes()), int64(container.Len()))
	err := unpack.Walk(context.Background(), in, unpack.Limits{}, func(e unpack.Entry, content io.Reader) error {
		fmt.Println(e.Name, e.Size)
		_, err := io.Copy(io.Discard, content)
		return err
	})
	var refused *unpack.Error
	if errors.As(err, &refused) {
		fmt.Println("refused:", refused.Entry, refused.Fault)
	}
	// Output: refused: ../outside.txt name
}
