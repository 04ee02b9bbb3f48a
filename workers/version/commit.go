package version

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/spill"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/tracing"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/resume"
)

// Store writes the announced version. d is what this attempt drafted, or nil. If the version's
// staged data cannot be used, Store makes that again from the downloaded files. It may be repeated
// at any point.
func (w *Maker) Store(ctx context.Context, item *base.Item, p result.Plan, d *Drafted) (err error) {
	ctx, span := tracing.Start(ctx, "ocfl write")
	defer func() { span.End(err) }()
	if d == nil || d.Digest != p.Digest {
		d = &Drafted{Plan: p}
	}
	err = w.commit(ctx, item, d)
	if unusable(p, err) {
		err = w.commitAgain(ctx, item, p, err)
	}
	if err == nil && item.Repeats() {
		err = w.dropUnfinished(ctx, item, p)
	}
	if err != nil {
		return fmt.Errorf("store version %d of %s in storage %q: %w", p.Version, p.ObjectID, item.Storages[0], err)
	}
	return nil
}

// dropUnfinished deletes what killed attempts left of a version that is complete.
func (w *Maker) dropUnfinished(ctx context.Context, item *base.Item, p result.Plan) error {
	home, err := w.firstStorage(item)
	if err != nil {
		return err
	}
	return home.DropUnfinished(ctx, p.Stored(), p.Version)
}

// planned returns what an announced version adds, and its changes. The inventory of a small version
// that is recorded comes from its storage, without changes: all is stored.
func (w *Maker) planned(ctx context.Context, item *base.Item, home ocfl.Named, d *Drafted, space *spill.Space) (*ocfl.Addition, iter.Seq2[result.Planned, error], error) {
	p, small := d.Plan, d.small
	if !p.Small {
		a, err := w.announced(ctx, p, space)
		return a, staging.ReadList[result.Planned](ctx, w.Payloads.Staging, p.Changes()), err
	}
	if small == nil {
		in, err := w.Registry.Intend(ctx, item.Lease(), registry.Intent{ObjectID: p.ObjectID, Version: p.Version})
		if err != nil {
			return nil, nil, err
		}
		if in.Staged == "" {
			inv, err := home.Inventory(ctx, p.Stored(), p.Version)
			if err != nil {
				return nil, nil, err
			}
			return inv.Addition(), func(func(result.Planned, error) bool) {}, nil
		}
		if small, err = readSmall(p, in.Staged); err != nil {
			return nil, nil, err
		}
	}
	return small.adds, func(yield func(result.Planned, error) bool) {
		for _, e := range small.Changes {
			if !yield(e, nil) {
				return
			}
		}
	}, nil
}

// announced returns what the announced version adds, by its staged inventory.
func (w *Maker) announced(ctx context.Context, p result.Plan, space *spill.Space) (*ocfl.Addition, error) {
	return ocfl.ReadAddition(ctx, w.Payloads.Staging, p.Inventory, p.Version, p.Algorithm, p.Digest, space)
}

// origins says where the bytes of a version's content files are. It must be asked for them in the
// order of their paths.
type origins struct {
	path   string // of the content file that was read last
	origin []byte
	more   bool
	next   func() (path, origin []byte, more bool)
	stop   func()
	space  *spill.Space
}

// The first byte of an origin says what follows: a key in staging, or the bytes themselves.
const (
	stagedOrigin = 's'
	dataOrigin   = 'd'
)

// originsOf reads the changes of a version.
func originsOf(changes iter.Seq2[result.Planned, error], space *spill.Space) (*origins, error) {
	sorter := space.NewSorter(nil)
	for e, err := range changes {
		if err != nil {
			return nil, err
		}
		added := true
		switch {
		case e.Staged != "":
			added = sorter.Add([]byte(e.Content), append([]byte{stagedOrigin}, e.Staged...))
		case e.Data != nil:
			added = sorter.Add([]byte(e.Content), append([]byte{dataOrigin}, e.Data...))
		}
		if !added {
			return nil, space.Err()
		}
	}
	o := &origins{space: space}
	o.next, o.stop = iter.Pull2(sorter.Sorted())
	o.read()
	return o, nil
}

func (o *origins) read() {
	var path []byte
	path, o.origin, o.more = o.next()
	o.path = string(path)
}

// find moves on to a content file. It reports whether its origin is known, and what kind it is.
func (o *origins) find(f ocfl.ContentFile) (kind byte, ok bool) {
	for o.more && o.path < f.Path {
		o.read()
	}
	if !o.more || o.path != f.Path {
		return 0, false
	}
	return o.origin[0], true
}

// data returns the bytes of a small file.
func (o *origins) data(f ocfl.ContentFile) ([]byte, bool) {
	if kind, ok := o.find(f); !ok || kind != dataOrigin {
		return nil, false
	}
	return bytes.Clone(o.origin[1:]), true
}

// staged returns the key of a file in staging.
func (o *origins) staged(f ocfl.ContentFile) (string, error) {
	if kind, ok := o.find(f); ok && kind == stagedOrigin {
		return string(o.origin[1:]), nil
	}
	return "", cmp.Or(o.space.Err(), fmt.Errorf("%s is not among the planned files", f.Path))
}

// commit writes the announced version and reads every new byte back.
func (w *Maker) commit(ctx context.Context, item *base.Item, d *Drafted) error {
	if err := item.Writable(ctx); err != nil {
		return err
	}
	home, err := w.firstStorage(item)
	if err != nil {
		return err
	}
	p := d.Plan
	space := home.Spill()
	defer space.Close() //nolint:errcheck // nothing depends on a temporary file
	addition, changes, err := w.planned(ctx, item, home, d, space)
	if err != nil {
		return err
	}
	origins, err := originsOf(changes, space)
	if err != nil {
		return err
	}
	defer origins.stop()
	stored, err := resume.NewStored(ctx, item, "stored, by path", p.Digest, p.Files, p.Bytes)
	if err != nil {
		return err
	}
	files, bytes := item.Progress("files stored and verified", "files").Kept(), item.Progress("bytes stored and verified", "bytes").Kept()
	err = home.CommitAddition(ctx, addition, func(f ocfl.ContentFile) (storage.Store, string, error) {
		key, err := origins.staged(f)
		return w.Payloads.Staging, key, cmp.Or(err, item.Writable(ctx))
	}, ocfl.CommitOptions{
		Data:     origins.data,
		Verified: stored.Before(),
		Stored:   func(place int, size int64) error { return stored.Add(ctx, place, size) },
		Progress: func(now ocfl.Progress) {
			files.SetEnd(int64(now.TotalFiles))
			files.Set(int64(now.Files))
			bytes.Set(now.Bytes)
		},
	})
	if err != nil && ctx.Err() != nil {
		// Stopping: the next worker resumes here.
		err = errors.Join(err, stored.Note(ctx))
	}
	return err
}

// unusable reports whether a version's staged data is missing or damaged.
func unusable(p result.Plan, err error) bool {
	var wrong *ocfl.DigestError
	var inventory *ocfl.InventoryError
	return errors.Is(err, storage.ErrNotFound) || errors.Is(err, staging.ErrDamaged) || errors.As(err, &wrong) && !wrong.Existing ||
		errors.As(err, &inventory) && inventory.Key == p.Inventory
}

// commitAgain makes the announced version again from the downloaded files, after cause showed that
// its staged data cannot be used (R6). An announced version can only be rolled forward, with
// exactly the announced bytes.
func (w *Maker) commitAgain(ctx context.Context, item *base.Item, p result.Plan, cause error) error {
	got, err := result.DownloadOf(item)
	if err != nil {
		return err
	}
	if err := w.Payloads.Examine(ctx, item, got); err != nil {
		return errors.Join(err, cause)
	}
	c := got.Contents(item.Spec().Type)
	if payload.Unpacks(c.Kind) {
		if c, err = w.Opener.OpenAnew(ctx, item, got); err != nil {
			return err
		}
	}
	d, err := w.Describe(ctx, item, c)
	if err != nil {
		return err
	}
	again, err := w.Draft(ctx, item, d, registry.Identity{ARK: p.ObjectID, Head: p.Version - 1, Minted: p.Minted},
		result.Plan{Created: p.Created, Software: p.Software, Small: p.Small})
	if err != nil {
		return errors.Join(err, cause)
	}
	if again.Digest != p.Digest {
		return base.Fatal(fmt.Errorf("the staged data cannot be used, and making it again gives another version than the announced one: %w", cause))
	}
	if err := w.commit(ctx, item, again); err != nil || p.Small {
		return err
	}
	return errors.Join(item.SetResult(registry.ResultChanges, again.List), item.SetResult(registry.ResultChangesDigest, again.ListDigest))
}
