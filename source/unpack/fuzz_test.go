package unpack_test

import (
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast/holdfast/source/unpack"
)

// FuzzWalk: whatever the bytes, what comes out has safe names, stays within the limits, and an error has its class.
func FuzzWalk(f *testing.F) {
	files := []file{{"a/", ""}, {"a/b", "hello"}, {"c", "world"}}
	f.Add(zipOf(f, files, nil))
	f.Add(tarOf(f, files, nil))
	f.Add(gzipOf(f, tarOf(f, files, nil)))
	f.Add(helloBz2(f))
	limits := unpack.Limits{Entries: 100, Bytes: 1 << 20, NameLength: 100}
	f.Fuzz(func(t *testing.T, data []byte) {
		seen := map[string]bool{}
		var total int64
		err := unpack.Walk(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), limits, func(e unpack.Entry, r io.Reader) error {
			if e.Name != path.Clean(e.Name) || path.IsAbs(e.Name) || e.Name == "." || e.Name == ".." || strings.HasPrefix(e.Name, "../") ||
				strings.Contains(e.Name, "\x00") || !utf8.ValidString(e.Name) || len(e.Name) > limits.NameLength || seen[e.Name] {
				t.Errorf("name %q came out", e.Name)
			}
			seen[e.Name] = true
			n, err := io.Copy(io.Discard, r)
			total += n
			if err == nil && n != e.Size {
				t.Errorf("%q: %d bytes of %d without an error", e.Name, n, e.Size)
			}
			return err
		})
		if total > limits.Bytes || int64(len(seen)) > limits.Entries {
			t.Errorf("%d bytes in %d files came out", total, len(seen))
		}
		var e *unpack.Error
		if err != nil && (!errors.As(err, &e) || !e.ContentFault()) {
			t.Errorf("error %v (%T), want a fault of the container", err, err)
		}
	})
}
