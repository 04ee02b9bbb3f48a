package staging

import (
	"io"
	"sync"
	"sync/atomic"
)

const (
	// chunk is how many bytes are moved at a time.
	chunk = 256 << 10
	// readAhead is how many chunks of a file may be in memory: what lies between the network and a
	// slow disk.
	readAhead = 8
)

// Buffers lends the memory that fetches move bytes through. One may serve any number of fetches at
// once. The zero value is ready to use.
type Buffers struct {
	pool sync.Pool
}

// Copy moves what r has to w, a chunk at a time.
func (b *Buffers) Copy(w io.Writer, r io.Reader) (int64, error) {
	lent := b.lend()
	defer b.takeBack([]*block{lent})
	// Wrapped, so that neither end finds a way around the chunk.
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, lent.buf)
}

// block is one chunk on its way.
type block struct {
	buf   []byte // all of its memory
	n     int    // bytes in use
	users atomic.Int32
	save  bool // a checkpoint is due after it
}

func (b *block) data() []byte { return b.buf[:b.n] }

func (b *Buffers) lend() *block {
	if b == nil {
		return &block{buf: make([]byte, chunk)}
	}
	if have, ok := b.pool.Get().(*block); ok {
		have.n, have.save = 0, false
		return have
	}
	return &block{buf: make([]byte, chunk)}
}

func (b *Buffers) takeBack(lent []*block) {
	if b == nil {
		return
	}
	for _, l := range lent {
		b.pool.Put(l)
	}
}
