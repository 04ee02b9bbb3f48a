package fixity_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast/holdfast/fixity"
)

// Digests of one stream survive the process: its successor goes on from the saved state.
func ExampleDigester_Restore() {
	first, err := fixity.NewDigester("md5", "sha256")
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(first, strings.NewReader("preserved "))
	state, err := first.State()
	if err != nil {
		panic(err)
	}

	second, err := fixity.NewDigester("md5", "sha256")
	if err != nil {
		panic(err)
	}
	if !second.Restore(state) {
		panic("digest the bytes again from the start")
	}
	_, _ = io.Copy(second, strings.NewReader("bytes"))
	fmt.Println(second.Size(), "bytes, md5", second.Sums()["md5"])
	// Output: 15 bytes, md5 54bf5002b65354a52898720ec01de07a
}
