package ocfl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/storage"
)

// Source returns the store and key that hold the bytes of a content file.
type Source func(ContentFile) (storage.Store, string, error)

// CommitOptions control how Commit works. The zero value is usable.
type CommitOptions struct {
	Workers  int            // files copied and verified at the same time; 0 means 4
	Progress func(Progress) // called after each file, never concurrently

	// Verified reports whether an earlier call stored and verified a content file, given by its
	// index in [Inventory.ContentFiles]. Commit then only checks that the file exists. It may be
	// nil.
	Verified func(place int) bool
	// Data returns the bytes of a small content file that lies in no store; ok is false for any
	// other, whose bytes Source finds. It may be nil.
	Data func(ContentFile) (data []byte, ok bool)
	// Stored is called with the index and the size in bytes of each file that this call stored and
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
	base, err := r.ObjectKey(inv.ID)
	if err != nil {
		return fmt.Errorf("commit %q: %w", inv.ID, err)
	}
	if inv.Head() == 0 {
		return fmt.Errorf("commit %q: %w: it has no version", inv.ID, ErrNoPredecessor)
	}
	h := newHash(inv.Algorithm)
	if err := inv.Encode(h); err != nil {
		return fmt.Errorf("commit %q: %w", inv.ID, err)
	}
	c := &committer{root: r, inv: inv, source: source, opts: opts}
	c.encode = func(_ context.Context, w io.Writer) error { return inv.Encode(w) }
	c.version = published{
		root: r, base: base, version: inv.VersionName(inv.Head()), next: inv.VersionName(inv.Head() + 1),
		algorithm: inv.Algorithm, digest: hexSum(h),
	}
	if err := c.run(ctx); err != nil {
		return fmt.Errorf("commit %s of %q: %w", c.version.version, inv.ID, err)
	}
	return nil
}

// committer writes one version up to and beyond its commit point.
type committer struct {
	root    *Root
	inv     *Inventory
	source  Source
	opts    CommitOptions
	apart   bool                                         // copies share no bytes with their source
	encode  func(ctx context.Context, w io.Writer) error // writes exactly the bytes of the version's inventory
	version published

	mu       sync.Mutex
	progress Progress
}

func (c *committer) run(ctx context.Context) error {
	done, err := c.version.exists(ctx)
	if errors.Is(err, ErrVersionExists) {
		// Report another object in the folder as such.
		if object, headerErr := c.root.header(ctx, c.version.base); headerErr == nil && object.ID != c.inv.ID {
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
	if err := c.encode(ctx, w); err != nil {
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
	name, content := c.inv.declaration()
	return c.version.base + "/" + name, content
}

// onlyOurs returns a *ForeignError if the version's folder holds files that the version does not
// have. They may come from an abandoned version, written late by a worker that lost its lease, or
// from another program. They would make the object invalid.
func (c *committer) onlyOurs(ctx context.Context) error {
	ours := map[string]bool{}
	for _, f := range c.inv.ContentFiles() {
		ours[c.version.base+"/"+f.Path] = true
	}
	// Another process that commits the same version may be ahead of this one.
	ours[c.version.inventoryKey()], ours[c.version.sidecarKey()] = true, true
	foreign := &ForeignError{Folder: c.version.base + "/" + c.version.version}
	for info, err := range c.root.store.List(ctx, foreign.Folder+"/") {
		if err != nil {
			return err
		}
		if !ours[info.Key] {
			foreign.add(info.Key)
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
	n := c.inv.Head()
	object, err := c.root.header(ctx, c.version.base)
	switch {
	case errors.Is(err, ErrNotFound):
		object = Object{ID: c.inv.ID}
	case err != nil:
		return err
	}
	if object.ID != c.inv.ID {
		return fmt.Errorf("%w: %q holds %q", ErrIDTaken, c.version.base, object.ID)
	}
	if object.Head >= n {
		return fmt.Errorf("%w: the object is at version %d", ErrVersionExists, object.Head)
	}
	if object.Head == n-1 {
		return nil
	}
	before := c.version
	before.version = c.inv.VersionName(n - 1)
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
	files := c.inv.ContentFiles()
	c.progress.TotalFiles = len(files)
	for next := 0; ; {
		copied, err := c.copyFiles(ctx, b, files, &next)
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
		if err := c.verifyFiles(ctx, files, copied, taken); err != nil {
			return err
		}
		if next == len(files) {
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

// copyFiles adds files to a batch, from next on, until it has enough. It returns the indexes of
// those that it added. An earlier call's files are only looked at.
func (c *committer) copyFiles(ctx context.Context, b storage.Batch, files []ContentFile, next *int) (copied []int, err error) {
	group, groupCtx := c.group(ctx)
	for ; *next < len(files) && len(copied) < c.batchFiles() && b.Bytes() < batchBytes && groupCtx.Err() == nil; *next++ {
		place := *next
		key := c.version.base + "/" + files[place].Path
		size, there, err := c.verified(ctx, place, key)
		if err == nil && there {
			err = errors.Join(b.Rely(ctx, key), c.done(place, size, false))
		}
		if err != nil {
			return nil, errors.Join(err, group.Wait())
		}
		if !there {
			copied = append(copied, place)
			group.Go(func() error { return c.copyFile(groupCtx, b, key, files[place]) })
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return copied, ctx.Err()
}

// copyFile adds one file to a batch.
func (c *committer) copyFile(ctx context.Context, b storage.Batch, key string, f ContentFile) error {
	if c.opts.Data != nil {
		if data, ok := c.opts.Data(f); ok {
			return storage.PutIn(ctx, b, key, data)
		}
	}
	store, from, err := c.source(f)
	if err != nil {
		return fmt.Errorf("source of %q: %w", f.LogicalPath, err)
	}
	if l, ok := c.root.store.(storage.Linker); c.apart && ok && l.Links() {
		return storage.CopyInto(ctx, b, key, store, from)
	}
	return b.Copy(ctx, key, store, from)
}

// verifyFiles reads back the files with these indexes, of which some keys were taken.
func (c *committer) verifyFiles(ctx context.Context, files []ContentFile, places []int, taken []string) error {
	group, groupCtx := c.group(ctx)
	for _, place := range places {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			key := c.version.base + "/" + files[place].Path
			_, existing := slices.BinarySearch(taken, key)
			size, err := c.verify(groupCtx, key, files[place], existing)
			if err != nil {
				return err
			}
			return c.done(place, size, true)
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
		err := &DigestError{Key: key, Algorithm: c.inv.Algorithm, Want: f.Digest, Got: got, Existing: existing}
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
	h := newHash(c.inv.Algorithm)
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
