package s3

import (
	"crypto/sha256"
	"errors"
	"io"
	"sync"
)

const (
	// blockSize is the unit in which a piece's memory grows.
	blockSize = 512 << 10
	// smallContent is stored in memory of its own size, so that a small object does not take a
	// whole block.
	smallContent = 32 << 10
)

// blocks is a pool of memory shared by all stores of the process.
var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// content is a growing sequence of bytes in memory.
type content struct {
	small  []byte             // the whole content while it is small
	blocks []*[blockSize]byte // the whole content afterwards
	size   int
}

// Write appends. It never fails.
func (c *content) Write(p []byte) (int, error) {
	n := len(p)
	if len(c.blocks) == 0 {
		if c.size+n <= smallContent {
			c.small = append(c.small, p...)
			c.size += n
			return n, nil
		}
		before := c.small
		c.small, c.size = nil, 0
		c.append(before)
	}
	c.append(p)
	return n, nil
}

// append writes p into blocks.
func (c *content) append(p []byte) {
	for len(p) > 0 {
		if c.size == len(c.blocks)*blockSize {
			c.blocks = append(c.blocks, blocks.Get().(*[blockSize]byte)) // which holds nothing else
		}
		n := copy(c.blocks[len(c.blocks)-1][c.size%blockSize:], p)
		c.size, p = c.size+n, p[n:]
	}
}

// release returns the memory to the pool. The content must not be used afterwards.
func (c *content) release() {
	for _, b := range c.blocks {
		blocks.Put(b)
	}
	*c = content{}
}

// from returns bytes from the offset at: at least one, unless it is at the end.
func (c *content) from(at int) []byte {
	if len(c.blocks) == 0 {
		return c.small[at:]
	}
	if at == c.size {
		return nil
	}
	return c.blocks[at/blockSize][at%blockSize : min(blockSize, at%blockSize+c.size-at)]
}

// sum returns the SHA-256 of the content.
func (c *content) sum() []byte {
	h := sha256.New()
	for at := 0; at < c.size; {
		some := c.from(at)
		h.Write(some)
		at += len(some)
	}
	return h.Sum(nil)
}

// reader returns a reader of the present content. Several may read concurrently.
func (c *content) reader() io.ReadSeeker { return &contentReader{c: *c} }

type contentReader struct {
	c  content
	at int
}

// Read implements io.Reader.
func (r *contentReader) Read(p []byte) (int, error) {
	if r.at >= r.c.size {
		return 0, io.EOF
	}
	n := copy(p, r.c.from(r.at))
	r.at += n
	return n, nil
}

// Seek implements io.Seeker. The SDK uses it to measure a body and to send it again.
func (r *contentReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += int64(r.at)
	case io.SeekEnd:
		offset += int64(r.c.size)
	}
	if offset < 0 {
		return 0, errors.New("s3: seek before the beginning")
	}
	r.at = int(min(offset, int64(r.c.size)))
	return offset, nil
}
