package staging

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/holdfast/holdfast/storage"
)

// listBuffer is how much of a list is read or written at a time.
const listBuffer = 64 << 10

// ListWriter writes a list of any length as JSON lines. It belongs to one goroutine.
type ListWriter[T any] struct {
	w   storage.Writer
	buf *bufio.Writer
	enc *json.Encoder
}

// CreateList starts a list under a key of this attempt. Commit makes it readable. Abort throws it away, and Close leaves it at
// its last checkpoint, unless it was committed.
func CreateList[T any](ctx context.Context, s storage.Store, key string) (*ListWriter[T], error) {
	w, err := s.Create(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("create list %s: %w", key, err)
	}
	return newList[T](w), nil
}

// ResumeList starts a list under a key of this attempt that begins with the entries of an earlier list's checkpoint. It
// returns storage.ErrNotFound when these are gone.
func ResumeList[T any](ctx context.Context, s storage.Store, key string, cp storage.Checkpoint) (*ListWriter[T], error) {
	w, err := s.Resume(ctx, key, cp)
	if err != nil {
		return nil, fmt.Errorf("go on with list %s: %w", key, err)
	}
	return newList[T](w), nil
}

func newList[T any](w storage.Writer) *ListWriter[T] {
	buf := bufio.NewWriterSize(w, listBuffer)
	return &ListWriter[T]{w: w, buf: buf, enc: json.NewEncoder(buf)}
}

// Checkpoint makes the entries so far durable, for ResumeList.
func (l *ListWriter[T]) Checkpoint(ctx context.Context) (storage.Checkpoint, error) {
	if err := l.buf.Flush(); err != nil {
		return storage.Checkpoint{}, fmt.Errorf("write list: %w", err)
	}
	cp, err := l.w.Checkpoint(ctx)
	if err != nil {
		return cp, fmt.Errorf("keep list: %w", err)
	}
	return cp, nil
}

// Add appends one entry.
func (l *ListWriter[T]) Add(v T) error {
	if err := l.enc.Encode(v); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	return nil
}

// Commit makes the list durable. It refuses a key that is taken, with storage.ErrExists.
func (l *ListWriter[T]) Commit(ctx context.Context) error {
	if err := l.buf.Flush(); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	if _, err := l.w.Commit(ctx); err != nil {
		return fmt.Errorf("commit list: %w", err)
	}
	return nil
}

// Abort throws the list away, its checkpoints included, unless it was committed.
func (l *ListWriter[T]) Abort() error { return l.w.Abort() }

// Close leaves the list at its last checkpoint, unless it was committed or aborted.
func (l *ListWriter[T]) Close() error { return l.w.Close() }

// ReadList yields a list's entries in order. An error ends it; one that wraps storage.ErrNotFound says that there is no
// such list.
func ReadList[T any](ctx context.Context, s storage.Store, key string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		r, err := s.Open(ctx, key, 0, -1)
		if err != nil {
			yield(zero, fmt.Errorf("open list %s: %w", key, err))
			return
		}
		defer r.Close()
		dec := json.NewDecoder(bufio.NewReaderSize(r, listBuffer))
		for {
			var v T
			if err := dec.Decode(&v); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				yield(zero, fmt.Errorf("read list %s: %w", key, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
