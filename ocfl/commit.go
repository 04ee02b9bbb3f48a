package ocfl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/storage"
)

// Source returns the store and key that hold the bytes of a content file. Commit asks for one file
// at a time, in the order of their paths, and not for files that an earlier call verified.
type Source func(ContentFile) (storage.Store, string, error)

// CommitOptions control how Commit works. The zero value is usable.
type CommitOptions struct {
	Workers  int            // files copied and verified at the same time; 0 means 4
	Progress func(Progress) // called after each file, never concurrently

	// Verified reports whether an earlier call stored and verified a content file, given by its
	// place among the version's content files by path. Commit then only checks that the file
	// exists. It may be nil.
	Verified func(place int) bool
	// Data returns the bytes of a small content file that lies in no store; ok is false for any
	// other, whose bytes Source finds. It is asked as Source is, and before it. It may be nil.
	Data func(ContentFile) (data []byte, ok bool)
	// Stored is called with the place and the size in bytes of each file that this call stored and
	// verified, never concurrently. An error ends the commit. It may be nil.
	Stored func(place int, size int64) error
}

// Progress is the progress of a commit.
type Progress struct {
	Files, TotalFiles int   // Files includes those that an earlier call verified
	Bytes             int64 // of the files done
}

// Commit writes the newest version of inv, as planned by NewVersion. It returns when the version is
// complete and verified. It may be called again by any process, after a failure at any point and
// after success.
//
// Commit writes in this order:
//   - the declaration and the content files, in batches; each file is read back and compared with
//     its digest, and an existing one is kept if its bytes are right
//   - when these are durable, vN/inventory.json, which is only ever created: the commit point
//   - when it is durable, its sidecar, and the inventory and sidecar in the object's root
//
// It never changes anything that was committed. It returns ErrVersionExists if the version exists
// with another inventory, ErrNoPredecessor if the version before is missing, ErrIDTaken if the
// folder holds another object, a *ForeignError if other files lie in the version's folder, and a
// *DigestError if stored bytes are wrong.
func (r *Root) Commit(ctx context.Context, inv *Inventory, source Source, opts CommitOptions) error {
	return r.CommitAddition(ctx, inv.Addition(), source, opts)
}

// CommitAddition is Commit for a version that need not be in memory.
func (r *Root) CommitAddition(ctx context.Context, a *Addition, source Source, opts CommitOptions) error {
	base, err := r.ObjectKey(a.object.ID)
	if err != nil {
		return fmt.Errorf("commit %q: %w", a.object.ID, err)
	}
	if a.object.Head == 0 {
		return fmt.Errorf("commit %q: %w: it has no version", a.object.ID, ErrNoPredecessor)
	}
	c := &committer{root: r, addition: a, source: source, opts: opts}
	c.version = published{
		root: r, base: base, version: a.folder(), next: versionName(a.object.Head+1, a.object.padding),
		algorithm: a.object.Algorithm, digest: a.digest,
	}
	if err := c.run(ctx); err != nil {
		return fmt.Errorf("commit %s of %q: %w", c.version.version, a.object.ID, err)
	}
	return nil
}

// committer writes one version up to and beyond its commit point.
type committer struct {
	root     *Root
	addition *Addition
	source   Source
	opts     CommitOptions
	apart    bool // copies share no bytes with their source
	version  published

	mu       sync.Mutex
	progress Progress
}

func (c *committer) run(ctx context.Context) error {
	done, err := c.version.exists(ctx)
	if errors.Is(err, ErrVersionExists) {
		// Report another object in the folder as such.
		if object, headerErr := c.root.header(ctx, c.version.base); headerErr == nil && object.ID != c.addition.object.ID {
			err = fmt.Errorf("%w: %q holds %q", ErrIDTaken, c.version.base, object.ID)
		}
	}
	if err != nil {
		return err
	}
	if !done {
		return c.write(ctx)
	}
	_, err = c.version.finish(ctx)
	return err
}

// write writes the version. It continues where an earlier call stopped.
func (c *committer) write(ctx context.Context) error {
	if spec := c.addition.object.Spec; spec > c.root.spec {
		return fmt.Errorf("%w: the object declares OCFL %s, the storage root %s", ErrLayout, spec, c.root.spec)
	}
	if err := c.checkPredecessor(ctx); err != nil {
		return err
	}
	b := storage.NewBatch(c.root.store)
	defer b.Close() //nolint:errcheck // it drops what was not published
	if err := c.writeContent(ctx, b); err != nil {
		return err
	}
	if err := c.onlyOurs(ctx); err != nil {
		return err
	}
	if err := c.writeInventory(ctx, b); err != nil {
		return fmt.Errorf("write inventory: %w", err)
	}
	return nil
}

// writeInventory writes the inventory of the version, the commit point, and what is derived from it.
func (c *committer) writeInventory(ctx context.Context, b storage.Batch) error {
	v := c.version
	w, err := b.Create(ctx, v.inventoryKey())
	if err != nil {
		return err
	}
	defer w.Abort() //nolint:errcheck // nothing depends on an aborted writer
	if err := c.addition.encode(ctx, w); err != nil {
		return err
	}
	if _, err = w.Commit(ctx); err != nil {
		return err
	}
	if err := b.Replace(ctx, v.sidecarKey(), sidecarText(v.digest)); err != nil {
		return err
	}
	if err := b.ReplaceFrom(ctx, v.rootKey(), v.inventoryKey()); err != nil {
		return err
	}
	if err := b.Replace(ctx, v.rootKey()+"."+v.algorithm, sidecarText(v.digest)); err != nil {
		return err
	}
	taken, err := v.publishRoot(ctx, b)
	if err != nil || len(taken) == 0 {
		return err
	}
	// Another process was faster.
	if _, err := v.exists(ctx); err != nil {
		return err
	}
	_, err = v.finish(ctx)
	return err
}

// declaration returns the key and the content of the object's declaration.
func (c *committer) declaration() (key string, content []byte) {
	name, content := declaration(c.addition.object.Spec)
	return c.version.base + "/" + name, content
}

// onlyOurs returns a *ForeignError if the version's folder holds files that the version does not
// have. They may come from an abandoned version, written late by a worker that lost its lease, or
// from another program. They would make the object invalid.
func (c *committer) onlyOurs(ctx context.Context) error {
	foreign := &ForeignError{Folder: c.version.base + "/" + c.version.version}
	for f, err := range c.addition.matching(ctx, c.root.store, c.version.base, foreign.Folder+"/") {
		if err != nil {
			return err
		}
		// Another process that commits the same version may be ahead of this one.
		if !f.planned && f.Key != c.version.inventoryKey() && f.Key != c.version.sidecarKey() {
			foreign.add(f.Key)
		}
	}
	if len(foreign.Files) > 0 {
		return foreign
	}
	return nil
}

// checkPredecessor checks that the version continues the object. Only the root inventory says which
// object it is. It may be one version behind if a Commit was interrupted.
func (c *committer) checkPredecessor(ctx context.Context) error {
	a := c.addition.object
	n := a.Head
	object, err := c.root.header(ctx, c.version.base)
	switch {
	case errors.Is(err, ErrNotFound):
		object = Object{ID: a.ID}
	case err != nil:
		return err
	}
	if object.ID != a.ID {
		return fmt.Errorf("%w: %q holds %q", ErrIDTaken, c.version.base, object.ID)
	}
	if object.Head >= n {
		return fmt.Errorf("%w: the object is at version %d", ErrVersionExists, object.Head)
	}
	if object.Head == n-1 {
		return nil
	}
	before := c.version
	before.version = versionName(n-1, a.padding)
	_, err = c.root.store.Stat(ctx, before.inventoryKey())
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("%w: the object is at version %d", ErrNoPredecessor, object.Head)
	}
	return err
}

// A batch of content files ends at either of these, so that an interruption costs little, and few
// files are open. Where batches save nothing, one has no more files than are copied at the same
// time: Source, which may look at a lease, is then asked shortly before the bytes move.
const (
	batchFiles = 32
	batchBytes = 64 << 20
)

func (c *committer) batchFiles() int {
	if _, ok := c.root.store.(storage.Batcher); ok {
		return batchFiles
	}
	return c.workers()
}

func (c *committer) workers() int { return cmp.Or(c.opts.Workers, 4) }

// writeContent copies and verifies the files that the version adds, with the object's declaration,
// one batch after the other. The next Publish of b makes the last ones durable.
func (c *committer) writeContent(ctx context.Context, b storage.Batch) error {
	key, content := c.declaration()
	err := holdsSame(ctx, c.root.store, key, content)
	switch {
	case err == nil:
		err = b.Rely(ctx, key)
	case errors.Is(err, storage.ErrNotFound):
		err = storage.PutIn(ctx, b, key, content)
	}
	if err != nil {
		return fmt.Errorf("declare object: %w", err)
	}
	c.progress.TotalFiles = c.addition.files
	next, stop := iter.Pull2(c.addition.content)
	defer stop()
	for place := 0; ; {
		copied, ended, err := c.copyFiles(ctx, b, next, &place)
		if err != nil {
			return err
		}
		taken, err := b.Show(ctx)
		if err != nil {
			return err
		}
		if slices.Contains(taken, key) { // another process declared the object first
			if err := holdsSame(ctx, c.root.store, key, content); err != nil {
				return fmt.Errorf("declare object: %w", err)
			}
		}
		if err := c.verifyFiles(ctx, copied, taken); err != nil {
			return err
		}
		if ended {
			return nil
		}
	}
}

// group runs functions at the same time, as many as the options allow.
func (c *committer) group(ctx context.Context) (*errgroup.Group, context.Context) {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(c.workers())
	return group, groupCtx
}

// placed is a content file and its place among them.
type placed struct {
	ContentFile
	place int
}

// copyFiles adds the next files to a batch, until it has enough. It returns those that it added, and
// whether there are no more. An earlier call's files are only looked at.
func (c *committer) copyFiles(ctx context.Context, b storage.Batch, next func() (ContentFile, error, bool), place *int) (copied []placed, ended bool, err error) {
	group, groupCtx := c.group(ctx)
	for *place < c.addition.files && len(copied) < c.batchFiles() && b.Bytes() < batchBytes && groupCtx.Err() == nil {
		f, err, more := next()
		if !more {
			err = errors.New("its list of content files ends early")
		}
		if err == nil {
			var added bool
			if added, err = c.addFile(groupCtx, group, b, f, *place); added {
				copied = append(copied, placed{f, *place})
			}
		}
		if err != nil {
			return nil, false, errors.Join(err, group.Wait())
		}
		*place++
	}
	if err := group.Wait(); err != nil {
		return nil, false, err
	}
	return copied, *place == c.addition.files, ctx.Err()
}

// addFile has the group add a file to a batch. It returns false for a file that an earlier call
// verified.
func (c *committer) addFile(ctx context.Context, group *errgroup.Group, b storage.Batch, f ContentFile, place int) (added bool, err error) {
	key := c.version.base + "/" + f.Path
	size, there, err := c.verified(ctx, place, key)
	if err == nil && there {
		err = errors.Join(b.Rely(ctx, key), c.done(place, size, false))
	}
	if there || err != nil {
		return false, err
	}
	if c.opts.Data != nil {
		if data, ok := c.opts.Data(f); ok {
			group.Go(func() error { return storage.PutIn(ctx, b, key, data) })
			return true, nil
		}
	}
	store, from, err := c.source(f)
	if err != nil {
		return false, fmt.Errorf("source of %q: %w", f.Path, err)
	}
	group.Go(func() error {
		if l, ok := c.root.store.(storage.Linker); c.apart && ok && l.Links() {
			return storage.CopyInto(ctx, b, key, store, from)
		}
		return b.Copy(ctx, key, store, from)
	})
	return true, nil
}

// verifyFiles reads back files, of which some keys were taken.
func (c *committer) verifyFiles(ctx context.Context, files []placed, taken []string) error {
	group, groupCtx := c.group(ctx)
	for _, f := range files {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			key := c.version.base + "/" + f.Path
			_, existing := slices.BinarySearch(taken, key)
			size, err := c.verify(groupCtx, key, f.ContentFile, existing)
			if err != nil {
				return err
			}
			return c.done(f.place, size, true)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// done reports the progress that a verified file is; stored says that this call stored it.
func (c *committer) done(place int, size int64, stored bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress.Files++
	c.progress.Bytes += size
	if c.opts.Progress != nil {
		c.opts.Progress(c.progress)
	}
	if !stored || c.opts.Stored == nil {
		return nil
	}
	return c.opts.Stored(place, size)
}

// verified reports whether an earlier call verified the file and it still exists.
func (c *committer) verified(ctx context.Context, place int, key string) (size int64, there bool, err error) {
	if c.opts.Verified == nil || !c.opts.Verified(place) {
		return 0, false, nil
	}
	info, err := c.root.store.Stat(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, false, nil
	}
	return info.Size, err == nil, err
}

// verify reads a file back and returns its size in bytes. existing says that it was there before.
func (c *committer) verify(ctx context.Context, key string, f ContentFile, existing bool) (int64, error) {
	got, size, err := c.readBack(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("read back: %w", err)
	}
	if !strings.EqualFold(got, f.Digest) {
		err := &DigestError{Key: key, Algorithm: c.version.algorithm, Want: f.Digest, Got: got, Existing: existing}
		if existing {
			return 0, err
		}
		// This call created the file and nothing refers to it. Delete it, so that good bytes can
		// take its place.
		return 0, errors.Join(err, c.root.store.Delete(context.WithoutCancel(ctx), key))
	}
	return size, nil
}

// readBack returns the digest and size of what is stored at key.
func (c *committer) readBack(ctx context.Context, key string) (digest string, size int64, err error) {
	h := newHash(c.version.algorithm)
	size, err = hashObject(ctx, c.root.store, key, h)
	return hexSum(h), size, err
}

// buffers has the memory of hashObject, for all roots.
var buffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// hashObject copies the content of key to w. It reads a piece while it writes the one before.
func hashObject(ctx context.Context, store storage.Store, key string, w io.Writer) (size int64, err error) {
	in, err := store.Open(ctx, key, 0, -1)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	from := storage.Interruptible(ctx, in)
	var pieces [2]*[256 << 10]byte
	for i := range pieces {
		pieces[i] = buffers.Get().(*[256 << 10]byte) //nolint:forcetypeassert // the pool has nothing else
		defer buffers.Put(pieces[i])
	}
	n, ended := storage.Fill(from, pieces[0][:])
	for i := 0; ; i ^= 1 {
		next, after := 0, ended
		var reading sync.WaitGroup
		if ended == nil {
			reading.Go(func() { next, after = storage.Fill(from, pieces[i^1][:]) })
		}
		_, err := w.Write(pieces[i][:n])
		reading.Wait()
		size += int64(n)
		switch {
		case err != nil:
			return size, err
		case errors.Is(ended, io.EOF):
			return size, nil
		case ended != nil:
			return size, ended
		}
		n, ended = next, after
	}
}
