package bagit

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
)

// chunkSize is how much of a file is read at a time; files of one chunk are hashed without
// goroutines.
const chunkSize = 1 << 20

// takeDigests reads r to its end and returns the digests of the set one after the other, and the
// count of octets. Each algorithm runs on a core of its own while the next chunk is read. bufs
// lends the chunks.
func takeDigests(ctx context.Context, r io.Reader, set algSet, bufs *sync.Pool) (digests []byte, size int64, err error) {
	hashes := newHashes(set)
	var wave sync.WaitGroup
	lent := [2]*[]byte{borrow(bufs), borrow(bufs)}
	defer func() {
		wave.Wait() // the hashes may still read the chunks
		bufs.Put(lent[0])
		bufs.Put(lent[1])
	}()
	for i := 0; ; i++ {
		if ctx.Err() != nil {
			return nil, size, context.Cause(ctx)
		}
		n, err := fill(r, *lent[i%2])
		size += int64(n)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return nil, size, err
		}
		chunk := (*lent[i%2])[:n]
		wave.Wait()
		if last || len(hashes) == 1 {
			for _, h := range hashes {
				h.Write(chunk)
			}
		} else {
			for _, h := range hashes {
				wave.Go(func() { h.Write(chunk) })
			}
		}
		if last {
			return sumAll(hashes), size, nil
		}
	}
}

// fill reads until buf is full or the reader ends. Unlike io.ReadFull it tells a clean end (io.EOF)
// from a source that itself says io.ErrUnexpectedEOF because it was cut off.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for idle := 0; n < len(buf) && err == nil; {
		var m int
		m, err = r.Read(buf[n:])
		n += m
		if m > 0 {
			idle = 0
		} else if idle++; err == nil && idle > 100 {
			err = io.ErrNoProgress
		}
	}
	if err == io.EOF { // a wrapped io.EOF is not the end of the file
		return n, io.EOF
	}
	if err != nil {
		return n, fmt.Errorf("read: %w", hideEOF(err))
	}
	return n, nil
}

// hideEOF keeps a wrapped io.EOF from being taken for a clean end further up.
func hideEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, err) //nolint:errorlint // the cause is hidden on purpose
	}
	return err
}

func borrow(bufs *sync.Pool) *[]byte {
	if b, ok := bufs.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, chunkSize)
	return &b
}

func newHashes(set algSet) []hash.Hash {
	var hashes []hash.Hash
	for _, a := range set.list() {
		hashes = append(hashes, a.new())
	}
	return hashes
}

func sumAll(hashes []hash.Hash) []byte {
	var out []byte
	for _, h := range hashes {
		out = h.Sum(out)
	}
	return out
}

// hashingReader takes the digests of what is read through it, counts it, and ends when stopped says
// so.
type hashingReader struct {
	r       io.Reader
	hashes  []hash.Hash
	size    int64
	stopped func() error
}

// Read implements io.Reader.
func (h *hashingReader) Read(p []byte) (int, error) {
	if err := h.stopped(); err != nil {
		return 0, err
	}
	n, err := h.r.Read(p)
	for _, hs := range h.hashes {
		hs.Write(p[:n])
	}
	h.size += int64(n)
	return n, err
}

// drain reads the rest, so that digests and size are of the whole file.
func (h *hashingReader) drain() error {
	_, err := io.Copy(io.Discard, h)
	return err
}
