package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/holdfast/holdfast/storage"
)

// writebackEvery is how many bytes are written before the kernel is told to start writing them to
// disk. It is far less than lies between two checkpoints, so that their fsync, during which nothing
// is written, finds little left to do.
const writebackEvery = 1 << 20

// writer writes a file that gets its name by Commit.
type writer struct {
	store *Store
	batch *batch // nil: it is not of a batch
	// replaces says that the file takes the name of one that is there.
	replaces bool
	key      string
	f        *os.File
	id       identity
	name     string // path below the root; empty while the file has no name
	size     int64  // bytes written
	synced   int64  // bytes known to be durable
	begun    int64  // bytes that the kernel was told to write to disk
	granted  int64  // bytes that may be written before the volume is checked again
	kept     bool   // a checkpoint was returned
	broken   error  // the first error; the content cannot be trusted afterwards
	done     bool
	info     storage.Info
	success  bool
}

// Create implements storage.Store.
func (s *Store) Create(ctx context.Context, key string) (_ storage.Writer, err error) {
	defer measure("Create", time.Now(), &err)
	w, err := s.create(ctx, key)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (s *Store) create(ctx context.Context, key string) (*writer, error) {
	return s.createIn(ctx, key, pendingFolder+"/"+key)
}

// createIn begins a file. Where files need a name at once, it is in the folder kind of the scratch
// folder.
func (s *Store) createIn(ctx context.Context, key, kind string) (*writer, error) {
	if err := s.check(key); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create %q: %w", key, err)
	}
	w := &writer{store: s, key: key}
	var err error
	if s.unnamed {
		w.f, err = openUnnamed(s.top)
	} else {
		w.f, w.name, err = s.createScratch(kind)
	}
	if err != nil {
		return nil, wrap("create", key, err)
	}
	if w.id, err = identify(w.f); err != nil {
		return nil, errors.Join(wrap("create", key, err), w.Abort())
	}
	return w, nil
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (n int, err error) {
	defer measure("Write", time.Now(), &err)
	if err := w.usable("write"); err != nil {
		return 0, err
	}
	if err := w.checkRoom(int64(len(p))); err != nil {
		w.broken = wrap("write", w.key, err)
		return 0, w.broken
	}
	n, err = w.f.Write(p)
	w.size += int64(n)
	countBytes("written", int64(n))
	if err != nil {
		w.broken = wrap("write", w.key, err)
		return n, w.broken
	}
	if w.size-w.begun >= writebackEvery {
		startWriteback(w.f, w.begun, w.size-w.begun)
		w.begun = w.size
	}
	return n, nil
}

// roomCheckEvery is how many bytes are written between two checks of the volume's space.
const roomCheckEvery = 1 << 20

// checkRoom returns storage.ErrNoSpace if n more bytes would use the volume's reserve.
func (w *writer) checkRoom(n int64) error {
	if w.granted -= n; w.granted >= 0 || w.store.room.Reserve == nil {
		return nil
	}
	space, reserve, err := w.store.measure()
	if err != nil {
		return err
	}
	if free := space.Total - space.Used; free-n < reserve {
		return fmt.Errorf("the volume has %d bytes free, of which %d are reserved for the database and logs: %w", free, reserve, storage.ErrNoSpace)
	}
	w.granted = roomCheckEvery
	return nil
}

// usable returns why the writer cannot continue, or nil.
func (w *writer) usable(op string) error {
	switch {
	case w.done:
		return fmt.Errorf("%s %q: %w", op, w.key, storage.ErrClosed)
	case w.broken != nil:
		return fmt.Errorf("%s after an error: %w", op, w.broken)
	}
	return nil
}

// sync makes the written bytes durable. It never repeats a failed fsync: the kernel may have
// dropped the pages and would report success.
func (w *writer) sync(op string) error {
	if err := w.f.Sync(); err != nil {
		w.broken = wrap(op, w.key, err)
		return w.broken
	}
	w.synced, w.begun = w.size, w.size
	return nil
}

// Checkpoint implements storage.Writer.
func (w *writer) Checkpoint(ctx context.Context) (_ storage.Checkpoint, err error) {
	defer measure("Checkpoint", time.Now(), &err)
	if err := w.usable("checkpoint"); err != nil {
		return storage.Checkpoint{}, err
	}
	if err := ctx.Err(); err != nil {
		return storage.Checkpoint{}, fmt.Errorf("checkpoint %q: %w", w.key, err)
	}
	if w.batch != nil {
		return storage.Checkpoint{}, fmt.Errorf("checkpoint %q in a batch: %w", w.key, errors.ErrUnsupported)
	}
	if w.synced != w.size || !w.kept {
		if err := w.sync("checkpoint"); err != nil {
			return storage.Checkpoint{}, err
		}
	}
	if err := w.keep(); err != nil {
		return storage.Checkpoint{}, wrap("checkpoint", w.key, err)
	}
	return storage.Checkpoint{Token: token{key: w.key, base: path.Base(w.name), id: w.id}.String(), Size: w.size}, nil
}

// keep gives the file a durable name in the scratch folder, if it has none.
func (w *writer) keep() error {
	if w.kept {
		return nil
	}
	if w.name == "" {
		name, err := w.store.linkScratch(w.f, w.store.pendingPath(w.key), true)
		if err != nil {
			return err
		}
		w.name = name
	} else {
		folder, err := w.store.folder(path.Dir(w.name), nil)
		if err != nil {
			return err
		}
		if err := errors.Join(w.store.syncs.sync(folder), folder.Close()); err != nil {
			return err
		}
	}
	w.kept = true
	return nil
}

// Commit implements storage.Writer.
func (w *writer) Commit(ctx context.Context) (_ storage.Info, err error) {
	if w.success {
		return w.info, nil
	}
	if w.batch == nil { // its batch does the work for it
		defer measure("Commit", time.Now(), &err)
	}
	if err := w.usable("commit"); err != nil {
		return storage.Info{}, err
	}
	if err := ctx.Err(); err != nil {
		return storage.Info{}, fmt.Errorf("commit %q: %w", w.key, err)
	}
	if err := w.f.Chmod(objectMode); err != nil {
		return storage.Info{}, wrap("commit", w.key, err)
	}
	if w.batch != nil {
		w.info, w.success, w.done = storage.Info{Key: w.key, Size: w.size}, true, true
		w.batch.end(w)
		return w.info, nil
	}
	if err := w.sync("commit"); err != nil {
		return storage.Info{}, err
	}
	if err := w.store.publish(w.key, w.link); err != nil {
		return storage.Info{}, wrap("commit", w.key, err)
	}
	stat, err := w.f.Stat()
	if err != nil {
		return storage.Info{}, wrap("commit", w.key, err)
	}
	w.info, w.success = newInfo(w.key, stat), true
	w.discard()
	return w.info, nil
}

// link gives the file its final name in folder.
func (w *writer) link(folder *os.File, base string) error {
	var err error
	if w.name == "" {
		err = linkOpen(w.f, folder, base)
	} else {
		err = w.store.root.Link(w.name, w.key)
	}
	if errors.Is(err, fs.ErrExist) {
		// An earlier Commit of this writer may have linked the file and then failed to sync the
		// folder.
		there, statErr := w.store.lstat(w.key)
		mine, ownErr := w.f.Stat()
		if statErr == nil && ownErr == nil && os.SameFile(there, mine) {
			return nil
		}
		if w.replaces {
			return w.replace()
		}
	}
	return err
}

// replace gives the file the name of another one, by way of a scratch name.
func (w *writer) replace() error {
	w.store.sweepStale(replaceFolder, time.Now())
	if w.name == "" {
		name, err := w.store.linkScratch(w.f, w.store.scratch+"/"+replaceFolder, false)
		if err != nil {
			return err
		}
		w.name = name
	}
	if err := w.store.rename(w.name, w.key); err != nil {
		return err
	}
	w.name = "" // it moved
	return nil
}

// discard closes the file and removes its scratch name. The committed object has its own name, so
// an error here at most leaves something for DeletePrefix.
func (w *writer) discard() {
	w.done = true
	w.drop()
}

// drop closes the file and removes its scratch name.
func (w *writer) drop() {
	_ = w.f.Close()
	if w.name != "" {
		_ = w.store.root.Remove(w.name)
		w.store.prune(path.Dir(w.name))
	}
}

// Abort implements storage.Writer.
func (w *writer) Abort() error {
	if !w.done {
		w.discard()
		return nil
	}
	if w.kept && !w.success {
		// Close came first and kept the checkpoint.
		err := w.store.root.Remove(w.name)
		w.store.prune(path.Dir(w.name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wrap("abort", w.key, err)
		}
	}
	return nil
}

// Close implements storage.Writer.
func (w *writer) Close() error {
	switch {
	case w.done:
		return nil
	case !w.kept:
		w.discard()
		return nil
	}
	w.done = true
	return wrap("close", w.key, w.f.Close())
}
