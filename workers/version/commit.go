package version

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/resume"
)

// Store writes the announced version. d is what this attempt drafted, or nil. If the version's
// staged data cannot be used, Store makes that again from the downloaded files. It may be repeated
// at any point.
func (w *Maker) Store(ctx context.Context, item *base.Item, p result.Plan, d *Drafted) error {
	if d == nil || d.Digest != p.Digest {
		d = &Drafted{Plan: p}
	}
	err := w.commit(ctx, item, d)
	if unusable(p, err) {
		err = w.commitAgain(ctx, item, p, err)
	}
	if err != nil {
		return fmt.Errorf("store version %d of %s in storage %q: %w", p.Version, p.ObjectID, item.Storages[0], err)
	}
	return nil
}

// planned returns the inventory of an announced version and its changes. The inventory of a small
// version that is recorded comes from its storage, without changes: all is stored.
func (w *Maker) planned(ctx context.Context, item *base.Item, home ocfl.Named, d *Drafted) (*ocfl.Inventory, iter.Seq2[result.Planned, error], error) {
	p, small := d.Plan, d.small
	if !p.Small {
		inv, err := w.announced(ctx, p)
		return inv, staging.ReadList[result.Planned](ctx, w.Payloads.Staging, p.Changes()), err
	}
	if small == nil {
		in, err := w.Registry.Intend(ctx, item.Lease(), registry.Intent{ObjectID: p.ObjectID, Version: p.Version})
		if err != nil {
			return nil, nil, err
		}
		if in.Staged == "" {
			inv, err := home.Inventory(ctx, p.ObjectID, p.Version)
			return inv, func(func(result.Planned, error) bool) {}, err
		}
		if small, err = readSmall(p, in.Staged); err != nil {
			return nil, nil, err
		}
	}
	return small.inv, func(yield func(result.Planned, error) bool) {
		for _, e := range small.Changes {
			if !yield(e, nil) {
				return
			}
		}
	}, nil
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
	inv, changes, err := w.planned(ctx, item, home, d)
	if err != nil {
		return err
	}
	staged, small := map[string]string{}, map[string][]byte{}
	for e, err := range changes {
		if err != nil {
			return err
		}
		switch {
		case e.Staged != "":
			staged[e.Content] = e.Staged
		case e.Data != nil:
			small[e.Content] = e.Data
		}
	}
	stored, err := resume.NewStored(ctx, item, "stored", p.Digest, p.Files, p.Bytes)
	if err != nil {
		return err
	}
	files, bytes := item.Progress("files stored and verified", "files").Kept(), item.Progress("bytes stored and verified", "bytes").Kept()
	err = home.Commit(ctx, inv, func(f ocfl.ContentFile) (storage.Store, string, error) {
		key, ok := staged[f.Path]
		if !ok {
			return nil, "", fmt.Errorf("%s is not among the planned files", f.Path)
		}
		return w.Payloads.Staging, key, item.Writable(ctx)
	}, ocfl.CommitOptions{
		Data: func(f ocfl.ContentFile) ([]byte, bool) {
			data, ok := small[f.Path]
			return data, ok
		},
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
	return errors.Join(item.SetResult(result.NameChanges, again.List), item.SetResult(result.NameChangesDigest, again.ListDigest))
}
