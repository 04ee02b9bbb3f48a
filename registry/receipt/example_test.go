package receipt_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry/receipt"
)

// Only the first line of a receipt is signed. It has the digest of the lines below it, so that
// changing one of them shows.
func Example() {
	key, err := receipt.ParseKey(receipt.NewKey())
	if err != nil {
		panic(err)
	}
	var files receipt.Manifest
	lines := files.Add(receipt.File{Path: "producer/letter.txt", Size: 8, Digests: map[string]string{"md5": "5d41402abc4b2a76b9719d911017c592"}})
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	head, signature := key.Sign(receipt.Header{
		Object: "ark:/99999/fk4x2y", Version: 1, Created: at, Recorded: at,
		Files: files.Files, Bytes: files.Bytes, Manifest: files.Digest(),
		Events: receipt.Span{First: 1, Before: receipt.Zero, After: receipt.Zero},
	})
	text := append(receipt.Head(head, signature), lines...)

	trusted := receipt.Options{Keys: []receipt.PublicKey{key.Public()}}
	for _, text := range [][]byte{text, bytes.Replace(text, []byte("letter"), []byte("better"), 1)} {
		result, err := receipt.Verify(bytes.NewReader(text), trusted)
		if err != nil {
			panic(err)
		}
		fmt.Println("trusted:", result.Trusted, "valid:", result.Valid())
	}
	// Output:
	// trusted: true valid: true
	// trusted: true valid: false
}
