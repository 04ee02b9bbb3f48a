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

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/storage"
)

// BlockSize is how many bytes of a staged file are compared at a time.
const BlockSize = 1 << 20

// Blocks is a staged file that may be read more than once, and whose bytes are the same each time:
// the digest of each block is kept when it is first read, and compared whenever it is read again.
// So a staging area that gives other bytes to another reader, or later, is found out before one of
// them is used. Memory is 32 bytes for each BlockSize, and a file of one block is kept whole, and
// read once.
//
// A file that is read from its beginning on is read in one pass, and whoever did so asks Prove in
// the end. One that is read elsewhere first is read as a whole before. It belongs to one goroutine.
type Blocks struct {
	store  storage.Store
	key    string
	want   string    // the file's digest; "": nobody knows it
	whole  hash.Hash // of the blocks so far
	sums   [][sha256.Size]byte
	proven bool   // the last block is among them, and the digest of the whole is right
	small  []byte // all of a proven file, when it has one block
}

// NewBlocks returns the file under a key, whose bytes must have a digest, lower-case hex by an
// algorithm that fixity knows. It reads nothing yet. Without a digest the file need only stay as it
// was first read.
func NewBlocks(s storage.Store, key, algorithm, digest string) (*Blocks, error) {
	h, err := fixity.New(algorithm)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return &Blocks{store: s, key: key, want: digest, whole: h}, nil
}

// Proven returns the file when it was read as a whole and found to have its digest: nothing else is
// ever read from it. The error wraps storage.ErrNotFound or ErrDamaged.
func Proven(ctx context.Context, s storage.Store, key, algorithm, digest string) (*Blocks, error) {
	b, err := NewBlocks(s, key, algorithm, digest)
	if err != nil {
		return nil, err
	}
	return b, b.Prove(ctx)
}

// Prove reads what was not read yet, and says whether all is as it was staged: an error that wraps
// ErrDamaged says that it is not, and then nothing counts that was made of it.
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

// Open reads length bytes from offset on, or to the end when length is negative or reaches past it.
// Reading returns ErrDamaged in place of bytes that are not those that were read before.
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

// Count is how many blocks were read so far.
func (b *Blocks) Count() int { return len(b.sums) }

// Sum is what the first n blocks come to; "" when fewer were read.
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

// take compares block n with what it was, or keeps its digest.
func (b *Blocks) take(n int, data []byte) error {
	switch {
	case n < len(b.sums):
		if sha256.Sum256(data) != b.sums[n] {
			return fmt.Errorf("%s: %w: it changed while it was read", b.key, ErrDamaged)
		}
		return nil
	case len(data) > 0:
		b.sums = append(b.sums, sha256.Sum256(data))
		b.whole.Write(data)
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
	ctx  context.Context //nolint:containedctx // of one reading
	of   *Blocks
	in   io.ReadCloser // nil: not opened yet
	next int           // the block to be read
	buf  bytes.Buffer
	rest []byte // of the block in hand
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

// load reads the next block, and compares it. It returns io.EOF behind the last one.
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
	if err := b.take(r.next, r.buf.Bytes()); err != nil {
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

// limited is the beginning of a reader.
type limited struct {
	io.Reader
	io.Closer
}
