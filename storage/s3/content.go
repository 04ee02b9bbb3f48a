package s3

import (
	"crypto/sha256"
	"errors"
	"io"
	"sync"
)

const (
	// blockSize is by how much the memory of a piece grows.
	blockSize = 512 << 10
	// smallContent lies in memory of its own size, so that many small objects do not each take a
	// block.
	smallContent = 32 << 10
)

// blocks lends memory, across all stores of the process.
var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// content is bytes in memory, in the order in which they were written.
type content struct {
	small  []byte             // all of it, while that is little
	blocks []*[blockSize]byte // all of it, afterwards
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

// append fills blocks.
func (c *content) append(p []byte) {
	for len(p) > 0 {
		if c.size == len(c.blocks)*blockSize {
			c.blocks = append(c.blocks, blocks.Get().(*[blockSize]byte)) // which holds nothing else
		}
		n := copy(c.blocks[len(c.blocks)-1][c.size%blockSize:], p)
		c.size, p = c.size+n, p[n:]
	}
}

// release gives the memory back. The content must not be used after it.
func (c *content) release() {
	for _, b := range c.blocks {
		blocks.Put(b)
	}
	*c = content{}
}

// from returns bytes from the offset at on: some, unless it is at the end.
func (c *content) from(at int) []byte {
	if len(c.blocks) == 0 {
		return c.small[at:]
	}
	if at == c.size {
		return nil
	}
	return c.blocks[at/blockSize][at%blockSize : min(blockSize, at%blockSize+c.size-at)]
}

// sum is the SHA-256 of the content.
func (c *content) sum() []byte {
	h := sha256.New()
	for at := 0; at < c.size; {
		some := c.from(at)
		h.Write(some)
		at += len(some)
	}
	return h.Sum(nil)
}

// reader returns a reader of what is there now. Several may read at once.
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

// Seek implements io.Seeker: the SDK measures a body, and sends it again, by it.
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
