// Package staging is where an item's bytes lie between the source and the object: fetched, digested, and named so that
// nobody but the attempt that made a file ever writes it (R3).
//
// Every key begins with the item and the attempt's number. What a superseded worker still writes there is its own;
// its successor follows only what an attempt has recorded. Files have numbers, not names: a depositor's names are
// kept in lists, byte for byte, and no storage has to be able to express them.
package staging

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// ItemPrefix is the folder of everything that an item's attempts have staged.
func ItemPrefix(itemID string) string { return "items/" + itemID }

// Key is a key of one attempt's own.
func Key(l registry.Lease, name string) string {
	return ItemPrefix(l.ItemID) + "/" + strconv.FormatInt(l.N, 10) + "/" + name
}

// FileKey is the key of an attempt's file by number, in folders of at most a thousand.
func FileKey(l registry.Lease, folder string, seq int64) string {
	return Key(l, fmt.Sprintf("%s/%03d/%d", folder, seq/1000, seq))
}

// File is a staged file.
type File struct {
	Seq       int64             `json:"seq"`  // its place in what was submitted, from 1
	Name      string            `json:"name"` // the depositor's, byte for byte; valid UTF-8
	Key       string            `json:"key"`
	SizeBytes int64             `json:"size_bytes"`
	Digests   map[string]string `json:"digests"`
	MIMEType  string            `json:"mime_type,omitempty"`
	Source    string            `json:"source,omitempty"`
	Modified  time.Time         `json:"modified,omitzero"`
}

// ListWriter writes a list of any length as JSON lines.
type ListWriter[T any] struct {
	w   storage.Writer
	buf *bufio.Writer
	enc *json.Encoder
}

// CreateList starts a list under a key of this attempt. Commit makes it readable; Close drops it unless committed.
func CreateList[T any](ctx context.Context, s storage.Store, key string) (*ListWriter[T], error) {
	w, err := s.Create(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("create list %s: %w", key, err)
	}
	buf := bufio.NewWriterSize(w, 64<<10)
	return &ListWriter[T]{w: w, buf: buf, enc: json.NewEncoder(buf)}, nil
}

// Add appends one entry.
func (l *ListWriter[T]) Add(v T) error {
	if err := l.enc.Encode(v); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	return nil
}

// Commit makes the list durable.
func (l *ListWriter[T]) Commit(ctx context.Context) error {
	if err := l.buf.Flush(); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	// A list that is there already was committed by this very attempt, with the same entries.
	if _, err := l.w.Commit(ctx); err != nil && !errors.Is(err, storage.ErrExists) {
		return fmt.Errorf("commit list: %w", err)
	}
	return nil
}

// Close drops the list unless it was committed.
func (l *ListWriter[T]) Close() error { return l.w.Abort() }

// ReadList yields a list's entries in order. An error ends it.
func ReadList[T any](ctx context.Context, s storage.Store, key string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		r, err := s.Open(ctx, key, 0, -1)
		if err != nil {
			yield(zero, fmt.Errorf("open list %s: %w", key, err))
			return
		}
		defer r.Close() //nolint:errcheck // read only
		dec := json.NewDecoder(bufio.NewReaderSize(r, 64<<10))
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
