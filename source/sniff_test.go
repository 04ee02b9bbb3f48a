package source_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
)

// zipOf makes a zip of stored files, each of which holds content, or what follows "=" in its name.
func zipOf(t testing.TB, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		name, text, found := bytes.Cut([]byte(name), []byte("="))
		if !found {
			text = []byte(content)
		}
		f, err := w.CreateHeader(&zip.FileHeader{Name: string(name), Method: zip.Store, CRC32: 1, CompressedSize64: 1, UncompressedSize64: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(t testing.TB, name string, size int) []byte {
	t.Helper()
	data := make([]byte, size)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(size), Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func xzOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	if err == nil {
		_, err = w.Write(data)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstdOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err == nil {
		_, err = w.Write(data)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// aTarBz2 is a tar of one file "a.txt" that holds "hello", as `tar cj` makes it.
const aTarBz2 = "QlpoOTFBWSZTWZHcsD4AAG/7hMmAAEJAAWeAAAhiRJ5AAACACCAAVDSGpo0wEyZG0EkU0DRoMhoFfmizoQdQASM5XmkcbiTJIHBh6vxZBJUMh3Y32XRpqHlcJn4UFxV2NGik0kuiIgNi7kinChISO5YHwA=="

func TestSniff(t *testing.T) {
	t.Parallel()
	bz2, err := base64.StdEncoding.DecodeString(aTarBz2)
	if err != nil {
		t.Fatal(err)
	}
	docx := zipOf(t, "[Content_Types].xml", "_rels/.rels", "word/document.xml")
	tests := []struct {
		name string
		head []byte
		want unpack.Format
	}{
		{"nothing", nil, ""},
		{"text", []byte(content), ""},
		{"zip", zipOf(t, "a.txt", "b/c.txt"), unpack.Zip},
		{"empty zip", zipOf(t), unpack.Zip},
		{"zip of documents", zipOf(t, "report.docx="+string(docx)), unpack.Zip},
		{"zip with a folder called word", zipOf(t, "word/a.txt"), unpack.Zip},
		{"zip of a kmz", zipOf(t, "places.kmz="+string(zipOf(t, "doc.kml"))), unpack.Zip},
		{"bag in a zip", zipOf(t, "bag/bagit.txt", "bag/data/x"), unpack.Zip},
		{"docx", docx, ""},
		{"xlsx", zipOf(t, "[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"), ""},
		{"pptx", zipOf(t, "[Content_Types].xml", "_rels/.rels", "ppt/presentation.xml"), ""},
		{"epub", zipOf(t, "mimetype=application/epub+zip", "META-INF/container.xml"), ""},
		{"odt", zipOf(t, "mimetype=application/vnd.oasis.opendocument.text", "content.xml"), ""},
		{"jar", zipOf(t, "META-INF/MANIFEST.MF", "A.class"), ""},
		{"kmz", zipOf(t, "doc.kml"), ""},
		{"tar", tarOf(t, "a", 10), unpack.Tar},
		{"tar.gz", gzipOf(t, tarOf(t, "a", 10)), unpack.TarGzip},
		{"tar.gz, its head", gzipOf(t, tarOf(t, "a", 1<<20))[:4096], unpack.TarGzip},
		{"gz", gzipOf(t, []byte(content)), ""},
		{"gz, cut", gzipOf(t, tarOf(t, "a", 10))[:12], ""},
		{"tar.bz2", bz2, unpack.TarBzip2},
		{"bz2", []byte("BZh91AY&SY"), ""},
		{"tar.xz", xzOf(t, tarOf(t, "a", 10)), unpack.TarXz},
		{"tar.xz, its head", xzOf(t, tarOf(t, "a", 100<<10))[:20<<10], unpack.TarXz},
		{"xz", xzOf(t, []byte(content)), ""},
		{"tar.zst", zstdOf(t, tarOf(t, "a", 10)), unpack.TarZstd},
		{"tar.zst, its head", zstdOf(t, tarOf(t, "a", 300<<10))[:150<<10], unpack.TarZstd},
		{"zst", zstdOf(t, []byte(content)), ""},
		{"zst, cut", zstdOf(t, tarOf(t, "a", 10))[:20], ""},
	}
	for _, tt := range tests {
		if got := source.Sniff(tt.head); got != tt.want {
			t.Errorf("%s: kind=%s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestSniff_RealFiles(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "shared", "cases", "merritt", "sampleFiles")
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("real sample files are absent: %v", err)
	}
	for name, want := range map[string]unpack.Format{
		"brain_v1.tar.gz": unpack.TarGzip, "brain_v2.zip": unpack.Zip, "huskyChicken.zip": unpack.Zip,
		"jazzbears.zip": unpack.Zip, "4blocks.jpg": "", "4blocks.checkm": "",
	} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := source.Sniff(data[:min(len(data), source.SniffLen)]); got != want {
			t.Errorf("%s: kind=%s, want %s", name, got, want)
		}
	}
}

func FuzzSniff(f *testing.F) {
	bz2, err := base64.StdEncoding.DecodeString(aTarBz2)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{zipOf(f, "a"), tarOf(f, "a", 10), gzipOf(f, tarOf(f, "a", 10)), bz2, xzOf(f, tarOf(f, "a", 10)), zstdOf(f, tarOf(f, "a", 10))} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		kind := source.Sniff(head)
		if len(head) < 4 && kind != "" {
			t.Errorf("%q is called %s", head, kind)
		}
	})
}
