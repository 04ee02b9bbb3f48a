package bagit

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
)

// chunkSize is how many octets of a file are read at a time. A file of one chunk is hashed without
// goroutines.
const chunkSize = 1 << 20

// takeDigests reads r to its end. It returns the digests of the set, concatenated, and the number
// of octets. Each algorithm runs in a goroutine while the next chunk is read. bufs lends the
// chunks.
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

// fill reads until buf is full or the reader ends. Unlike io.ReadFull it distinguishes a clean end
// (io.EOF) from a source that itself returns io.ErrUnexpectedEOF because it was cut off.
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

// hideEOF wraps an error so that callers do not take a wrapped io.EOF for a clean end.
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

// hashingReader hashes and counts what is read through it. It fails once stopped returns an error.
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

// drain reads the rest, so that digests and size cover the whole file.
func (h *hashingReader) drain() error {
	_, err := io.Copy(io.Discard, h)
	return err
}
