package staging

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"sync"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/storage"
)

// BlockSize is how many bytes of a staged file are compared at a time.
const BlockSize = 1 << 20

// Blocks reads a staged file repeatedly and guarantees that its bytes are the same each time. It
// stores the digest of each block at the first read, and compares it at every further read. A
// staging area that returns other bytes later, or to another reader, is thus detected before one of
// them is used. It takes 32 bytes of memory per BlockSize; a file of one block is kept whole and
// read once.
//
// A file that is read from its beginning is read in one pass; the reader calls Prove at the end. A
// file that is first read elsewhere is read as a whole before. Blocks must not be used
// concurrently.
type Blocks struct {
	store  storage.Store
	key    string
	want   string    // the file's digest; "": unknown
	whole  hash.Hash // of the blocks so far
	sums   [][sha256.Size]byte
	proven bool   // all blocks were read, and the digest of the whole file is right
	small  []byte // content of a proven file of one block
}

// NewBlocks returns the file under a key, whose bytes must have the digest (lower-case hex, by an
// algorithm of package fixity). It reads nothing yet. Without a digest, the file only has to stay
// as it was first read.
func NewBlocks(s storage.Store, key, algorithm, digest string) (*Blocks, error) {
	h, err := fixity.New(algorithm)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return &Blocks{store: s, key: key, want: digest, whole: h}, nil
}

// Proven returns the file after reading all of it and comparing its digest: only those bytes can be
// read from it. The error wraps storage.ErrNotFound or ErrDamaged.
func Proven(ctx context.Context, s storage.Store, key, algorithm, digest string) (*Blocks, error) {
	b, err := NewBlocks(s, key, algorithm, digest)
	if err != nil {
		return nil, err
	}
	return b, b.Prove(ctx)
}

// Prove reads the rest of the file and compares the digest. If the error wraps ErrDamaged, discard
// everything that was derived from the file.
func (b *Blocks) Prove(ctx context.Context) error {
	if b.proven {
		return nil
	}
	r := b.reader(ctx, len(b.sums))
	defer r.Close() //nolint:errcheck // only read from
	for {
		if err := r.load(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Open returns a reader of length bytes from offset, or to the end if length is negative or too
// large. A read returns ErrDamaged instead of bytes that differ from those read before.
func (b *Blocks) Open(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
	at := offset / BlockSize
	if at > int64(len(b.sums)) {
		if err := b.Prove(ctx); err != nil {
			return nil, err
		}
	}
	r := b.reader(ctx, int(at))
	if err := r.load(); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, r.Close())
	}
	r.rest = r.rest[min(offset%BlockSize, int64(len(r.rest))):]
	if length < 0 {
		return r, nil
	}
	return &limited{io.LimitReader(r, length), r}, nil
}

// Count returns how many blocks were read so far.
func (b *Blocks) Count() int { return len(b.sums) }

// Sum returns a digest of the first n blocks; "" if fewer were read.
func (b *Blocks) Sum(n int) string {
	if n > len(b.sums) {
		return ""
	}
	h := sha256.New()
	for _, sum := range b.sums[:n] {
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// verify compares block n with its digest, or stores the digest at the first read.
func (b *Blocks) verify(n int, data []byte) error {
	switch {
	case n < len(b.sums):
		if sha256.Sum256(data) != b.sums[n] {
			return fmt.Errorf("%s: %w: it changed while it was read", b.key, ErrDamaged)
		}
		return nil
	case len(data) > 0:
		var whole sync.WaitGroup
		whole.Go(func() { b.whole.Write(data) })
		b.sums = append(b.sums, sha256.Sum256(data))
		whole.Wait()
	}
	if len(data) == BlockSize {
		return nil
	}
	if got := hex.EncodeToString(b.whole.Sum(nil)); b.want != "" && !strings.EqualFold(got, b.want) {
		return fmt.Errorf("%s: %w: its digest is %s, not %s", b.key, ErrDamaged, got, b.want)
	}
	b.proven = true
	if n == 0 {
		b.small = bytes.Clone(data)
	}
	return nil
}

func (b *Blocks) reader(ctx context.Context, next int) *blockReader {
	return &blockReader{ctx: ctx, of: b, next: next}
}

// blockReader reads a file block by block.
type blockReader struct {
	ctx  context.Context //nolint:containedctx // of one read
	of   *Blocks
	in   io.ReadCloser // nil: not opened yet
	next int           // the next block
	buf  bytes.Buffer
	rest []byte // rest of the present block
	err  error  // sticky
}

// Read implements io.Reader.
func (r *blockReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if err := r.load(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// load reads and verifies the next block. It returns io.EOF after the last one.
func (r *blockReader) load() error {
	if r.err == nil {
		r.err = r.block()
	}
	return r.err
}

func (r *blockReader) block() error {
	b := r.of
	if b.proven && r.next >= len(b.sums) {
		return io.EOF
	}
	if r.next == 0 && b.small != nil {
		r.rest, r.next = b.small, 1
		return nil
	}
	if r.in == nil {
		in, err := b.store.Open(r.ctx, b.key, int64(r.next)*BlockSize, -1)
		if errors.Is(err, storage.ErrRange) {
			return fmt.Errorf("%s: %w: it is shorter", b.key, ErrDamaged)
		} else if err != nil {
			return fmt.Errorf("read %s: %w", b.key, err)
		}
		r.in = in
	}
	r.buf.Reset()
	if _, err := r.buf.ReadFrom(io.LimitReader(storage.Interruptible(r.ctx, r.in), BlockSize)); err != nil {
		return fmt.Errorf("read %s: %w", b.key, err)
	}
	if err := b.verify(r.next, r.buf.Bytes()); err != nil {
		return err
	}
	r.next++
	if r.rest = r.buf.Bytes(); len(r.rest) == 0 {
		return io.EOF
	}
	return nil
}

// Close implements io.Closer.
func (r *blockReader) Close() error {
	if r.in == nil {
		return nil
	}
	return r.in.Close()
}

// limited is the beginning of a reader, with its Close.
type limited struct {
	io.Reader
	io.Closer
}
