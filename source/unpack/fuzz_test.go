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

// fuzzLimits bound what comes out of fuzzed containers.
var fuzzLimits = unpack.Limits{Entries: 100, Bytes: 1 << 20, NameLength: 100, Window: 1 << 20}

// walkFuzzed walks whatever the bytes are: what comes out has safe names and stays within the
// limits, a walk without an error has kept its promises, and an error has its class.
func walkFuzzed(t *testing.T, data []byte) {
	t.Helper()
	seen := map[string]bool{}
	var total int64
	err := unpack.Walk(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), fuzzLimits, func(e unpack.Entry, r io.Reader) error {
		if e.Name != path.Clean(e.Name) || path.IsAbs(e.Name) || e.Name == "." || e.Name == ".." || strings.HasPrefix(e.Name, "../") ||
			strings.Contains(e.Name, "\x00") || !utf8.ValidString(e.Name) || len(e.Name) > fuzzLimits.NameLength || seen[e.Name] {
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
	if total > fuzzLimits.Bytes || int64(len(seen)) > fuzzLimits.Entries {
		t.Errorf("%d bytes in %d files came out", total, len(seen))
	}
	var e *unpack.Error
	if err != nil && (!errors.As(err, &e) || !e.ContentFault()) {
		t.Errorf("error %v (%T), want a fault of the container", err, err)
	}
	if err == nil && unpack.Detect(data) == "" {
		t.Error("what was walked is not taken for a container")
	}
}

var fuzzFiles = []file{{"a/", ""}, {"a/b", "hello"}, {"c", "world"}}

// FuzzWalk walks arbitrary bytes.
func FuzzWalk(f *testing.F) {
	for _, data := range containersOf(f, fuzzFiles) {
		f.Add(data)
	}
	f.Add(helloBz2(f))
	f.Fuzz(walkFuzzed)
}

// FuzzZip walks arbitrary bytes that begin like a zip.
func FuzzZip(f *testing.F) {
	f.Add(zipOf(f, fuzzFiles, nil))
	f.Add(rawZip(f, fuzzFiles[1:], nil))
	f.Add(unbase64(f, zip64Zip))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		if !bytes.HasPrefix(data, []byte("PK\x05\x06")) {
			copy(data, "PK\x03\x04")
		}
		walkFuzzed(t, data)
	})
}

// FuzzTar walks arbitrary bytes with corrected header checksums, as a hostile tar would have.
func FuzzTar(f *testing.F) {
	f.Add(tarOf(f, fuzzFiles, nil))
	for _, packed := range sparseTars {
		f.Add(gunzip(f, unbase64(f, packed))[:4096])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		for at := 0; at+512 <= len(data); at += 512 {
			if at == 0 || bytes.HasPrefix(data[at+257:], []byte("ustar")) {
				fixTarChecksum(data[at:])
			}
		}
		walkFuzzed(t, data)
	})
}

// FuzzCompressed walks arbitrary bytes with the first bytes replaced by those of each compression.
func FuzzCompressed(f *testing.F) {
	tarred := tarOf(f, fuzzFiles, nil)
	magics := [][]byte{helloBz2(f)[:4]}
	f.Add(helloBz2(f))
	for _, compress := range compressions {
		data := compress(f, tarred)
		f.Add(data)
		magics = append(magics, data[:6])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		walkFuzzed(t, data)
		for _, magic := range magics {
			changed := bytes.Clone(data)
			copy(changed, magic)
			walkFuzzed(t, changed)
		}
	})
}
