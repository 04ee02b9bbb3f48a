package dir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/storage"
)

// few is how many files, or folders, get an fsync of their own. More of them are synced by one
// syncfs, which concurrent batches share: each fsync costs a turn of the journal or a flush of the
// disk. Our own writers begin to write early (see writebackEvery), but a syncfs also writes what
// other programs left in the page cache. After one that took slowSync or longer, all files and
// folders get an fsync of their own, for restSyncs times as long as it took.
const (
	few       = 1
	slowSync  = 100 * time.Millisecond
	restSyncs = 20
)

// fsyncsAtOnce is how many files or folders are synced by themselves at the same time.
const fsyncsAtOnce = 8

// Batch implements storage.Batcher.
func (s *Store) Batch() storage.Batch { return s.newBatch() }

func (s *Store) newBatch() *batch { return &batch{store: s, named: newFolders()} }

// batch is a storage.Batch. Its files have no name until their bytes are durable, so a name that
// survives a loss of power belongs to a whole file.
type batch struct {
	store *Store

	named *folders // with names that may not be durable yet

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
	for _, e := range b.entries {
		if e.key == srcKey {
			if _, err := e.file.Seek(0, io.SeekStart); err != nil {
				return wrap("replace", key, err)
			}
			return b.replace(ctx, key, e.file)
		}
	}
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

// Rely implements storage.Batch.
func (b *batch) Rely(_ context.Context, key string) error {
	if err := b.store.check(key); err != nil {
		return fmt.Errorf("rely on: %w", err)
	}
	in := path.Dir(key)
	if b.named.names[in] {
		return nil
	}
	folder, err := b.store.folder(in, b.named)
	if err != nil {
		return wrap("rely on", key, err)
	}
	b.named.names[in] = true
	return folder.Close() // a batch may rely on objects in more folders than may be open
}

// Publish implements storage.Batch.
func (b *batch) Publish(ctx context.Context) (taken []string, err error) { return b.publish(ctx, true) }

// Show implements storage.Batch.
func (b *batch) Show(ctx context.Context) (taken []string, err error) { return b.publish(ctx, false) }

// publish syncs the bytes, and with them the names that Show gave. Then it gives the files their
// names, and syncs the folders if the names have to be durable.
func (b *batch) publish(ctx context.Context, durable bool) (taken []string, err error) {
	defer b.drop()
	defer measure("Publish", time.Now(), &err)
	n := len(b.entries)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("publish %d objects: %w", n, err)
	}
	if err := b.sync(); err != nil {
		return nil, fmt.Errorf("publish %d objects: %w", n, err)
	}
	created, replaced := b.entries, []ended(nil)
	slices.SortStableFunc(created, func(x, y ended) int { return order(x) - order(y) })
	if at := slices.IndexFunc(created, func(e ended) bool { return e.replaces }); at >= 0 {
		created, replaced = created[:at], created[at:]
	}
	if taken, err = b.name(ctx, created); err != nil {
		return taken, err
	}
	if len(taken) > 0 {
		replaced = nil
	}
	if durable || len(replaced) > 0 {
		err = b.syncNames(n > few)
	}
	if err == nil && len(replaced) > 0 {
		if _, err = b.name(ctx, replaced); err == nil {
			err = b.syncNames(n > few)
		}
	}
	if err != nil {
		return taken, fmt.Errorf("publish %d objects: %w", n, err)
	}
	slices.Sort(taken)
	return taken, nil
}

// name gives files their names.
func (b *batch) name(ctx context.Context, files []ended) (taken []string, err error) {
	for _, e := range files {
		err := b.store.name(e.key, e.link, b.named)
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
	return taken, nil
}

// order puts what replaces behind what is new.
func order(e ended) int {
	if e.replaces {
		return 1
	}
	return 0
}

// sync makes the bytes of the ended files durable, and the names that are not yet.
func (b *batch) sync() error {
	if len(b.entries)+len(b.named.names) > few {
		if err := b.syncTogether(); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	for _, e := range b.entries {
		startWriteback(e.file, 0, 0)
	}
	var group errgroup.Group
	group.SetLimit(fsyncsAtOnce)
	for _, e := range b.entries {
		group.Go(e.file.Sync)
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return b.syncNames(false)
}

// syncTogether is sync by one syncfs. If it returns errors.ErrUnsupported it has done nothing: a file
// tells of a failed write once, and must not have told it before its fsync.
func (b *batch) syncTogether() error {
	err := b.store.syncAll()
	if errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	for _, e := range b.entries {
		err = errors.Join(err, writeError(e.file))
	}
	if err == nil {
		b.store.synced(b.named)
		b.forgetNames()
	}
	return err
}

// syncNames makes the names that files got durable.
func (b *batch) syncNames(together bool) error {
	if err := b.store.syncFolders(b.named, together); err != nil {
		return err
	}
	b.forgetNames()
	return nil
}

func (b *batch) forgetNames() {
	b.named.close()
	b.named = newFolders()
}

// drop drops the ended files: they have their names, or will not get any.
func (b *batch) drop() {
	for _, e := range b.entries {
		e.drop()
	}
	b.entries, b.bytes = nil, 0
}

// Close implements storage.Batch.
func (b *batch) Close() error {
	b.drop()
	b.forgetNames()
	return nil
}

// syncAll makes everything on the file system durable. Concurrent calls share a syncfs. It returns
// errors.ErrUnsupported if that cannot be done, or was slow a short time ago.
func (s *Store) syncAll() error {
	if !s.whole || time.Now().Before(*s.crowded.Load()) {
		return errors.ErrUnsupported
	}
	return s.syncs.round(inode{}, func() error {
		began := time.Now()
		err := syncFileSystem(s.top)
		if took := time.Since(began); took >= slowSync {
			until := began.Add(restSyncs * took)
			s.crowded.Store(&until)
		}
		return err
	})
}
