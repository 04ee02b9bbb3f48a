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

// compression is a compression of a whole tar.
type compression struct {
	name   string // for people
	format Format // of a tar compressed with it
	is     func(head []byte) bool
	// open decompresses r. Like the command-line tools, the reader continues over concatenated
	// streams, and ends without an error only at the end of r. It keeps at most window bytes of its
	// output in memory.
	open     func(r io.Reader, window int64) (io.ReadCloser, error)
	windowed bool // the compressed data declares the size of the window
}

// compressions lists those that Walk supports.
var compressions = []compression{
	{"gzip", TarGzip, hasPrefix("\x1f\x8b"), func(r io.Reader, _ int64) (io.ReadCloser, error) { return gzip.NewReader(r) }, false},
	{"bzip2", TarBzip2, hasPrefix("BZh"), func(r io.Reader, _ int64) (io.ReadCloser, error) { return io.NopCloser(bzip2.NewReader(r)), nil }, false},
	{"xz", TarXz, hasPrefix("\xfd7zXZ\x00"), openXz, true},
	{"Zstandard", TarZstd, isZstd, openZstd, true},
}

func hasPrefix(magic string) func(head []byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

// isZstd recognizes a Zstandard frame, and a skippable frame (RFC 8878, 3.1.2), which pzstd writes
// first.
func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")) ||
		len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18"
}

func openXz(r io.Reader, window int64) (io.ReadCloser, error) {
	d, err := xz.NewReader(r, uint32(min(window, math.MaxUint32)))
	return io.NopCloser(d), err
}

// openZstd decodes in the caller's goroutine. Of a single-segment frame, the whole content counts
// as the window.
func openZstd(r io.Reader, window int64) (io.ReadCloser, error) {
	size := uint64(max(window, zstd.MinWindowSize))
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(size), zstd.WithDecoderMaxMemory(size))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// compressionOf returns the compression of data that begins with head.
func compressionOf(head []byte) (compression, bool) {
	for _, c := range compressions {
		if c.is(head) {
			return c, true
		}
	}
	return compression{}, false
}

// walkCompressed walks the tar compressed with c. It returns a format fault if there is none.
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

// decoderFault classifies an error of a decoder.
func (w *walker) decoderFault(err error) (Fault, string) {
	switch {
	case errors.Is(err, xz.ErrMemlimit), errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return FaultLimit, fmt.Sprintf("decompressing it needs more than %d bytes of memory; compress it with a smaller dictionary or window",
			w.limits.Window)
	case errors.Is(err, xz.ErrOptions), errors.Is(err, xz.ErrUnsupportedCheck), errors.Is(err, zstd.ErrUnknownDictionary):
		return FaultUnsupported, "it is compressed with unsupported options; compress it with the defaults"
	default:
		return FaultDamaged, "it is damaged or incomplete; pack it again and check the new one"
	}
}
