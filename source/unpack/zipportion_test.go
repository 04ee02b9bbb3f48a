package unpack_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/holdfast/holdfast/source/unpack"
)

// manyInZip is a zip of which the directory is so large that it is read in portions.
func manyInZip(t *testing.T, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := range n {
		w, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("folder/with a name of some length/%06d.txt", i), Method: zip.Deflate, Comment: "why not"})
		if err == nil {
			_, err = fmt.Fprintf(w, "content %d", i)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestWalk_DirectoryInPortions checks that a directory read in portions gives every file once, in
// order and with its content, and that damage anywhere in it is found.
func TestWalk_DirectoryInPortions(t *testing.T) {
	t.Parallel()
	const n = 7000
	data := manyInZip(t, n)
	seen := 0
	walk := func(data []byte) error {
		seen = 0
		return unpack.Walk(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), unpack.Limits{}, func(e unpack.Entry, r io.Reader) error {
			text, err := io.ReadAll(r)
			if want := fmt.Sprintf("content %d", seen); err == nil && (string(text) != want || e.Name != fmt.Sprintf("folder/with a name of some length/%06d.txt", seen)) {
				t.Fatalf("file %d: %s %q, want %q", seen, e.Name, text, want)
			}
			seen++
			return err
		})
	}
	if err := walk(data); err != nil || seen != n {
		t.Fatalf("%d files, %v; want %d", seen, err, n)
	}
	end := bytes.LastIndex(data, []byte("PK\x05\x06"))
	start := int(binary.LittleEndian.Uint32(data[end+16:]))
	if size := end - start; size < 512<<10 {
		t.Fatalf("the directory has %d bytes, which is no more than one portion", size)
	}
	line := bytes.Index(data[start+300<<10:], []byte("PK\x01\x02")) + start + 300<<10
	for name, change := range map[string]func(b []byte){
		"a line without its signature": func(b []byte) { b[line] = 'X' },
		"a length that leads astray":   func(b []byte) { b[line+28]++ },
		"an extra field to the end":    func(b []byte) { binary.LittleEndian.PutUint16(b[line+30:], 65535) },
		"one file fewer":               func(b []byte) { binary.LittleEndian.PutUint16(b[end+10:], n-1) },
		"the place of another file":    func(b []byte) { binary.LittleEndian.PutUint32(b[line+42:], 0) },
		"a name that leads out":        func(b []byte) { copy(b[line+46:], "../") },
		"the checksum of another":      func(b []byte) { b[line+16]++ },
	} {
		changed := bytes.Clone(data)
		change(changed)
		if err := walk(changed); err == nil {
			t.Errorf("%s: nothing was found", name)
		}
	}
	twice := bytes.Replace(bytes.Clone(data), fmt.Appendf(nil, "%06d.txt", n-1), fmt.Appendf(nil, "%06d.txt", 0), 2)
	wantFault(t, walk(twice), unpack.FaultDuplicate, "folder/with a name of some length/000000.txt")
	if seen > 0 {
		t.Errorf("%d files were handed out before the directory was judged", seen)
	}
}
