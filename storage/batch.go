package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Batch writes several objects that become visible together. A store that is a [Batcher] makes them
// durable with a few syncs in all, instead of some for each.
//
// An object of a batch is visible only when it is whole and durable, like any other. Create and Copy
// may be called concurrently, the other methods may not.
type Batch interface {
	// Create starts an object. Its writer's Commit ends the object; Publish makes it visible. The
	// Info of that Commit has the size only. The writer gives no checkpoints.
	Create(ctx context.Context, key string) (Writer, error)

	// Copy adds a copy of the object srcKey of src. It or Publish returns ErrNotFound if that is
	// missing.
	Copy(ctx context.Context, key string, src Store, srcKey string) error

	// Replace makes data the object at key, and ReplaceFrom a copy of the object srcKey of the same
	// store or of this batch, whether there is one or not, as Store.Replace and [ReplaceFrom] do.
	Replace(ctx context.Context, key string, data []byte) error
	ReplaceFrom(ctx context.Context, key, srcKey string) error

	// Rely counts the object at key, which another call has made, among those that become durable
	// with the batch. Its maker may have been killed before the object was durable.
	Rely(ctx context.Context, key string) error

	// Bytes returns how many bytes of ended objects were written and wait for Publish; links and
	// copies inside the store do not count.
	Bytes() int64

	// Publish makes every ended object visible and durable: first the created ones and the copies,
	// in no order, and when these are durable the replaced ones, in the order of the calls. It
	// returns the keys that were taken, whose objects it left as they are, and durable; if there are
	// any, it replaces nothing. After an error each object is either visible or not. The batch is empty
	// then and may be used again.
	Publish(ctx context.Context) (taken []string, err error)

	// Show is Publish for a batch that goes on: a loss of power may take the created objects away
	// until the next Show or Publish has made its own bytes durable, before it makes any visible.
	Show(ctx context.Context) (taken []string, err error)

	// Close drops what was not published. `defer b.Close()` is always right.
	Close() error
}

// Batcher is implemented by a Store that writes batches at less cost than single objects.
type Batcher interface {
	// Batch returns an empty batch.
	Batch() Batch
}

// NewBatch returns an empty batch of s. If s is no [Batcher], Publish commits one object after the
// other, a few at a time.
func NewBatch(s Store) Batch {
	if b, ok := s.(Batcher); ok {
		return b.Batch()
	}
	return &plainBatch{store: s}
}

// Rely makes an object durable that another call has made: see [Batch].
func Rely(ctx context.Context, s Store, key string) error {
	b := NewBatch(s)
	defer b.Close() //nolint:errcheck // it has no objects of its own
	if err := b.Rely(ctx, key); err != nil {
		return err
	}
	_, err := b.Publish(ctx)
	return err
}

// PutIn adds an object with data as its content to a batch.
func PutIn(ctx context.Context, b Batch, key string, data []byte) error {
	w, err := b.Create(ctx, key)
	if err != nil {
		return err
	}
	defer w.Abort() //nolint:errcheck // an aborted writer leaves nothing that matters
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("write %q: %w", key, err)
	}
	_, err = w.Commit(ctx)
	return err
}

// CopyInto adds a copy of srcKey to a batch by reading and writing the bytes.
func CopyInto(ctx context.Context, b Batch, key string, src Store, srcKey string) error {
	_, err := copyBytes(ctx, b.Create, key, src, srcKey)
	return err
}

// plainBatch is a batch of a store that has none of its own.
type plainBatch struct {
	store Store

	mu       sync.Mutex
	pending  []pending
	replaces []pending
	bytes    int64
}

// pending is an object that waits for Publish.
type pending struct {
	key     string
	size    int64 // of the bytes written, or 0
	publish func(context.Context) error
	drop    func() error // nil: there is nothing to drop
}

func (b *plainBatch) add(p pending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending, b.bytes = append(b.pending, p), b.bytes+p.size
}

// Bytes implements Batch.
func (b *plainBatch) Bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// Create implements Batch.
func (b *plainBatch) Create(ctx context.Context, key string) (Writer, error) {
	w, err := b.store.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	return &plainWriter{Writer: w, batch: b, key: key}, nil
}

// Copy implements Batch.
func (b *plainBatch) Copy(_ context.Context, key string, src Store, srcKey string) error {
	b.add(pending{key: key, publish: func(ctx context.Context) error {
		_, err := Copy(ctx, b.store, key, src, srcKey)
		return err
	}})
	return nil
}

// Replace implements Batch.
func (b *plainBatch) Replace(_ context.Context, key string, data []byte) error {
	b.replaces = append(b.replaces, pending{key: key, publish: func(ctx context.Context) error { return b.store.Replace(ctx, key, data) }})
	return nil
}

// ReplaceFrom implements Batch.
func (b *plainBatch) ReplaceFrom(_ context.Context, key, srcKey string) error {
	b.replaces = append(b.replaces, pending{key: key, publish: func(ctx context.Context) error { return ReplaceFrom(ctx, b.store, key, srcKey) }})
	return nil
}

// Rely implements Batch. What a store without batches shows is durable.
func (b *plainBatch) Rely(context.Context, string) error { return nil }

// Publish implements Batch.
func (b *plainBatch) Publish(ctx context.Context) (taken []string, err error) {
	const atOnce = 4 // a copy may hold some MiB
	var mu sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, p := range b.pending {
		group.Go(func() error {
			err := p.publish(groupCtx)
			if errors.Is(err, ErrExists) {
				mu.Lock()
				defer mu.Unlock()
				taken, err = append(taken, p.key), nil
			}
			return err
		})
	}
	err = group.Wait()
	for _, p := range b.replaces {
		if err == nil && len(taken) == 0 {
			err = p.publish(ctx)
		}
	}
	slices.Sort(taken)
	return taken, errors.Join(err, b.Close())
}

// Show implements Batch.
func (b *plainBatch) Show(ctx context.Context) ([]string, error) { return b.Publish(ctx) }

// Close implements Batch. Of what was published it drops nothing.
func (b *plainBatch) Close() error {
	var errs []error
	for _, p := range b.pending {
		if p.drop != nil {
			errs = append(errs, p.drop())
		}
	}
	b.pending, b.replaces, b.bytes = nil, nil, 0
	return errors.Join(errs...)
}

// plainWriter ends its object by leaving the writer to the batch.
type plainWriter struct {
	Writer
	batch *plainBatch
	key   string
	size  int64
	ended bool
}

// Write implements io.Writer.
func (w *plainWriter) Write(p []byte) (int, error) {
	if w.ended {
		return 0, fmt.Errorf("write %q: %w", w.key, ErrClosed)
	}
	n, err := w.Writer.Write(p)
	w.size += int64(n)
	return n, err
}

// Commit implements Writer.
func (w *plainWriter) Commit(context.Context) (Info, error) {
	if !w.ended {
		w.ended = true
		w.batch.add(pending{key: w.key, size: w.size, drop: w.Writer.Abort, publish: func(ctx context.Context) error {
			_, err := w.Writer.Commit(ctx)
			return err
		}})
	}
	return Info{Key: w.key, Size: w.size}, nil
}

// Checkpoint implements Writer.
func (w *plainWriter) Checkpoint(context.Context) (Checkpoint, error) {
	return Checkpoint{}, fmt.Errorf("checkpoint %q in a batch: %w", w.key, errors.ErrUnsupported)
}

// Abort implements Writer.
func (w *plainWriter) Abort() error {
	if w.ended {
		return nil
	}
	return w.Writer.Abort()
}

// Close implements Writer.
func (w *plainWriter) Close() error { return w.Abort() }
