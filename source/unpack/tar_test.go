package unpack_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/source/unpack"
)

// TestWalk_TarLongNames checks names of any length in every kind of tar that can hold them.
func TestWalk_TarLongNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long folder/", 40) + "naïve.txt"
	for format, names := range map[tar.Format][]string{
		tar.FormatUSTAR: {"a", strings.Repeat("d", 100) + "/" + strings.Repeat("n", 100)},
		tar.FormatPAX:   {"a", long, strings.Repeat("x", 255)},
		tar.FormatGNU:   {"a", long, strings.Repeat("x", 255)},
	} {
		var files []file
		for _, n := range names {
			files = append(files, file{n, "text of " + n})
		}
		got, err := walk(t, tarOf(t, files, func(h *tar.Header) { h.Format = format }), unpack.Limits{})
		if diff := cmp.Diff(files, got, cmp.AllowUnexported(file{})); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", format, err, diff)
		}
	}
}

// A file with holes, as GNU tar's -S packs it in its three ways: "begin", a hole up to 1 MiB,
// "end".
var sparseTars = map[string]string{
	"gnu":      "H4sIAAAAAAACA+3QTQqDMBCG4TlKjpA4ox7EE7RUihsVf+5vsJRiBV2ILuR9YJiQZBj4+lZO56PMbO7RXw+xVEKq3puZWiI+5JqpuEIuMPbDo3NOuqYZtv7tvR9KZ53I52zLxOakfve6mN1c8B1YeZbvqhYAAAAAAHBnZf0iBAAAAAAAAAC4oQm8Tww7ACgAAA==",
	"pax, 1.0": "H4sIAAAAAAACA+3UzUrEMBAH8JzzFH2CdpJMP3LoVT2JID5AdINUth8kFRaf3uyKIAHXg7rg+v9dAjNTaDP8W1Y3bnfl3caHWMVF/AZKGubDmeQn6dYIVRsiZjasBak0bkSxEyfwHFcX0quI/0nr4vL6royLC9GXo3uaQ69kVh2mVKWsOrnR93GRRn2sBu+2cXjxvSLu6tZKQ8W4DmlUtbY2SnWsy86mrVvV6H3X5V2rdadMx7zvPnz+rIDvK6u0vNvD7i6GrS81d8b+8I/geP6VIsrzzw23oqBT5j/M83ps7qt+/nF/hJEkmWwj3/LaSCPfk0tI2Pm794/DhGsAAAAAAAAAOGt+2uASAAAAAAAAAM7cK4uclekAKAAA",
	"pax, 0.1": "H4sIAAAAAAACA+3U32qDMBgF8Fz7FH0A0S/JZzQX3m67GoOxB0jbMKT1D8ZC2dNP3S46YR2DrbDu/G4iHiNqPEnSB3e8827r+5CGTvwGGhnmeRwtR9JKCZlpImbWrARJMtqI1VFcwCEMrh8fRfxPKl/d3j8loXN98EmoXnwpiYsst5Eyp1FzqNf7drMLpY6U+pC42pehizg7PVu7rqSYyZr47YYm1u9HNqZI06oeqnGizG2mpSxYJYUdfwYrjZpSt0ytUoXUBfOUbj6fK+AbknRcs8d5yW6qvU8UF0w/vBGc77+cdoBF/3nuP12y/33bDueu+ypfvtwfsfbPVYMaAAAAAAAAAFw132zxEQAAAAAAAAAArtgriAlmSAAoAAA=",
}

func TestWalk_TarSparse(t *testing.T) {
	t.Parallel()
	want := "begin" + strings.Repeat("\x00", 1<<20-len("begin")) + "end"
	for name, packed := range sparseTars {
		got, err := walk(t, unbase64(t, packed), unpack.Limits{})
		if err != nil || len(got) != 1 || got[0].name != "sp" || got[0].text != want {
			t.Errorf("%s: %d files, %v; the holes must be zeros", name, len(got), err)
		}
		_, err = walk(t, unbase64(t, packed), unpack.Limits{Bytes: 100 << 10})
		wantFault(t, err, unpack.FaultLimit, "sp")
	}
}

// TestWalk_TarGlobalHeader checks that global headers are accepted unless they set names or sizes
// of files.
func TestWalk_TarGlobalHeader(t *testing.T) {
	t.Parallel()
	with := func(records map[string]string) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: records}))
		must(t, w.WriteHeader(&tar.Header{Name: "a", Size: 5}))
		_, err := io.WriteString(w, "hello")
		must(t, err)
		must(t, w.Close())
		return b.Bytes()
	}
	got, err := walk(t, with(map[string]string{"comment": "0123456789abcdef", "mtime": "1"}), unpack.Limits{})
	if want := []file{{"a", "hello"}}; err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(file{})) {
		t.Errorf("as git makes it: %v, %v", got, err)
	}
	for _, key := range []string{"path", "linkpath", "size", "GNU.sparse.realsize"} {
		const length = 60
		fill := func(key string) string {
			return fmt.Sprintf("%d %s=%s\n", length, key, strings.Repeat("0", length-len(key)-6)+"1")
		}
		// The writer does not write such a header: the text of a comment becomes another record.
		data := with(map[string]string{"comment": strings.Repeat("0", length-len("comment")-6) + "1"})
		data = bytes.Replace(data, []byte(fill("comment")), []byte(fill(key)), 1)
		_, err := walk(t, data, unpack.Limits{})
		wantFault(t, err, unpack.FaultUnsupported, "")
		if err != nil && !strings.Contains(err.Error(), key) {
			t.Errorf("error %q does not name %q", err, key)
		}
	}
}
