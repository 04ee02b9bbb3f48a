package unpack_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/source/unpack"
)

// rawZip makes a zip of stored files whose headers say what change makes them say, and no data
// descriptors.
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

// TestNamesNotUTF8 checks that names that are not UTF-8 are refused with a remedy, unless a rule
// gives their encoding. Nothing is guessed, whichever system made the zip.
func TestNamesNotUTF8(t *testing.T) {
	t.Parallel()
	const dos, unix, darwin = 0, 3 << 8, 19 << 8
	zipped := func(madeBy uint16) func(raw string) []byte {
		return func(raw string) []byte {
			return zipOf(t, []file{{raw, "x"}}, func(h *zip.FileHeader) { h.NonUTF8, h.CreatorVersion = true, madeBy })
		}
	}
	for kind, pack := range map[string]func(raw string) []byte{
		"zip of MS-DOS": zipped(dos), "zip of Unix": zipped(unix), "zip of macOS": zipped(darwin),
		"tar": func(raw string) []byte {
			data := tarOf(t, []file{{strings.Repeat("_", len(raw)), "x"}}, nil)
			copy(data, raw)
			fixTarChecksum(data)
			return data
		},
	} {
		for _, tt := range []struct{ raw, rule, want string }{
			{"caf\x82.txt", "cp437", "café.txt"},
			{"caf\xe9.txt", "iso-8859-1", "café.txt"},
			{"caf\xe9.txt", "CP437", "cafΘ.txt"},
			{"\x93\xfa\x96{.txt", "shift_jis", "日本.txt"},
			{"caf\xc3\xa9.txt", "cp437", "café.txt"}, // UTF-8 is kept
			{"caf\xe9.txt", "", ""},
			{"caf\x81.txt", "windows-1252", ""}, // which has no such character
		} {
			data := pack(tt.raw)
			var got []unpack.Entry
			err := unpack.Walk(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), unpack.Limits{NameEncoding: tt.rule}, func(e unpack.Entry, _ io.Reader) error {
				got = append(got, e)
				return nil
			})
			if tt.want == "" {
				wantFault(t, err, unpack.FaultName, tt.raw)
				if len(got) > 0 || !strings.Contains(err.Error(), "name_encoding") {
					t.Errorf("%s: %q by %q: %v, %v; want what to do", kind, tt.raw, tt.rule, got, err)
				}
				if tt.rule == "" && !strings.Contains(err.Error(), `"café.txt"`) {
					t.Errorf("%s: %q: %v does not say how it may read", kind, tt.raw, err)
				}
				continue
			}
			must(t, err)
			if len(got) != 1 || got[0].Name != tt.want || got[0].Raw != tt.raw || (got[0].Encoding == unpack.UTF8) != utf8.ValidString(tt.raw) {
				t.Errorf("%s: %q by %q: %+v, want %q", kind, tt.raw, tt.rule, got, tt.want)
			}
		}
	}
	_, err := walk(t, zipped(dos)("caf\xe9"), unpack.Limits{NameEncoding: "klingon"})
	if err == nil {
		t.Error("an encoding that is none was taken")
	}
}

// TestNamesNotUTF8_ManyBytes checks the limit on the total size of names that are not UTF-8, since
// each of them is recorded in an event.
func TestNamesNotUTF8_ManyBytes(t *testing.T) {
	t.Parallel()
	var files []file
	for i := range 2 * unpack.MaxDecoded / 500 {
		files = append(files, file{fmt.Sprintf("%06d", i) + strings.Repeat("\xe9", 494), ""})
	}
	_, err := walk(t, zipOf(t, files, func(h *zip.FileHeader) { h.NonUTF8 = true }), unpack.Limits{NameEncoding: "iso-8859-1"})
	if !errors.As(err, new(*unpack.Faults)) && !errors.As(err, new(*unpack.Error)) || !strings.Contains(err.Error(), "have more than") {
		t.Errorf("err = %.200v, want the limit", err)
	}
}

// zip64Zip is a zip of a.txt, which holds "hello", with all sizes and places as zip64 has them,
// made by `zip -fz -X`.
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

// TestWalk_ZipOfTwoMinds checks that a zip is refused when its headers contradict its directory or
// its directory lacks files: other programs would read other files from the same bytes.
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
		{"something in front that is allowed for", behind.Bytes(), "", "does not list its first"},
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

// TestWalk_ZipMethods checks that a zip with an unsupported compression is refused before anything
// is delivered.
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
