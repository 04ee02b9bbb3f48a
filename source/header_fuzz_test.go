package source_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/source"
)

// FuzzContentRange checks that a Content-Range is either refused or names bytes that can lie in a
// file.
func FuzzContentRange(f *testing.F) {
	for _, header := range []string{"", "bytes 0-9/10", "bytes */10", "bytes 5-9/*", "BYTES  1-1/2 ", "bytes 9-5/10", "bytes 0-99/10", "bytes -1-5/10", "bytes 0-9223372036854775807/*", "items 0-1/2"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		start, end, total, ok := source.ContentRange(header)
		if !ok {
			return
		}
		none := start == -1 && end == -1
		if !none && (start < 0 || end < start) || total < -1 || total >= 0 && end >= total {
			t.Errorf("%q is taken for %d-%d/%d", header, start, end, total)
		}
		if again := fmt.Sprintf("bytes %d-%d/%d", start, end, total); !none && total >= 0 {
			if s, e, n, ok := source.ContentRange(again); !ok || s != start || e != end || n != total {
				t.Errorf("%q, which %q says, is taken for %d-%d/%d", again, header, s, e, n)
			}
		}
	})
}

// FuzzContentDisposition checks that no name given by a server leads out of a folder.
func FuzzContentDisposition(f *testing.F) {
	for _, header := range []string{
		"", `attachment; filename="a.zip"`, `attachment; filename*=UTF-8''%2e%2e%2fa`, `attachment; filename="..\\..\\x"`, `attachment; filename="a/../.."`,
		`attachment; filename*0="a"; filename*1="/b"`, "attachment; filename=\"a\x00b\"", `inline; filename=".."`,
	} {
		f.Add(header, "https://h.test/folder/%2e%2e")
	}
	f.Fuzz(func(t *testing.T, header, address string) {
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		if name := source.Filename(header, u); name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
			t.Errorf("%q at %q is called %q", header, address, name)
		}
	})
}
