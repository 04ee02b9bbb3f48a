package ocfl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/storage"
)

// Source says where the bytes of a content file are to be had: in which store, under which key.
type Source func(ContentFile) (storage.Store, string, error)

// CommitOptions change how Commit works, not what it does. The zero value is good.
type CommitOptions struct {
	Workers  int            // files copied and verified at once; 4 for 0
	Progress func(Progress) // called after each file, by one goroutine at a time

	// Verified says of a content file, by its place in [Inventory.ContentFiles], that an earlier
	// call stored and verified it. It is not read again, only seen to be there. nil: of none.
	Verified func(place int) bool
	// Stored is called with the place and size in bytes of each file that this call stored and
	// verified, by one goroutine at a time. Its error ends the commit. nil: nobody wants to know.
	Stored func(place int, size int64) error
}

// Progress is how far a commit or a validation has come.
type Progress struct {
	Files, TotalFiles int   // those that an earlier call verified are counted as done
	Bytes             int64 // that were read back, or seen to be there
}

// Commit writes the newest version of inv, which NewVersion planned, and returns when it is
// complete and verified. It may be called again, by whomever, at any point where an earlier call
// was cut off, and after it succeeded.
//
// The order is: declaration; content files (create-only; one that is there already is taken if its
// bytes are right), each read back and compared with its digest; vN/inventory.json (create-only:
// the commit point); its sidecar; the root's inventory and sidecar.
//
// ErrVersionExists says that the version is there with another inventory, ErrNoPredecessor that the
// one before it is not, ErrIDTaken that the folder is another object's, and a *DigestError that
// stored bytes are wrong. Nothing that was committed is ever changed.
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
	c := &committer{root: r, inv: inv, source: source, opts: opts, copy: storage.Copy}
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

// committer brings one version to its commit point, and beyond.
type committer struct {
	root    *Root
	inv     *Inventory
	source  Source
	opts    CommitOptions
	copy    func(ctx context.Context, dst storage.Store, dstKey string, src storage.Store, srcKey string) (storage.Info, error)
	encode  func(ctx context.Context, w io.Writer) error // the bytes of the version's inventory, nothing else
	version published
	buffers sync.Pool

	mu       sync.Mutex
	progress Progress
}

func (c *committer) run(ctx context.Context) error {
	done, err := c.version.exists(ctx)
	if errors.Is(err, ErrVersionExists) {
		// Say so when it is not even this object.
		if object, headerErr := c.root.header(ctx, c.version.base); headerErr == nil && object.ID != c.inv.ID {
			err = fmt.Errorf("%w: %q holds %q", ErrIDTaken, c.version.base, object.ID)
		}
	}
	if err != nil {
		return err
	}
	if !done {
		if err := c.write(ctx); err != nil {
			return err
		}
	}
	_, err = c.version.finish(ctx)
	return err
}

// write brings the version from nothing, or from what an earlier call left, to the commit point.
func (c *committer) write(ctx context.Context) error {
	if err := c.checkPredecessor(ctx); err != nil {
		return err
	}
	name, content := c.inv.declaration()
	if err := putSame(ctx, c.root.store, c.version.base+"/"+name, content); err != nil {
		return fmt.Errorf("declare object: %w", err)
	}
	if err := c.writeContent(ctx); err != nil {
		return err
	}
	if err := c.onlyOurs(ctx); err != nil {
		return err
	}
	w, err := c.root.store.Create(ctx, c.version.inventoryKey())
	if err != nil {
		return fmt.Errorf("write inventory: %w", err)
	}
	defer w.Abort() //nolint:errcheck // nothing depends on a writer that is given up
	if err := c.encode(ctx, w); err != nil {
		return fmt.Errorf("write inventory: %w", err)
	}
	_, err = w.Commit(ctx)
	if errors.Is(err, storage.ErrExists) {
		_, err = c.version.exists(ctx)
	}
	if err != nil {
		return fmt.Errorf("write inventory: %w", err)
	}
	return nil
}

// onlyOurs returns a *ForeignError when the version's folder holds what the version does not: files
// of a version that was abandoned, which a worker that was thought dead has written late, or of
// another program. The object would not be valid with them.
func (c *committer) onlyOurs(ctx context.Context) error {
	ours := map[string]bool{}
	for _, f := range c.inv.ContentFiles() {
		ours[c.version.base+"/"+f.Path] = true
	}
	// Whoever else commits this very version may be ahead of us.
	ours[c.version.inventoryKey()], ours[c.version.inventoryKey()+"."+c.version.algorithm] = true, true
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

// checkPredecessor sees to it that the version continues what is there. Only the root inventory
// tells whose object it is; it may lag behind by a version whose Commit was cut off.
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

// writeContent copies and verifies what the version adds.
func (c *committer) writeContent(ctx context.Context) error {
	files := c.inv.ContentFiles()
	c.progress.TotalFiles = len(files)
	workers := c.opts.Workers
	if workers <= 0 {
		workers = 4
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for place, f := range files {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error { return c.storeFile(groupCtx, place, f) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// storeFile sees to it that one file is stored and verified, and tells so.
func (c *committer) storeFile(ctx context.Context, place int, f ContentFile) error {
	key := c.version.base + "/" + f.Path
	size, there, err := c.verified(ctx, place, key)
	if err != nil {
		return err
	}
	if !there {
		if size, err = c.writeFile(ctx, key, f); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress.Files++
	c.progress.Bytes += size
	if c.opts.Progress != nil {
		c.opts.Progress(c.progress)
	}
	if there || c.opts.Stored == nil {
		return nil
	}
	return c.opts.Stored(place, size)
}

// verified tells whether an earlier call verified the file, and it is there still.
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

// writeFile copies one file, reads it back and returns its size in bytes.
func (c *committer) writeFile(ctx context.Context, key string, f ContentFile) (int64, error) {
	store, from, err := c.source(f)
	if err != nil {
		return 0, fmt.Errorf("source of %q: %w", f.LogicalPath, err)
	}
	_, err = c.copy(ctx, c.root.store, key, store, from)
	existing := errors.Is(err, storage.ErrExists)
	if err != nil && !existing {
		return 0, err
	}
	got, size, err := c.readBack(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("read back: %w", err)
	}
	if !strings.EqualFold(got, f.Digest) {
		err := &DigestError{Key: key, Algorithm: c.inv.Algorithm, Want: f.Digest, Got: got, Existing: existing}
		if existing {
			return 0, err
		}
		// This very call made the file and nothing refers to it: it must not stand in the way of
		// good bytes.
		return 0, errors.Join(err, c.root.store.Delete(context.WithoutCancel(ctx), key))
	}
	return size, nil
}

// readBack digests what is stored at key.
func (c *committer) readBack(ctx context.Context, key string) (digest string, size int64, err error) {
	buf, ok := c.buffers.Get().(*[]byte)
	if !ok {
		b := make([]byte, 256<<10)
		buf = &b
	}
	defer c.buffers.Put(buf)
	h := newHash(c.inv.Algorithm)
	size, err = hashObject(ctx, c.root.store, key, h, *buf)
	return hexSum(h), size, err
}

// hashObject writes the content of key to w.
func hashObject(ctx context.Context, store storage.Store, key string, w io.Writer, buf []byte) (int64, error) {
	in, err := store.Open(ctx, key, 0, -1)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	// Wrapped, so that io.CopyBuffer uses the buffer and the context is asked now and then.
	return io.CopyBuffer(w, storage.Interruptible(ctx, in), buf)
}
