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
	// mostAhead is how many chunks all transfers may have in memory beside one each.
	mostAhead = 64
)

// Buffers is a pool of memory for transfers. Any number of fetches may share it. The zero value is
// ready to use.
type Buffers struct {
	pool  sync.Pool
	ahead atomic.Int64 // chunks beside one for each transfer
}

// Copy copies r to w, a chunk at a time.
func (b *Buffers) Copy(w io.Writer, r io.Reader) (int64, error) {
	lent := b.lend()
	defer b.takeBack(lent)
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

// lendMore returns another chunk for a transfer that has one; nil if there is none to spare now.
func (b *Buffers) lendMore() *block {
	if b != nil && b.ahead.Add(1) > mostAhead {
		b.ahead.Add(-1)
		return nil
	}
	return b.lend()
}

// takeBackMore takes back the chunks of lendMore.
func (b *Buffers) takeBackMore(lent []*block) {
	b.takeBack(lent...)
	if b != nil {
		b.ahead.Add(-int64(len(lent)))
	}
}

func (b *Buffers) takeBack(lent ...*block) {
	if b == nil {
		return
	}
	for _, l := range lent {
		b.pool.Put(l)
	}
}
