package unpack

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
)

// compression is a way in which a whole tar may be packed.
type compression struct {
	name   string // as people call it
	format Format // of a tar that is packed in it
	is     func(head []byte) bool
	// open undoes it. The reader goes on over streams that follow one another, as the tools do, and
	// ends without an error only at the end of r. It keeps at most window bytes of what it has
	// undone in memory.
	open     func(r io.Reader, window int64) (io.ReadCloser, error)
	windowed bool // the compressor says how large the window is
}

// compressions are those that Walk undoes.
var compressions = []compression{
	{"gzip", TarGzip, hasPrefix("\x1f\x8b"), func(r io.Reader, _ int64) (io.ReadCloser, error) { return gzip.NewReader(r) }, false},
	{"bzip2", TarBzip2, hasPrefix("BZh"), func(r io.Reader, _ int64) (io.ReadCloser, error) { return io.NopCloser(bzip2.NewReader(r)), nil }, false},
	{"xz", TarXz, hasPrefix("\xfd7zXZ\x00"), openXz, true},
	{"Zstandard", TarZstd, isZstd, openZstd, true},
}

func hasPrefix(magic string) func(head []byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

// isZstd takes a frame that is to be skipped for a beginning, too (RFC 8878, 3.1.2): pzstd writes
// one first.
func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")) ||
		len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18"
}

func openXz(r io.Reader, window int64) (io.ReadCloser, error) {
	d, err := xz.NewReader(r, uint32(min(window, math.MaxUint32)))
	return io.NopCloser(d), err
}

// openZstd decodes in the caller's goroutine, and takes a frame that is one segment for its own
// window.
func openZstd(r io.Reader, window int64) (io.ReadCloser, error) {
	size := uint64(max(window, zstd.MinWindowSize))
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(size), zstd.WithDecoderMaxMemory(size))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// compressionOf returns how something that begins with head is compressed, or false.
func compressionOf(head []byte) (compression, bool) {
	for _, c := range compressions {
		if c.is(head) {
			return c, true
		}
	}
	return compression{}, false
}

// walkCompressed walks the tar that is packed in c, or says that there is none.
func (w *walker) walkCompressed(c compression) error {
	r, err := c.open(w.cursor.stream(), w.limits.Window)
	if err != nil {
		return w.readFault("", err)
	}
	defer r.Close()
	buf := bufio.NewReaderSize(r, 64<<10)
	head, err := buf.Peek(tarBlock)
	if err != nil && !isEnd(err) {
		return w.readFault("", err)
	}
	if !isTar(head) {
		return formatFault("it is one file compressed with " + c.name + ", not a container; submit it as a file")
	}
	return w.walkTar(buf, "tar in "+c.name)
}

// decoderFault tells errors of decoders apart that do not mean damage.
func (w *walker) decoderFault(err error) (Fault, string) {
	switch {
	case errors.Is(err, xz.ErrMemlimit), errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return FaultLimit, fmt.Sprintf("to decompress it takes more than %d bytes of memory; compress it with a smaller dictionary or window",
			w.limits.Window)
	case errors.Is(err, xz.ErrOptions), errors.Is(err, xz.ErrUnsupportedCheck), errors.Is(err, zstd.ErrUnknownDictionary):
		return FaultUnsupported, "it is compressed with options that are not undone here; compress it with the defaults"
	default:
		return FaultDamaged, "it is damaged or incomplete; pack it again and check the new one"
	}
}
