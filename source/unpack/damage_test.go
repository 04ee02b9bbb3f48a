package unpack_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast/holdfast/source/unpack"
)

func TestWalk_ZipNames(t *testing.T) {
	t.Parallel()
	unicodePath := func(raw, name string) []byte {
		field := binary.LittleEndian.AppendUint16(nil, 0x7075)
		field = binary.LittleEndian.AppendUint16(field, uint16(5+len(name)))
		field = append(field, 1)
		field = binary.LittleEndian.AppendUint32(field, crc32.ChecksumIEEE([]byte(raw)))
		return append(field, name...)
	}
	tests := []struct {
		name, raw, want, encoding string
		change                    func(*zip.FileHeader)
	}{
		{"flagged", "é", "é", unpack.UTF8, nil},
		{"UTF-8 without flag", "é", "é", unpack.UTF8, func(h *zip.FileHeader) { h.NonUTF8 = true }},
		{"CP437", "caf\x82", "café", "cp437", func(h *zip.FileHeader) { h.NonUTF8 = true }},
		{"extra field", "caf\x82", "cafè", unpack.UTF8, func(h *zip.FileHeader) { h.NonUTF8, h.Extra = true, unicodePath("caf\x82", "cafè") }},
		{"extra field of another name", "caf\x82", "café", "cp437", func(h *zip.FileHeader) { h.NonUTF8, h.Extra = true, unicodePath("other", "cafè") }},
	}
	for _, tt := range tests {
		data := zipOf(t, []file{{tt.raw, "x"}}, tt.change)
		err := unpack.Walk(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), unpack.Limits{NameEncoding: "cp437"}, func(e unpack.Entry, _ io.Reader) error {
			if e.Name != tt.want || e.Raw != tt.raw || e.Encoding != tt.encoding {
				t.Errorf("%s: name=%q raw=%q encoding=%s, want %q %q %s", tt.name, e.Name, e.Raw, e.Encoding, tt.want, tt.raw, tt.encoding)
			}
			return nil
		})
		must(t, err)
	}

	_, err := walk(t, zipOf(t, []file{{"caf\x82", "x"}}, func(h *zip.FileHeader) { h.Flags |= 1 << 11 }), unpack.Limits{})
	wantFault(t, err, unpack.FaultName, "caf\x82")
	_, err = walk(t, zipOf(t, []file{{"caf\x82", "x"}}, func(h *zip.FileHeader) { h.NonUTF8, h.Extra = true, unicodePath("caf\x82", "../x") }), unpack.Limits{})
	wantFault(t, err, unpack.FaultName, "caf\x82")
	_, err = walk(t, zipOf(t, []file{{`folder\x`, "x"}}, func(h *zip.FileHeader) { h.CreatorVersion = 0 }), unpack.Limits{})
	wantFault(t, err, unpack.FaultName, `folder\x`)
}

func TestWalk_TarLatin1(t *testing.T) {
	t.Parallel()
	data := bytes.Replace(tarOf(t, []file{{"caf__x", "1"}}, nil), []byte("caf__x"), []byte("caf\xe9_x"), 1)
	fixTarChecksum(data)
	err := unpack.Walk(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), unpack.Limits{NameEncoding: "iso-8859-1"}, func(e unpack.Entry, _ io.Reader) error {
		if e.Name != "café_x" || e.Raw != "caf\xe9_x" || e.Encoding != "iso-8859-1" {
			t.Errorf("entry %+v, want café_x in ISO 8859-1", e)
		}
		return nil
	})
	must(t, err)
}

// fixTarChecksum makes the first header of a tar agree with its bytes again.
func fixTarChecksum(data []byte) {
	copy(data[148:156], "        ")
	sum := 0
	for _, b := range data[:512] {
		sum += int(b)
	}
	octal := []byte("000000\x00 ")
	for i := 5; i >= 0; i-- {
		octal[i] = '0' + byte(sum&7)
		sum >>= 3
	}
	copy(data[148:156], octal)
}

func TestWalk_Damaged(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("all work and no play ", 5000)
	files := []file{{"first", big}, {"second", big}}
	tarred, zipped := tarOf(t, files, nil), zipOf(t, files, nil)
	stored := zipOf(t, files, func(h *zip.FileHeader) { h.Method = zip.Store })
	flip := func(data []byte, at int) []byte {
		data = bytes.Clone(data)
		data[at] ^= 1
		return data
	}
	second := bytes.Index(tarred, []byte("second"))
	gz := gzipOf(t, tarred)
	tests := []struct {
		name  string
		data  []byte
		fault unpack.Fault
		entry string
	}{
		{"zip, a bit flipped", flip(stored, bytes.LastIndex(stored, []byte("play"))), unpack.FaultDamaged, "second"},
		{"zip, its end missing", zipped[:len(zipped)-30], unpack.FaultDamaged, ""},
		{"zip, only its beginning", zipped[:40], unpack.FaultDamaged, ""},
		{"zip, encrypted", zipOf(t, files, func(h *zip.FileHeader) { h.Flags |= 1 }), unpack.FaultUnsupported, "first"},
		{"zip, unknown method", patchMethod(stored, 9), unpack.FaultUnsupported, "first"},
		{"tar, cut in a file", tarred[:second+1000], unpack.FaultDamaged, "second"},
		{"tar, cut between two files", tarred[:second], unpack.FaultDamaged, "first"},
		{"tar, cut before its end mark", tarred[:len(tarred)-1024], unpack.FaultDamaged, "second"},
		{"tar, a header damaged", flip(tarred, second+1), unpack.FaultDamaged, "first"},
		{"tar after tar", append(bytes.Clone(tarred), tarred...), unpack.FaultDamaged, ""},
		{"gz, cut", gz[:len(gz)-6], unpack.FaultDamaged, "second"},
		{"gz, its checksum wrong", flip(gz, len(gz)-6), unpack.FaultDamaged, "second"},
		{"gz, more after it", append(bytes.Clone(gz), "more"...), unpack.FaultDamaged, "second"},
		{"gz, only its magic", gz[:2], unpack.FaultDamaged, ""},
		{"bz2, cut", helloBz2(t)[:60], unpack.FaultDamaged, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := walk(t, tt.data, unpack.Limits{})
			wantFault(t, err, tt.fault, tt.entry)
		})
	}
	if _, err := walk(t, append(bytes.Clone(tarred), make([]byte, 10240)...), unpack.Limits{}); err != nil {
		t.Errorf("a tar padded with zeros: %v", err)
	}
	if _, err := walk(t, tarred[:len(tarred)-512], unpack.Limits{}); err != nil {
		t.Errorf("a tar with one block for an end mark: %v", err)
	}
}

// patchMethod sets the method of every entry in a zip's directory and headers.
func patchMethod(data []byte, method byte) []byte {
	data = bytes.Clone(data)
	for at := range data {
		switch {
		case bytes.HasPrefix(data[at:], []byte("PK\x03\x04")):
			data[at+8] = method
		case bytes.HasPrefix(data[at:], []byte("PK\x01\x02")):
			data[at+10] = method
		}
	}
	return data
}

func TestWalk_ErrorOfReaderOutranks(t *testing.T) {
	t.Parallel()
	data := zipOf(t, []file{{"a", "hello"}}, func(h *zip.FileHeader) { h.Method = zip.Store })
	data[bytes.Index(data, []byte("hello"))] = 'j'
	for _, answer := range []error{nil, errors.New("swallowed")} {
		err := unpack.Walk(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), unpack.Limits{}, func(_ unpack.Entry, r io.Reader) error {
			_, _ = io.Copy(io.Discard, r)
			return answer
		})
		wantFault(t, err, unpack.FaultDamaged, "a")
	}
}

// TestR06_InputFault checks that a container that cannot be read, or is shorter than expected, is
// the system's fault and never the depositor's.
func TestR06_InputFault(t *testing.T) {
	t.Parallel()
	files := []file{{"first", strings.Repeat("x", 3000)}, {"second", "y"}}
	disk := errors.New("input/output error")
	containers := containersOf(t, files)
	containers["stored zip"] = zipOf(t, files, func(h *zip.FileHeader) { h.Method = zip.Store })
	for name, data := range containers {
		for good := int64(0); good < int64(len(data)); good += 23 {
			for _, cause := range []error{disk, io.ErrUnexpectedEOF} {
				in := unpack.Input{Size: int64(len(data)), Open: func(_ context.Context, offset, length int64) (io.ReadCloser, error) {
					left := max(min(good-offset, length), 0)
					readers := []io.Reader{bytes.NewReader(data[min(offset, good):][:left])}
					if errors.Is(cause, disk) && left < length {
						readers = append(readers, failing{disk})
					}
					return io.NopCloser(io.MultiReader(readers...)), nil
				}}
				err := unpack.Walk(t.Context(), in, unpack.Limits{}, func(unpack.Entry, io.Reader) error { return nil })
				var e *unpack.Error
				if !errors.As(err, &e) || e.ContentFault() || !errors.Is(err, cause) {
					t.Fatalf("%s, %d of %d bytes: error %v, want the system's fault, of %v", name, good, len(data), err, cause)
				}
			}
		}
	}
}

// TestWalk_EndWithTheLastBytes checks that a source may return io.EOF together with its last bytes,
// as a connection does.
func TestWalk_EndWithTheLastBytes(t *testing.T) {
	t.Parallel()
	files := []file{{"first", strings.Repeat("x", 3000)}, {"second", "y"}}
	for name, data := range containersOf(t, files) {
		in := unpack.Input{Size: int64(len(data)), Open: func(_ context.Context, offset, length int64) (io.ReadCloser, error) {
			return io.NopCloser(iotest.DataErrReader(bytes.NewReader(data[offset:][:length]))), nil
		}}
		n := 0
		err := unpack.Walk(t.Context(), in, unpack.Limits{}, func(_ unpack.Entry, r io.Reader) error {
			n++
			_, err := io.Copy(io.Discard, r)
			return err
		})
		if err != nil || n != len(files) {
			t.Errorf("%s: %d of %d files, %v", name, n, len(files), err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestWalk_Limits(t *testing.T) {
	t.Parallel()
	files := []file{{"a", "12345"}, {"b/", ""}, {"b/c", "67890"}}
	tarred := tarOf(t, files, nil)
	for name, data := range containersOf(t, files) {
		_, err := walk(t, data, unpack.Limits{Entries: 3, NameLength: 3})
		if err != nil {
			t.Errorf("%s: just within the limits: %v", name, err)
		}
		_, err = walk(t, data, unpack.Limits{Entries: 2})
		wantFault(t, err, unpack.FaultLimit, "")
		_, err = walk(t, data, unpack.Limits{NameLength: 2})
		wantFault(t, err, unpack.FaultName, "b/c")
	}
	for name, data := range map[string][]byte{"zip": zipOf(t, files, nil), "tar": tarred} {
		if _, err := walk(t, data, unpack.Limits{Bytes: 10}); err != nil {
			t.Errorf("%s: just within the limits: %v", name, err)
		}
		_, err := walk(t, data, unpack.Limits{Bytes: 9})
		wantFault(t, err, unpack.FaultLimit, "b/c")
	}
}

// zeros is an endless file.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestWalk_Bombs(t *testing.T) {
	t.Parallel()
	const unpacked = 8 << 20
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	out, err := w.CreateHeader(&zip.FileHeader{Name: "bomb", Method: zip.Deflate, Modified: time.Unix(0, 0)})
	must(t, err)
	_, err = io.CopyN(out, zeros{}, unpacked)
	must(t, err)
	must(t, w.Close())
	limits := unpack.Limits{Bytes: unpacked / 2}
	got, err := walk(t, b.Bytes(), limits)
	wantFault(t, err, unpack.FaultLimit, "bomb")
	if len(got) != 0 {
		t.Error("a file came out of the bomb")
	}

	t.Run("its size a lie", func(t *testing.T) {
		data := bytes.Clone(b.Bytes())
		directory := bytes.LastIndex(data, []byte("PK\x01\x02"))
		binary.LittleEndian.PutUint32(data[directory+24:], 1000)
		_, err := walk(t, data, limits)
		wantFault(t, err, unpack.FaultDamaged, "bomb")
	})
	t.Run("claims an impossible number of entries", func(t *testing.T) {
		data := bytes.Clone(b.Bytes())
		end := bytes.LastIndex(data, []byte("PK\x05\x06"))
		binary.LittleEndian.PutUint16(data[end+10:], 60000)
		_, err := walk(t, data, unpack.Limits{Entries: 1000})
		wantFault(t, err, unpack.FaultLimit, "")
	})
	t.Run("hides its number of entries", func(t *testing.T) {
		files := make([]file, 6000)
		for i := range files {
			files[i].name = strings.Repeat("f", i%100) + string(rune('a'+i%26)) + strings.Repeat("g", i/100)
		}
		data := zipOf(t, files, func(h *zip.FileHeader) { h.Method = zip.Store })
		end := bytes.LastIndex(data, []byte("PK\x05\x06"))
		binary.LittleEndian.PutUint16(data[end+10:], 1)
		_, err := walk(t, data, unpack.Limits{Entries: 1000})
		wantFault(t, err, unpack.FaultLimit, "")
	})
	t.Run("entries share their bytes", func(t *testing.T) {
		data := zipOf(t, []file{{"a", strings.Repeat("x", 1000)}, {"b", ""}}, func(h *zip.FileHeader) { h.Method = zip.Store })
		directory := bytes.LastIndex(data, []byte("PK\x01\x02"))
		binary.LittleEndian.PutUint32(data[directory+20:], 1000)
		binary.LittleEndian.PutUint32(data[directory+24:], 1000)
		binary.LittleEndian.PutUint32(data[directory+42:], 0)
		_, err := walk(t, data, unpack.Limits{})
		wantFault(t, err, unpack.FaultDamaged, "")
	})
	t.Run("sparse tar", func(t *testing.T) {
		data := tarOf(t, []file{{"sparse", ""}}, nil)
		copy(data[124:136], "77777777777\x00") // 8 GiB
		fixTarChecksum(data)
		_, err := walk(t, data, unpack.Limits{Ratio: 1})
		wantFault(t, err, unpack.FaultLimit, "sparse")
	})
	t.Run("headers without end", func(t *testing.T) {
		files := make([]file, 3000)
		for i := range files {
			files[i].name = "d/"
		}
		data := gzipOf(t, tarOf(t, files, nil))
		_, err := walk(t, data, unpack.Limits{Bytes: 1 << 20})
		wantFault(t, err, unpack.FaultLimit, "")
	})
}
