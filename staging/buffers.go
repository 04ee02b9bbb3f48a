package staging

import (
	"io"
	"sync"
	"sync/atomic"
)

const (
	// chunk is how many bytes are transferred at a time.
	chunk = 256 << 10
	// readAhead is how many chunks of a file may be in memory between the network and a slow disk.
	readAhead = 8
)

// Buffers is a pool of memory for transfers. Any number of fetches may share it. The zero value is
// ready to use.
type Buffers struct {
	pool sync.Pool
}

// Copy copies r to w, a chunk at a time.
func (b *Buffers) Copy(w io.Writer, r io.Reader) (int64, error) {
	lent := b.lend()
	defer b.takeBack([]*block{lent})
	// Hide ReaderFrom and WriterTo, which would bypass the chunk.
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, lent.buf)
}

// block is one chunk in transfer.
type block struct {
	buf   []byte // all of its memory
	n     int    // bytes in use
	users atomic.Int32
	save  bool // make a checkpoint after it
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
