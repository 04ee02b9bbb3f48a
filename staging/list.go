package staging

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/storage"
)

// listBuffer is how many bytes of a list are written at a time.
const listBuffer = 64 << 10

// maxInline is the size in bytes of the lists that are kept where their name is. A job of a few
// files then stages nothing but those files.
const maxInline = 4 << 10

// ListDigest is the algorithm of lists' digests.
const ListDigest = "sha256"

// ListMark is a checkpoint of a list: its durable bytes, and their digest.
type ListMark struct {
	Stored storage.Checkpoint `json:"stored"`
	Digest fixity.State       `json:"digest"`
}

// List names a list: its key, its digest by [ListDigest], and its entries if it is short.
type List struct {
	Key    string `json:"list"`
	Digest string `json:"digest,omitempty"` // "" if an earlier program wrote it
	Inline string `json:"inline,omitempty"` // the entries of a short list, which is not stored
}

// ListWriter writes a list of any length as JSON lines. It must not be used concurrently.
type ListWriter[T any] struct {
	list   List
	create func() (storage.Writer, error)
	w      storage.Writer // nil: nothing is stored yet
	d      *fixity.Digester
	buf    bytes.Buffer
	enc    *json.Encoder
	inline int // bytes of a list that is not stored
}

// CreateList starts a list under a key of this attempt. Commit makes it readable. Unless it was
// committed, Abort deletes it, and Close leaves it at its last checkpoint. A short list is not
// stored: its List has the entries.
func CreateList[T any](ctx context.Context, s storage.Creator, key string) (*ListWriter[T], error) {
	l, err := CreateStoredList[T](ctx, s, key)
	if err == nil {
		l.inline = maxInline
	}
	return l, err
}

// CreateStoredList is CreateList for a list that is stored even if it is short.
func CreateStoredList[T any](ctx context.Context, s storage.Creator, key string) (*ListWriter[T], error) {
	d, err := fixity.NewDigester(ListDigest)
	if err != nil {
		return nil, fmt.Errorf("create list %s: %w", key, err)
	}
	l := newList[T](key, d)
	l.create = func() (storage.Writer, error) { return s.Create(ctx, key) }
	return l, nil
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
	l := newList[T](key, d)
	l.w = w
	return l, nil
}

func newList[T any](key string, d *fixity.Digester) *ListWriter[T] {
	l := &ListWriter[T]{list: List{Key: key}, d: d}
	l.enc = json.NewEncoder(&l.buf)
	return l
}

// flush stores the buffered entries.
func (l *ListWriter[T]) flush() (err error) {
	if l.w == nil {
		if l.w, err = l.create(); err != nil {
			return fmt.Errorf("create list %s: %w", l.list.Key, err)
		}
	}
	_, _ = l.d.Write(l.buf.Bytes()) // a digest takes everything
	if _, err := l.w.Write(l.buf.Bytes()); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	l.buf.Reset()
	return nil
}

// Checkpoint makes the entries so far durable, for ResumeList.
func (l *ListWriter[T]) Checkpoint(ctx context.Context) (at ListMark, err error) {
	if err := l.flush(); err != nil {
		return at, err
	}
	if at.Stored, err = l.w.Checkpoint(ctx); err != nil {
		return at, fmt.Errorf("keep list: %w", err)
	}
	if at.Digest, err = l.d.State(); err != nil {
		return at, fmt.Errorf("keep list: %w", err)
	}
	return at, nil
}

// List names the committed list, for ReadList.
func (l *ListWriter[T]) List() List {
	l.list.Digest = l.d.Sums()[ListDigest]
	return l.list
}

// Add appends one entry.
func (l *ListWriter[T]) Add(v T) error {
	if err := l.enc.Encode(v); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	if l.buf.Len() < listBuffer {
		return nil
	}
	return l.flush()
}

// Commit makes the list durable and readable, if it is not a short one. It returns
// storage.ErrExists if the key is taken.
func (l *ListWriter[T]) Commit(ctx context.Context) error {
	if n := l.buf.Len(); l.w == nil && n > 0 && n <= l.inline {
		_, _ = l.d.Write(l.buf.Bytes()) // a digest takes everything
		l.list.Inline = l.buf.String()
		l.buf.Reset()
		return nil
	}
	if err := l.flush(); err != nil {
		return err
	}
	if _, err := l.w.Commit(ctx); err != nil {
		return fmt.Errorf("commit list: %w", err)
	}
	return nil
}

// Abort deletes the list with its checkpoints, unless it was committed.
func (l *ListWriter[T]) Abort() error {
	if l.w == nil {
		return nil
	}
	return l.w.Abort()
}

// Close leaves the list at its last checkpoint, unless it was committed or aborted.
func (l *ListWriter[T]) Close() error {
	if l.w == nil {
		return nil
	}
	return l.w.Close()
}

// ReadList yields a list's entries in order. An error ends it: it wraps storage.ErrNotFound if
// there is no list, and ErrDamaged if it is not the list that was written. Every entry yielded is
// from that list. To guarantee this, a list of more than one block is read twice: see [Blocks].
func ReadList[T any](ctx context.Context, s storage.Store, l List) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		failed := func(err error) { yield(zero, fmt.Errorf("read list %s: %w", l.Key, err)) }
		r, err := l.open(ctx, s)
		if err != nil {
			failed(err)
			return
		}
		defer r.Close()
		dec := json.NewDecoder(r)
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

// open opens the list for reading, which is then proven to be the one that was written.
func (l List) open(ctx context.Context, s storage.Store) (io.ReadCloser, error) {
	if l.Inline != "" {
		return io.NopCloser(strings.NewReader(l.Inline)), nil
	}
	b, err := Proven(ctx, s, l.Key, ListDigest, l.Digest)
	if err != nil {
		return nil, err
	}
	return b.Open(ctx, 0, -1)
}
