package dir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/holdfast/holdfast/storage"
)

// few is how many files, or folders, are synced one by one. More of them are synced by one syncfs,
// which concurrent batches share. Each fsync costs a turn of the journal or a flush of the disk; a
// syncfs also writes what others left in the page cache, but writers begin that early (see
// writebackEvery).
const few = 1

// Batch implements storage.Batcher.
func (s *Store) Batch() storage.Batch { return &batch{store: s} }

// batch is a storage.Batch. Its files have no name until their bytes are durable, so a name that
// survives a loss of power belongs to a whole file.
type batch struct {
	store *Store

	mu      sync.Mutex
	entries []ended
	bytes   int64
}

// ended is an ended file that has no name yet.
type ended struct {
	key  string
	size int64 // of the bytes written; 0 of a link
	file *os.File
	// replaces says that it takes the name of an object that may be there.
	replaces bool
	link     func(folder *os.File, base string) error
	drop     func()
	// again stores the object by itself if the file cannot be linked.
	again func(context.Context) error
}

func (b *batch) add(e ended) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries, b.bytes = append(b.entries, e), b.bytes+e.size
}

// Bytes implements storage.Batch.
func (b *batch) Bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// Create implements storage.Batch.
func (b *batch) Create(ctx context.Context, key string) (storage.Writer, error) {
	w, err := b.store.create(ctx, key)
	if err != nil {
		return nil, err
	}
	w.batch = b
	return w, nil
}

// end hands the file of a writer over to the batch.
func (b *batch) end(w *writer) {
	b.add(ended{key: w.key, size: w.size, file: w.f, replaces: w.replaces, link: w.link, drop: w.drop})
}

// Copy implements storage.Batch. Within one file system it makes a hard link at Publish, as CopyFrom
// does; otherwise it copies the bytes now.
func (b *batch) Copy(ctx context.Context, key string, src storage.Store, srcKey string) error {
	f, err := b.store.linkable(ctx, key, src, srcKey)
	if errors.Is(err, errors.ErrUnsupported) {
		return storage.CopyInto(ctx, b, key, src, srcKey)
	}
	if err != nil {
		return err
	}
	b.add(ended{
		key: key, file: f, link: func(folder *os.File, base string) error { return linkOpen(f, folder, base) },
		drop: func() { _ = f.Close() },
		again: func(ctx context.Context) error {
			_, err := storage.CopyApart(ctx, b.store, key, src, srcKey)
			return err
		},
	})
	return nil
}

// Replace implements storage.Batch.
func (b *batch) Replace(ctx context.Context, key string, data []byte) error {
	return b.replace(ctx, key, bytes.NewReader(data))
}

// ReplaceFrom implements storage.Batch.
func (b *batch) ReplaceFrom(ctx context.Context, key, srcKey string) error {
	from, _, err := b.store.open("replace", srcKey)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // a read-only handle
	return b.replace(ctx, key, from)
}

func (b *batch) replace(ctx context.Context, key string, content io.Reader) error {
	w, err := b.store.createIn(ctx, key, replaceFolder)
	if err != nil {
		return err
	}
	w.batch, w.replaces = b, true
	defer w.Abort() //nolint:errcheck // an aborted writer leaves nothing that matters
	if _, err := io.Copy(w.f, content); err != nil {
		return wrap("replace", key, err)
	}
	_, err = w.Commit(ctx)
	return err
}

// Publish implements storage.Batch: it syncs the bytes, gives the files their names, and syncs the
// folders.
func (b *batch) Publish(ctx context.Context) (taken []string, err error) {
	defer b.Close() //nolint:errcheck // every file has its name, or is to be dropped
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("publish %d objects: %w", len(b.entries), err)
	}
	files := make([]*os.File, len(b.entries))
	for i, e := range b.entries {
		files[i] = e.file
	}
	if err := b.store.syncFiles(files); err != nil {
		return nil, fmt.Errorf("publish %d objects: %w", len(files), err)
	}
	slices.SortStableFunc(b.entries, func(x, y ended) int { return order(x) - order(y) })
	changed := newFolders()
	defer changed.close()
	for _, e := range b.entries {
		err := b.store.name(e.key, e.link, changed)
		switch {
		case errors.Is(err, fs.ErrExist):
			taken, err = append(taken, e.key), nil
		case cannotLink(err) && e.again != nil:
			if err = e.again(ctx); errors.Is(err, storage.ErrExists) {
				taken, err = append(taken, e.key), nil
			}
		}
		if err != nil {
			return taken, wrap("publish", e.key, err)
		}
	}
	if err := b.store.syncFolders(changed, len(files) > few); err != nil {
		return taken, fmt.Errorf("publish %d objects: %w", len(files), err)
	}
	slices.Sort(taken)
	return taken, nil
}

// order puts what replaces behind what is new.
func order(e ended) int {
	if e.replaces {
		return 1
	}
	return 0
}

// Close implements storage.Batch.
func (b *batch) Close() error {
	for _, e := range b.entries {
		e.drop()
	}
	b.entries, b.bytes = nil, 0
	return nil
}

// syncFiles makes the bytes of files durable.
func (s *Store) syncFiles(files []*os.File) error {
	if len(files) > few {
		err := s.syncAll()
		for _, f := range files {
			err = errors.Join(err, writeError(f))
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	for _, f := range files {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// syncAll makes everything on the file system durable. Concurrent calls share a syncfs.
func (s *Store) syncAll() error {
	return s.syncs.round(inode{}, func() error { return syncFileSystem(s.top) })
}
