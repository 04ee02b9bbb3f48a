package unpack_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/holdfast/holdfast/source/unpack"
)

// file is an entry of a container under test.
type file struct {
	name, text string
}

// walk returns what came out of a container.
func walk(t testing.TB, data []byte, limits unpack.Limits) ([]file, error) {
	t.Helper()
	var got []file
	err := unpack.Walk(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), limits, func(e unpack.Entry, r io.Reader) error {
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if int64(len(text)) != e.Size {
			t.Errorf("%s: %d bytes, %d promised", e.Name, len(text), e.Size)
		}
		got = append(got, file{e.Name, string(text)})
		return nil
	})
	return got, err
}

func wantFault(t *testing.T, err error, fault unpack.Fault, entry string) {
	t.Helper()
	var e *unpack.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want an *unpack.Error", err, err)
	}
	if e.Fault != fault || e.Entry != entry || e.ContentFault() != (fault != unpack.FaultInput) {
		t.Errorf("fault=%s entry=%q content=%t, want %s %q (%v)", e.Fault, e.Entry, e.ContentFault(), fault, entry, err)
	}
	if entry != "" && !strings.Contains(err.Error(), fmt.Sprintf("%q", entry)) {
		t.Errorf("error %q does not name %q", err, entry)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// zipOf makes a zip of files as change leaves their headers.
func zipOf(t testing.TB, files []file, change func(*zip.FileHeader)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		h.SetMode(0o644)
		if strings.HasSuffix(f.name, "/") {
			h.SetMode(os.ModeDir | 0o755)
		}
		if change != nil {
			change(h)
		}
		out, err := w.CreateHeader(h)
		must(t, err)
		_, err = io.WriteString(out, f.text)
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

// tarOf makes a tar of files as change leaves their headers.
func tarOf(t testing.TB, files []file, change func(*tar.Header)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Size: int64(len(f.text)), Mode: 0o644, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if change != nil {
			change(h)
		}
		must(t, w.WriteHeader(h))
		if h.Typeflag == tar.TypeReg {
			_, err := io.WriteString(w, f.text)
			must(t, err)
		}
	}
	must(t, w.Close())
	return b.Bytes()
}

func gzipOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

func gunzip(t testing.TB, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	must(t, err)
	out, err := io.ReadAll(r)
	must(t, err)
	return out
}

// xzOf compresses by another program's code than the one that is tested.
func xzOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.WriterConfig{DictCap: 1 << 20}.NewWriter(&b)
	must(t, err)
	_, err = w.Write(data)
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

func zstdOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	must(t, err)
	_, err = w.Write(data)
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

// compressions are those of which there is an encoder here.
var compressions = map[string]func(testing.TB, []byte) []byte{"gz": gzipOf, "xz": xzOf, "zst": zstdOf}

// containersOf packs files in every way.
func containersOf(t testing.TB, files []file) map[string][]byte {
	t.Helper()
	tarred := tarOf(t, files, nil)
	all := map[string][]byte{"zip": zipOf(t, files, nil), "tar": tarred}
	for name, compress := range compressions {
		all["tar."+name] = compress(t, tarred)
	}
	return all
}

// helloTarBz2 is a tar in bzip2 of the file a.txt, which holds "hello".
const helloTarBz2 = "QlpoOTFBWSZTWZHcsD4AAG/7hMmAAEJAAWeAAAhiRJ5AAACACCAAVDSGpo0wEyZG0EkU0DRoMhoFfmizoQdQASM5XmkcbiTJIHBh6vxZBJUMh3Y32XRpqHlcJn4UFxV2NGik0kuiIgNi7kinChISO5YHwA=="

// aloneBz2 is the text "hello" in bzip2.
const aloneBz2 = "QlpoOTFBWSZTWRkxZT0AAACBAAJEoAAhmmgzTQczi7kinChIDJiynoA="

func helloBz2(t testing.TB) []byte { return unbase64(t, helloTarBz2) }

func helloAloneBz2(t testing.TB) []byte { return unbase64(t, aloneBz2) }

func unbase64(t testing.TB, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	must(t, err)
	return data
}

// hostile names are those of real input 41 of Merritt and some more: legal, and to be kept byte for
// byte.
var hostile = []file{
	{"README 1.md", "1"},
	{"README+2.md", ""},
	{"README %AF.md", "3"},
	{"Test50%majrule.txt", "4"},
	{"Z_5%_400C-bet.xlsx", "5"},
	{"README cliché.md", "6"},
	{"README|pipe.md", "7"},
	{"こんにちは.md", "8"},
	{"שלום", "9"},
	{"مرحبا", "10"},
	{"file☠☡☢☣.txt", "11"},
	{"file..name..with..dots.txt", "12"},
	{"file & name.txt", "13"},
	{"∑a ≤ b.txt", "14"},
	{"\u00e9.txt", "NFC"},
	{"e\u0301.txt", "NFD"},
	{"\ufffd", "17"},
	{"File%00x.md", "18"},
	{"File%hhx.md", "19"},
	{"File%!!x.md", "20"},
	{"a/b/c/..d/...", "21"},
	{"C: notes.txt", "22"},
	{"back\\slash", "23"},
	{"new\nline", "24"},
	{" ", "25"},
	{"-rf", "26"},
	{"~", "27"},
}

func TestWalk_HostileNames(t *testing.T) {
	t.Parallel()
	for name, data := range containersOf(t, hostile) {
		got, err := walk(t, data, unpack.Limits{})
		must(t, err)
		if diff := cmp.Diff(hostile, got, cmp.AllowUnexported(file{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWalk_RealContainers(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "..", "shared", "cases", "merritt", "sampleFiles")
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("real sample files are absent: %v", err)
	}
	sums := map[string]map[string]string{}
	for name, want := range map[string]struct{ files, bytes int }{
		"brain_v1.tar.gz": {4, 4199856}, "brain_v1.zip": {4, 4199856}, "brain_v2.tar.gz": {5, 4804756}, "brain_v2.zip": {5, 4804756},
		"huskyChicken.zip": {3, 124690}, "jazzbears.zip": {2, 1864116}, "outdoorStore.zip": {8, 512091}, "souvenirs.zip": {2, 151834},
	} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		must(t, err)
		got, err := walk(t, data, unpack.Limits{})
		must(t, err)
		sums[name] = map[string]string{}
		total := 0
		for _, f := range got {
			total += len(f.text)
			sums[name][f.name] = fmt.Sprintf("%x", sha256.Sum256([]byte(f.text)))
		}
		if len(got) != want.files || total != want.bytes {
			t.Errorf("%s: %d files, %d bytes, want %d %d", name, len(got), total, want.files, want.bytes)
		}
	}
	for _, v := range []string{"brain_v1", "brain_v2"} {
		if diff := cmp.Diff(sums[v+".zip"], sums[v+".tar.gz"]); diff != "" {
			t.Errorf("%s: the zip and the tar.gz differ:\n%s", v, diff)
		}
	}
}

func TestWalk_Bzip2(t *testing.T) {
	t.Parallel()
	got, err := walk(t, helloBz2(t), unpack.Limits{})
	must(t, err)
	if want := []file{{"a.txt", "hello"}}; !cmp.Equal(got, want, cmp.AllowUnexported(file{})) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWalk_Zip64(t *testing.T) {
	t.Parallel()
	const many = 66_000 // more than a zip without zip64 can count
	files := make([]file, many)
	for i := range files {
		files[i].name = fmt.Sprint("d/", i)
	}
	data := zipOf(t, files, func(h *zip.FileHeader) { h.Method = zip.Store })
	got, err := walk(t, data, unpack.Limits{})
	if err != nil || len(got) != many {
		t.Errorf("%d files, err=%v, want %d", len(got), err, many)
	}
	_, err = walk(t, data, unpack.Limits{Entries: many - 1})
	wantFault(t, err, unpack.FaultLimit, "")
}

func TestWalk_FoldersAndDots(t *testing.T) {
	t.Parallel()
	files := []file{{"./", ""}, {"./a/", ""}, {"./a/x", "1"}, {"a//y", "2"}, {"b/./z", "3"}, {"a/", ""}, {"empty/", ""}}
	want := []file{{"a/x", "1"}, {"a/y", "2"}, {"b/z", "3"}}
	for name, data := range map[string][]byte{"zip": zipOf(t, files, nil), "tar": tarOf(t, files, nil)} {
		got, err := walk(t, data, unpack.Limits{})
		must(t, err)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(file{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWalk_RefusedNames(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files []file
		fault unpack.Fault
		entry string
	}{
		{"slip", []file{{"ok", "1"}, {"../../etc/cron.d/x", "2"}}, unpack.FaultName, "../../etc/cron.d/x"},
		{"slip inside", []file{{"a/../../x", ""}}, unpack.FaultName, "a/../../x"},
		{"dots at the end", []file{{"a/..", ""}}, unpack.FaultName, "a/.."},
		{"slip with backslashes", []file{{`a\..\..\x`, ""}}, unpack.FaultName, `a\..\..\x`},
		{"slip in a folder's name", []file{{"../x/", ""}}, unpack.FaultName, "../x/"},
		{"absolute", []file{{"/etc/passwd", ""}}, unpack.FaultName, "/etc/passwd"},
		{"share", []file{{`\\host\share`, ""}}, unpack.FaultName, `\\host\share`},
		{"drive", []file{{`C:\x`, ""}}, unpack.FaultName, `C:\x`},
		{"drive with slash", []file{{"c:/x", ""}}, unpack.FaultName, "c:/x"},
		{"only a dot", []file{{".", "x"}}, unpack.FaultName, "."},
		{"too long", []file{{strings.Repeat("a/", 512) + "x", ""}}, unpack.FaultName, strings.Repeat("a/", 512) + "x"},
		{"duplicate", []file{{"a/x", "1"}, {"a/x", "2"}}, unpack.FaultDuplicate, "a/x"},
		{"duplicate in disguise", []file{{"a/x", "1"}, {"./a//x", "2"}}, unpack.FaultDuplicate, "./a//x"},
		{"file, then folder", []file{{"a", "1"}, {"a/b/c", "2"}}, unpack.FaultDuplicate, "a/b/c"},
		{"folder, then file", []file{{"a/b/c", "1"}, {"a/b", "2"}}, unpack.FaultDuplicate, "a/b"},
		{"file, then empty folder", []file{{"a", "1"}, {"a/", ""}}, unpack.FaultDuplicate, "a/"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := walk(t, zipOf(t, tt.files, nil), unpack.Limits{})
			wantFault(t, err, tt.fault, tt.entry)
			if len(got) != 0 {
				t.Errorf("%d files came out of the zip before it was refused", len(got))
			}
			_, err = walk(t, gzipOf(t, tarOf(t, tt.files, nil)), unpack.Limits{})
			wantFault(t, err, tt.fault, tt.entry)
		})
	}
	for _, name := range []string{"", "a\x00b"} { // a tar's writer refuses them
		_, err := walk(t, zipOf(t, []file{{name, "x"}}, nil), unpack.Limits{})
		wantFault(t, err, unpack.FaultName, name)
	}
}

func TestWalk_RefusedTypes(t *testing.T) {
	t.Parallel()
	for _, flag := range []byte{tar.TypeLink, tar.TypeSymlink, tar.TypeChar, tar.TypeBlock, tar.TypeFifo, 'M'} {
		data := tarOf(t, []file{{"evil", ""}}, func(h *tar.Header) { h.Typeflag, h.Linkname = flag, "/etc/passwd" })
		_, err := walk(t, data, unpack.Limits{})
		wantFault(t, err, unpack.FaultType, "evil")
	}
	for _, mode := range []os.FileMode{os.ModeSymlink, os.ModeDevice, os.ModeDevice | os.ModeCharDevice, os.ModeNamedPipe, os.ModeSocket} {
		data := zipOf(t, []file{{"evil", "/etc/passwd"}}, func(h *zip.FileHeader) { h.SetMode(mode | 0o777) })
		_, err := walk(t, data, unpack.Limits{})
		wantFault(t, err, unpack.FaultType, "evil")
	}
}

func TestWalk_FormatFaults(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte("hello"), "gz of a text": gzipOf(t, []byte("hello")), "gz of nothing": gzipOf(t, nil),
		"xz of a text": xzOf(t, []byte("hello")), "xz of nothing": xzOf(t, nil), "zstd of a text": zstdOf(t, []byte("hello")),
		"bz2 of a text": helloAloneBz2(t), "zeros": make([]byte, 10240),
	} {
		_, err := walk(t, data, unpack.Limits{})
		t.Log(name)
		wantFault(t, err, unpack.FaultFormat, "")
	}
}

func TestWalk_Caller(t *testing.T) {
	t.Parallel()
	data := gzipOf(t, tarOf(t, []file{{"a", "12345"}, {"b", "67890"}}, nil))
	in := unpack.FromReaderAt(bytes.NewReader(data), int64(len(data)))
	full := errors.New("disk full")
	err := unpack.Walk(t.Context(), in, unpack.Limits{}, func(unpack.Entry, io.Reader) error { return full })
	if err != full { //nolint:errorlint // the very same value is promised
		t.Errorf("error %v, want the caller's own", err)
	}
	var names []string
	err = unpack.Walk(t.Context(), in, unpack.Limits{}, func(e unpack.Entry, _ io.Reader) error {
		names = append(names, e.Name)
		return nil // unread
	})
	if err != nil || len(names) != 2 {
		t.Errorf("names=%v err=%v, want both", names, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopping := errors.New("stopping")
	err = unpack.Walk(ctx, in, unpack.Limits{}, func(unpack.Entry, io.Reader) error {
		cancel(stopping)
		return nil
	})
	var e *unpack.Error
	if !errors.Is(err, context.Canceled) || !errors.Is(err, stopping) || errors.As(err, &e) {
		t.Errorf("error %v, want context.Canceled and its cause, and no fault", err)
	}
}

// entryOf returns the entry that an error names.
func entryOf(err error) string {
	var e *unpack.Error
	if errors.As(err, &e) {
		return e.Entry
	}
	return ""
}
