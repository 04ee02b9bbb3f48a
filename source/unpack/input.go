package unpack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/storage"
)

// Input gives access to the bytes of a container.
type Input struct {
	// Open reads length bytes from offset on. It is called a few times; for a tar only with offset
	// 0.
	Open func(ctx context.Context, offset, length int64) (io.ReadCloser, error)
	// Size is the number of bytes. If there are fewer, that is a system fault.
	Size int64
}

// FromReaderAt returns an Input for the first size bytes of r, such as an *os.File. It does not
// close r.
func FromReaderAt(r io.ReaderAt, size int64) Input {
	return Input{
		Size: size,
		Open: func(_ context.Context, offset, length int64) (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(r, offset, length)), nil
		},
	}
}

// FromStore returns an Input for the size bytes under a key.
func FromStore(s storage.Store, key string, size int64) Input {
	return Input{
		Size: size,
		Open: func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
			return s.Open(ctx, key, offset, length)
		},
	}
}

const (
	readAhead = 256 << 10 // bytes that are read at a time
	maxSkip   = 1 << 20   // a gap up to this size is read over, because jumping may cost a request
)

// cursor is an io.ReaderAt over an Input. It keeps one stream open and continues it as long as
// reads follow one another. It is for one goroutine.
type cursor struct {
	size   int64
	open   func(offset int64) (io.ReadCloser, error)
	ended  func() error // why the walk was cancelled, or nil
	stored io.ReadCloser
	buf    *bufio.Reader
	pos    int64 // offset of the next byte of buf
	err    error // the input's first error
}

func newCursor(ctx context.Context, in Input) *cursor {
	return &cursor{
		size: in.Size,
		open: func(offset int64) (io.ReadCloser, error) { return in.Open(ctx, offset, in.Size-offset) },
		ended: func() error {
			err, cause := ctx.Err(), context.Cause(ctx)
			if err == nil || errors.Is(err, cause) {
				return err
			}
			return fmt.Errorf("%w: %w", err, cause)
		},
	}
}

// ReadAt implements io.ReaderAt.
func (c *cursor) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case c.err != nil:
		return 0, c.err
	case off < 0:
		return 0, fmt.Errorf("read at %d: before the beginning", off)
	case off >= c.size:
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), c.size-off)]
	if err := c.seek(off); err != nil {
		return 0, c.fail(err)
	}
	n, err := c.read(want)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// read fills p from the current position.
func (c *cursor) read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if err := c.ended(); err != nil {
			return n, c.fail(err)
		}
		m, err := c.buf.Read(p[n:])
		n += m
		c.pos += int64(m)
		if n == len(p) {
			return n, nil // a reader may report the end with its last bytes
		}
		if isEnd(err) {
			err = fmt.Errorf("it ends after %d of %d bytes: %w", c.pos, c.size, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return n, c.fail(err)
		}
	}
	return n, nil
}

// seek moves the stream to off.
func (c *cursor) seek(off int64) error {
	if c.stored != nil && off >= c.pos && off-c.pos <= maxSkip {
		n, err := c.buf.Discard(int(off - c.pos))
		c.pos += int64(n)
		if err != nil {
			return fmt.Errorf("read at %d: %w", c.pos, err)
		}
		return nil
	}
	c.close()
	stored, err := c.open(off)
	if err != nil {
		return fmt.Errorf("open at %d: %w", off, err)
	}
	if c.buf == nil {
		c.buf = bufio.NewReaderSize(stored, int(min(readAhead, c.size)))
	} else {
		c.buf.Reset(stored)
	}
	c.stored, c.pos = stored, off
	return nil
}

func (c *cursor) fail(err error) error {
	if c.err == nil {
		c.err = err
	}
	return err
}

func (c *cursor) close() {
	if c.stored != nil {
		_ = c.stored.Close() // only read from
		c.stored = nil
	}
}

// stream returns a reader of the whole input.
func (c *cursor) stream() io.Reader {
	return io.NewSectionReader(c, 0, c.size)
}

// isEnd reports whether a reader is at its end. Only the bare io.EOF counts. A wrapped one is an
// error of the input, such as a closed connection. If it counted as the end, half a container would
// pass for a whole one.
func isEnd(err error) bool {
	return err == io.EOF //nolint:errorlint // see above
}
