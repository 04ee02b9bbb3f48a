package staging

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/storage"
)

// listBuffer is how many bytes of a list are read or written at a time.
const listBuffer = 64 << 10

// ListDigest is the algorithm of lists' digests.
const ListDigest = "sha256"

// ListMark is a checkpoint of a list: its durable bytes, and their digest.
type ListMark struct {
	Stored storage.Checkpoint `json:"stored"`
	Digest fixity.State       `json:"digest"`
}

// ListWriter writes a list of any length as JSON lines. It must not be used concurrently.
type ListWriter[T any] struct {
	w   storage.Writer
	d   *fixity.Digester
	buf *bufio.Writer
	enc *json.Encoder
}

// CreateList starts a list under a key of this attempt. Commit makes it readable. Unless it was
// committed, Abort deletes it, and Close leaves it at its last checkpoint.
func CreateList[T any](ctx context.Context, s storage.Creator, key string) (*ListWriter[T], error) {
	d, err := fixity.NewDigester(ListDigest)
	if err != nil {
		return nil, fmt.Errorf("create list %s: %w", key, err)
	}
	w, err := s.Create(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("create list %s: %w", key, err)
	}
	return newList[T](w, d), nil
}

// ResumeList starts a list under a key of this attempt with the entries up to an earlier list's
// checkpoint. It returns storage.ErrNotFound if those entries are gone, or their digest cannot be
// continued.
func ResumeList[T any](ctx context.Context, s storage.Store, key string, at ListMark) (*ListWriter[T], error) {
	d, err := fixity.NewDigester(ListDigest)
	if err == nil && (at.Stored.Size != at.Digest.Size || !d.Restore(at.Digest)) {
		err = storage.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("resume list %s: %w", key, err)
	}
	w, err := s.Resume(ctx, key, at.Stored)
	if err != nil {
		return nil, fmt.Errorf("resume list %s: %w", key, err)
	}
	return newList[T](w, d), nil
}

func newList[T any](w storage.Writer, d *fixity.Digester) *ListWriter[T] {
	buf := bufio.NewWriterSize(io.MultiWriter(w, d), listBuffer)
	return &ListWriter[T]{w: w, d: d, buf: buf, enc: json.NewEncoder(buf)}
}

// Checkpoint makes the entries so far durable, for ResumeList.
func (l *ListWriter[T]) Checkpoint(ctx context.Context) (at ListMark, err error) {
	if err := l.buf.Flush(); err != nil {
		return at, fmt.Errorf("write list: %w", err)
	}
	if at.Stored, err = l.w.Checkpoint(ctx); err != nil {
		return at, fmt.Errorf("keep list: %w", err)
	}
	if at.Digest, err = l.d.State(); err != nil {
		return at, fmt.Errorf("keep list: %w", err)
	}
	return at, nil
}

// Digest returns the digest, by [ListDigest], of the entries added before the last Checkpoint or
// Commit. ReadList compares with it.
func (l *ListWriter[T]) Digest() string { return l.d.Sums()[ListDigest] }

// Add appends one entry.
func (l *ListWriter[T]) Add(v T) error {
	if err := l.enc.Encode(v); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	return nil
}

// Commit makes the list durable and readable. It returns storage.ErrExists if the key is taken.
func (l *ListWriter[T]) Commit(ctx context.Context) error {
	if err := l.buf.Flush(); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	if _, err := l.w.Commit(ctx); err != nil {
		return fmt.Errorf("commit list: %w", err)
	}
	return nil
}

// Abort deletes the list with its checkpoints, unless it was committed.
func (l *ListWriter[T]) Abort() error { return l.w.Abort() }

// Close leaves the list at its last checkpoint, unless it was committed or aborted.
func (l *ListWriter[T]) Close() error { return l.w.Close() }

// ReadList yields a list's entries in order. An error ends it: it wraps storage.ErrNotFound if
// there is no list, and ErrDamaged if it is not the list that was written. Every entry yielded is
// from that list. To guarantee this, a list of more than one block is read twice: see [Blocks].
func ReadList[T any](ctx context.Context, s storage.Store, key, digest string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		failed := func(err error) { yield(zero, fmt.Errorf("read list %s: %w", key, err)) }
		b, err := Proven(ctx, s, key, ListDigest, digest)
		if err != nil {
			failed(err)
			return
		}
		r, err := b.Open(ctx, 0, -1)
		if err != nil {
			failed(err)
			return
		}
		defer r.Close()
		dec := json.NewDecoder(bufio.NewReaderSize(r, listBuffer))
		for {
			var v T
			if err := dec.Decode(&v); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				failed(err)
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
