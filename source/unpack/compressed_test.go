package unpack_test

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/holdfast/holdfast/source/unpack"
)

// TestWalk_CompressedDamaged checks that a compressed tar is read to its last byte, for every
// compression.
func TestWalk_CompressedDamaged(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("all work and no play ", 500)
	tarred := tarOf(t, []file{{"first", text}, {"second", text}}, nil)
	for name, compress := range compressions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := compress(t, tarred)
			if got, err := walk(t, whole, unpack.Limits{}); err != nil || len(got) != 2 {
				t.Fatalf("%d files, %v", len(got), err)
			}
			for n := 6; n < len(whole); n++ {
				_, err := walk(t, whole[:n], unpack.Limits{})
				damaged(t, "cut after", n, err)
			}
			for n := range whole {
				bad := bytes.Clone(whole)
				bad[n] ^= 0x10
				if got, err := walk(t, bad, unpack.Limits{}); err == nil && !cmp.Equal(got, []file{{"first", text}, {"second", text}}, cmp.AllowUnexported(file{})) {
					t.Errorf("a bit of byte %d flipped: it passed, with other content", n)
				}
			}
			for _, more := range []string{"x", "xy", "more of it", string(whole[:6]), string(whole[:20])} {
				_, err := walk(t, append(bytes.Clone(whole), more...), unpack.Limits{})
				damaged(t, "followed by "+more, len(whole), err)
			}
			// A tar that was split, and each part compressed, is one tar; two tars are not.
			half := len(tarred) / 2
			joined := append(compress(t, tarred[:half]), compress(t, tarred[half:])...)
			if got, err := walk(t, joined, unpack.Limits{}); err != nil || len(got) != 2 {
				t.Errorf("in two streams: %d files, %v", len(got), err)
			}
			_, err := walk(t, append(bytes.Clone(whole), whole...), unpack.Limits{})
			damaged(t, "twice", len(whole), err)
		})
	}
}

func damaged(t *testing.T, what string, n int, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s %d bytes: it passed", what, n)
	}
	wantFault(t, err, unpack.FaultDamaged, entryOf(err))
}

// TestWalk_Window checks the limit of what a decoder may keep in memory.
func TestWalk_Window(t *testing.T) {
	t.Parallel()
	tarred := tarOf(t, []file{{"a", "hello"}}, nil)
	limits := unpack.Limits{Window: 1 << 20}
	var long bytes.Buffer
	e, err := zstd.NewWriter(&long, zstd.WithWindowSize(2<<20), zstd.WithSingleSegment(false))
	must(t, err)
	_, err = e.Write(tarred)
	must(t, err)
	must(t, e.Flush()) // of unknown length, so that the window counts
	must(t, e.Close())
	var big bytes.Buffer
	w, err := xz.WriterConfig{DictCap: 2 << 20}.NewWriter(&big)
	must(t, err)
	_, err = w.Write(tarred)
	must(t, err)
	must(t, w.Close())
	// One segment is its own window: its content's size says how much memory it takes.
	single := []byte("\x28\xb5\x2f\xfd\xa0")
	single = binary.LittleEndian.AppendUint32(single, 2<<20)
	single = append(single, 3|0xf8, 0xff, 0x03) // a block
	for name, data := range map[string][]byte{"zstd": long.Bytes(), "zstd, one segment": single, "xz": big.Bytes()} {
		_, err := walk(t, data, limits)
		t.Log(name, err)
		wantFault(t, err, unpack.FaultLimit, "")
	}
	for name, data := range map[string][]byte{"zstd": long.Bytes(), "xz": big.Bytes()} {
		if got, err := walk(t, data, unpack.Limits{Window: 4 << 20}); err != nil || len(got) != 1 {
			t.Errorf("%s within the limit: %d files, %v", name, len(got), err)
		}
	}
}

// TestWalk_ZstdSkippableFrames checks that skippable frames are skipped, also before the first
// frame, where pzstd puts them.
func TestWalk_ZstdSkippableFrames(t *testing.T) {
	t.Parallel()
	skip := []byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd")
	body := zstdOf(t, tarOf(t, []file{{"a", "hello"}}, nil))
	data := append(append(bytes.Clone(skip), body...), skip...)
	got, err := walk(t, data, unpack.Limits{})
	if want := []file{{"a", "hello"}}; err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(file{})) {
		t.Errorf("got %v, %v", got, err)
	}
	if f := unpack.Detect(data); f != unpack.TarZstd {
		t.Errorf("it is taken for %q", f)
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	files := []file{{"a", strings.Repeat("hello ", 1000)}}
	tarred := tarOf(t, files, func(h *tar.Header) { h.Format = tar.FormatPAX })
	for want, data := range map[unpack.Format][]byte{
		unpack.Zip: zipOf(t, files, nil), unpack.Tar: tarred, unpack.TarGzip: gzipOf(t, tarred), unpack.TarBzip2: helloBz2(t),
		unpack.TarXz: xzOf(t, tarred), unpack.TarZstd: zstdOf(t, tarred),
	} {
		if got := unpack.Detect(data); got != want {
			t.Errorf("%s is taken for %q", want, got)
		}
		if got := unpack.Detect(data[:min(len(data), 5)]); got != "" && got != unpack.Zip {
			t.Errorf("five bytes of %s are taken for %q", want, got)
		}
	}
	for name, data := range map[string][]byte{
		"gz": gzipOf(t, []byte("hello")), "bz2": helloAloneBz2(t), "xz": xzOf(t, []byte("hello")), "zst": zstdOf(t, []byte("hello")),
		"nothing": nil, "text": []byte("hello"),
	} {
		if got := unpack.Detect(data); got != "" {
			t.Errorf("%s is taken for %q", name, got)
		}
	}
}
