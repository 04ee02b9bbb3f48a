package unpack_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/source/unpack"
)

// rawZip makes a zip of stored files whose headers say what change makes them say, and no data descriptors.
func rawZip(t testing.TB, files []file, change func(*zip.FileHeader)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{
			Name: f.name, Method: zip.Store, CRC32: crc32.ChecksumIEEE([]byte(f.text)),
			CompressedSize64: uint64(len(f.text)), UncompressedSize64: uint64(len(f.text)),
		}
		if change != nil {
			change(h)
		}
		out, err := w.CreateRaw(h)
		must(t, err)
		_, err = io.WriteString(out, f.text)
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

// A name that is not UTF-8 is read as the system that made the zip would have written it.
func TestWalk_ZipNamesOfOldSystems(t *testing.T) {
	t.Parallel()
	const dos, unix, darwin = 0, 3 << 8, 19 << 8
	for _, tt := range []struct {
		raw, want, encoding string
		madeBy              uint16
	}{
		{"caf\x82", "café", unpack.CP437, dos},
		{"caf\xe9", "cafΘ", unpack.CP437, dos},
		{"caf\xe9", "café", unpack.Latin1, unix},
		{"caf\xe9", "café", unpack.Latin1, darwin},
		{"caf\x82", "café", unpack.CP437, unix}, // ISO 8859-1 would have a control character
		{"caf\xc3\xa9", "café", unpack.UTF8, dos},
	} {
		data := zipOf(t, []file{{tt.raw, "x"}}, func(h *zip.FileHeader) { h.NonUTF8, h.CreatorVersion = true, tt.madeBy })
		must(t, unpack.Walk(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), unpack.Limits{}, func(e unpack.Entry, _ io.Reader) error {
			if e.Name != tt.want || e.Raw != tt.raw || e.Encoding != tt.encoding {
				t.Errorf("made by %d: name=%q raw=%q encoding=%s, want %q %q %s", tt.madeBy>>8, e.Name, e.Raw, e.Encoding, tt.want, tt.raw, tt.encoding)
			}
			return nil
		}))
	}
}

// Every byte has a character in both encodings, so that there is no name that cannot be read.
func TestWalk_NamesOfAnyBytes(t *testing.T) {
	t.Parallel()
	for _, host := range []uint16{0, 3 << 8} {
		for b := 0x80; b <= 0xff; b++ {
			raw := "x" + string([]byte{byte(b)}) + "y"
			data := zipOf(t, []file{{raw, "x"}}, func(h *zip.FileHeader) { h.NonUTF8, h.CreatorVersion = true, host })
			if got, err := walk(t, data, unpack.Limits{}); err != nil || len(got) != 1 || len([]rune(got[0].name)) != 3 {
				t.Errorf("made by %d: %q: %v, %v", host>>8, raw, got, err)
			}
		}
	}
}

// zip64Zip is a zip of a.txt, which holds "hello", with all sizes and places as zip64 has them, made by `zip -fz -X`.
const zip64Zip = "UEsDBC0AAAAAAIENdl2GphA2//////////8FABQAYS50eHQBABAABQAAAAAAAAAFAAAAAAAAAGhlbGxvUEsBAh4DLQAAAAAAgQ12XYamEDYFAAAA/////wUADAAAAAAAAQAAAKSBAAAAAGEudHh0AQAIAAUAAAAAAAAAUEsGBiwAAAAAAAAAHgMtAAAAAAAAAAAAAQAAAAAAAAABAAAAAAAAAD8AAAAAAAAAPAAAAAAAAABQSwYHAAAAAHsAAAAAAAAAAQAAAFBLBQYAAAAAAQABAD8AAAD/////AAA="

func TestWalk_Zip64Sizes(t *testing.T) {
	t.Parallel()
	data := unbase64(t, zip64Zip)
	got, err := walk(t, data, unpack.Limits{})
	if want := []file{{"a.txt", "hello"}}; err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(file{})) {
		t.Errorf("got %v, %v", got, err)
	}
	// A size of 16 EiB, and one that is not there.
	directory := bytes.LastIndex(data, []byte("PK\x01\x02"))
	huge := bytes.Clone(data)
	copy(huge[directory+46+len("a.txt")+4:], bytes.Repeat([]byte{0xff}, 8))
	_, err = walk(t, huge, unpack.Limits{})
	wantFault(t, err, unpack.FaultLimit, "a.txt")
	none := bytes.Clone(data)
	none[directory+46+len("a.txt")] = 0x99 // its zip64 field is another one now, and 4 GiB is what the other one says
	_, err = walk(t, none, unpack.Limits{})
	wantFault(t, err, unpack.FaultLimit, "a.txt")
}

// What a zip says twice it must say alike, and all that is in it must be in its directory: other programs would see other
// files in the same bytes.
func TestWalk_ZipOfTwoMinds(t *testing.T) {
	t.Parallel()
	one, two := rawZip(t, []file{{"first", "1"}}, nil), rawZip(t, []file{{"other", "2"}}, nil)
	renamed := bytes.Clone(one)
	copy(renamed[30:], "worst")
	// The content of the first entry is an entry of its own, at which the directory points, too.
	inner := rawZip(t, []file{{"inner", strings.Repeat("x", 50)}}, nil)
	inner = inner[:bytes.LastIndex(inner, []byte("PK\x01\x02"))]
	quoted := rawZip(t, []file{{"outer", string(inner)}, {"inner", strings.Repeat("x", 50)}}, nil)
	directory := bytes.LastIndex(quoted, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(quoted[directory+42:], uint32(bytes.Index(quoted, inner)))
	descriptor := zipOf(t, []file{{"a", "hello"}}, nil)
	descriptor[bytes.Index(descriptor, []byte("PK\x07\x08"))+4] ^= 1
	folder := zipOf(t, []file{{"d/", ""}, {"d/a", "1"}}, nil)
	copy(folder[30:], "e/")
	var behind bytes.Buffer // something in front that the directory knows of, but names no file of
	behind.WriteString("PK\x03\x04 in front of it")
	w := zip.NewWriter(&behind)
	w.SetOffset(int64(behind.Len()))
	_, err := w.Create("a")
	must(t, err)
	must(t, w.Close())
	for _, tt := range []struct {
		name  string
		data  []byte
		entry string
		word  string
	}{
		{"another name in the file's own header", renamed, "first", "worst"},
		{"another name in a folder's own header", folder, "d/", "e/"},
		{"an entry within another", quoted, "", "overlap"},
		{"two zips, one after the other", append(bytes.Clone(two), one...), "", "joined"},
		{"something in front that is allowed for", behind.Bytes(), "", "does not name what is in its first"},
		{"something in front", append([]byte("PK\x03\x04 in front of it"), one...), "", "joined"},
		{"something behind", append(bytes.Clone(one), "more"...), "", "follow its end"},
		{"a checksum of 0", rawZip(t, []file{{"first", "1"}}, func(h *zip.FileHeader) { h.CRC32 = 0 }), "first", "checksum"},
		{"another checksum", rawZip(t, []file{{"first", "1"}}, func(h *zip.FileHeader) { h.CRC32++ }), "first", "checksum"},
		{"another checksum behind the file", descriptor, "a", "checksum"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := walk(t, tt.data, unpack.Limits{})
			wantFault(t, err, unpack.FaultDamaged, tt.entry)
			if !strings.Contains(err.Error(), tt.word) {
				t.Errorf("error %q does not say %q", err, tt.word)
			}
		})
	}
	empty := rawZip(t, []file{{"empty", ""}}, nil)
	if got, err := walk(t, empty, unpack.Limits{}); err != nil || len(got) != 1 {
		t.Errorf("a file of nothing, whose checksum is 0: %v", err)
	}
	var commented bytes.Buffer
	w = zip.NewWriter(&commented)
	must(t, w.SetComment("a comment"))
	_, err = w.Create("a")
	must(t, err)
	must(t, w.Close())
	if got, err := walk(t, commented.Bytes(), unpack.Limits{}); err != nil || len(got) != 1 {
		t.Errorf("a zip with a comment: %v", err)
	}
}

// A zip whose compression is not undone is refused before anything comes out of it.
func TestWalk_ZipMethods(t *testing.T) {
	t.Parallel()
	for method, name := range map[uint16]string{9: "method 9 (Deflate64)", 14: "LZMA", 93: "Zstandard", 95: "xz", 1234: "method 1234"} {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		_, err := w.Create("fine")
		must(t, err)
		_, err = w.CreateRaw(&zip.FileHeader{Name: "odd", Method: method})
		must(t, err)
		must(t, w.Close())
		got, err := walk(t, b.Bytes(), unpack.Limits{})
		wantFault(t, err, unpack.FaultUnsupported, "odd")
		if !strings.Contains(err.Error(), name) || len(got) > 0 {
			t.Errorf("error %q does not name %q, or %d files came out", err, name, len(got))
		}
	}
}
