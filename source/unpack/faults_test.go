package unpack_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/source/unpack"
)

// told are the faults that a walk ended with.
func told(t *testing.T, err error) []string {
	t.Helper()
	var all *unpack.Faults
	if !errors.As(err, &all) || !all.ContentFault() {
		t.Fatalf("error %v (%T), want *unpack.Faults", err, err)
	}
	var out []string
	for _, e := range all.List {
		out = append(out, string(e.Fault)+" "+e.Entry)
	}
	return out
}

// TestWalk_AllFaults checks that all unacceptable entries are reported together and that nothing
// behind the first of them is delivered: of a zip, nothing at all.
func TestWalk_AllFaults(t *testing.T) {
	t.Parallel()
	files := []file{{"good", "1"}, {"../out", "2"}, {"link", ""}, {"good", "3"}, {"/abs", "4"}, {"good/x", "5"}, {"fine", "6"}, {"a/../b", "7"}}
	want := []string{"name ../out", "type link", "duplicate good", "name /abs", "duplicate good/x", "name a/../b"}
	packed := tarOf(t, files, func(h *tar.Header) {
		if h.Name == "link" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, "good"
		}
	})
	zipped := zipOf(t, files, func(h *zip.FileHeader) {
		if h.Name == "link" {
			h.SetMode(fs.ModeSymlink | 0o777)
		}
	})
	for _, tt := range []struct {
		name string
		data []byte
		out  int
	}{{"zip", zipped, 0}, {"tar", packed, 1}, {"tar.gz", gzipOf(t, packed), 1}, {"tar.xz", xzOf(t, packed), 1}} {
		got, err := walk(t, tt.data, unpack.Limits{})
		if faults := told(t, err); !slices.Equal(faults, want) {
			t.Errorf("%s: %q, want %q", tt.name, faults, want)
		}
		if len(got) != tt.out {
			t.Errorf("%s: %v came out, want %d", tt.name, got, tt.out)
		}
		if text := err.Error(); !strings.HasPrefix(text, "6 faults; ") || !strings.Contains(text, `"/abs"`) || !strings.HasSuffix(text, "; and 1 more") {
			t.Errorf("%s: %q", tt.name, text)
		}
	}
}

// TestWalk_FaultsAndTheEnd checks that a fault that ends the walk is reported last.
func TestWalk_FaultsAndTheEnd(t *testing.T) {
	t.Parallel()
	files := []file{{"../a", "1"}, {"b", strings.Repeat("b", 4000)}, {"c", "3"}}
	packed := tarOf(t, files, nil)
	for _, tt := range []struct {
		name   string
		data   []byte
		limits unpack.Limits
		want   []string
	}{
		{"damage", packed[:3000], unpack.Limits{}, []string{"name ../a", "damaged b"}},
		{"too many entries", packed, unpack.Limits{Entries: 2}, []string{"name ../a", "limit "}},
		{"too many bytes", packed, unpack.Limits{Bytes: 2000}, []string{"name ../a", "limit b"}},
		{"too many bytes, packed", gzipOf(t, packed), unpack.Limits{Bytes: 2000}, []string{"name ../a", "limit b"}},
		{"too many bytes of a zip", zipOf(t, files, nil), unpack.Limits{Bytes: 2000}, []string{"name ../a", "limit b"}},
	} {
		got, err := walk(t, tt.data, tt.limits)
		if faults := told(t, err); !slices.Equal(faults, tt.want) || len(got) > 0 {
			t.Errorf("%s: %q, want %q; %v came out", tt.name, faults, tt.want, got)
		}
	}
}

// TestWalk_VeryManyFaults checks that the faults beyond the limit are counted.
func TestWalk_VeryManyFaults(t *testing.T) {
	t.Parallel()
	var files []file
	for i := range 250 {
		files = append(files, file{fmt.Sprintf("../%d", i), ""})
	}
	for name, data := range map[string][]byte{"zip": zipOf(t, files, nil), "tar": tarOf(t, files, nil)} {
		_, err := walk(t, data, unpack.Limits{})
		var all *unpack.Faults
		if !errors.As(err, &all) || len(all.List) != 100 || all.More != 150 || all.Cut {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWalk_FaultsAndTrouble checks that a failure to read takes precedence over faults: the bytes
// read may not be those deposited (R6).
func TestWalk_FaultsAndTrouble(t *testing.T) {
	t.Parallel()
	packed := tarOf(t, []file{{"../a", strings.Repeat("a", 100_000)}, {"b", strings.Repeat("b", 2<<20)}}, nil)
	broken := errors.New("disk")
	in := unpack.FromReaderAt(readerAt(func(p []byte, off int64) (int, error) {
		if off > 1<<20 {
			return 0, broken
		}
		return bytes.NewReader(packed).ReadAt(p, off)
	}), int64(len(packed)))
	err := unpack.Walk(t.Context(), in, unpack.Limits{}, func(unpack.Entry, io.Reader) error { return nil })
	var one *unpack.Error
	if !errors.As(err, &one) || one.Fault != unpack.FaultInput || !errors.Is(err, broken) {
		t.Errorf("%v, want the trouble", err)
	}
}

type readerAt func(p []byte, off int64) (int, error)

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r(p, off) }
