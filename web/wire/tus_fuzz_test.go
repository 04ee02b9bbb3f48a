package wire_test

import (
	"maps"
	"testing"

	"github.com/holdfast/holdfast/web/wire"
)

// FuzzMetadata checks that every Upload-Metadata is refused or survives encoding and decoding.
func FuzzMetadata(f *testing.F) {
	for _, text := range []string{
		"", "filename YS50eHQ=", "filename YS50eHQ=,digest bWQ1OjAw", "a,b", "a , b YQ==", "a YQ==,a YQ==", "\x00 YQ==", "filename  YQ==", "k YQ", ",",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := wire.DecodeMetadata(text)
		if err != nil {
			return
		}
		written := wire.EncodeMetadata(values)
		again, err := wire.DecodeMetadata(written)
		if err != nil || !maps.Equal(values, again) {
			t.Errorf("%q is read as %q, written as %q and read as %q (%v)", text, values, written, again, err)
		}
	})
}
