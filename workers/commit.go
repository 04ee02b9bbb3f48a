package workers

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// commit writes the announced version and reads every new byte of it back. It may be repeated at any point.
func (w *Process) commit(ctx context.Context, item *base.Item, p plan) error {
	if err := item.Writable(ctx); err != nil {
		return err
	}
	home, err := w.home(item)
	if err != nil {
		return err
	}
	inv, err := w.announced(ctx, p)
	if err != nil {
		return err
	}
	staged := map[string]string{}
	for e, err := range staging.ReadList[planned](ctx, w.payloads.staging, p.List, p.ListDigest) {
		if err != nil {
			return err
		}
		if e.Staged != "" {
			staged[e.Content] = e.Staged
		}
	}
	stored, err := newStoring(ctx, item, p)
	if err != nil {
		return err
	}
	files, bytes := item.Progress("files stored and verified", "files").Kept(), item.Progress("bytes stored and verified", "bytes").Kept()
	err = home.Commit(ctx, inv, func(f ocfl.ContentFile) (storage.Store, string, error) {
		key, ok := staged[f.Path]
		if !ok {
			return nil, "", fmt.Errorf("%s is not among the planned files", f.Path)
		}
		return w.payloads.staging, key, item.Writable(ctx)
	}, ocfl.CommitOptions{
		Verified: stored.before(),
		Stored:   func(place int, size int64) error { return stored.add(ctx, place, size) },
		Progress: func(now ocfl.Progress) {
			files.SetEnd(int64(now.TotalFiles))
			files.Set(int64(now.Files))
			bytes.Set(now.Bytes)
		},
	})
	if err != nil && ctx.Err() != nil {
		// Told to stop: the next worker goes on right here.
		err = errors.Join(err, stored.note(ctx))
	}
	return err
}

// unusable says that what was staged for a version is gone or damaged.
func (p plan) unusable(err error) bool {
	var wrong *ocfl.DigestError
	var inventory *ocfl.InventoryError
	return errors.Is(err, storage.ErrNotFound) || errors.Is(err, staging.ErrDamaged) || errors.As(err, &wrong) && !wrong.Existing ||
		errors.As(err, &inventory) && inventory.Key == p.Inventory
}

// commitAgain makes the announced version anew from what was downloaded, when what was staged for it cannot be used (R6):
// an announced version can only be rolled forward, with the very bytes that were announced. cause is why.
func (w *Process) commitAgain(ctx context.Context, item *base.Item, p plan, cause error) error {
	got, err := result[downloaded](item, resultDownload, "nothing is noted as downloaded; requeue the item at download")
	if err != nil {
		return err
	}
	if err := w.payloads.examine(ctx, item, got); err != nil {
		return errors.Join(err, cause)
	}
	c := got.contents(item.Spec().Type)
	if unpacks(c.Kind) {
		if c, err = w.unpackAnew(ctx, item, got); err != nil {
			return err
		}
	}
	d, err := w.describe(ctx, item, c)
	if err != nil {
		return err
	}
	again, err := w.draft(ctx, item, d, registry.Identity{ARK: p.ObjectID, Head: p.Version - 1, Minted: p.Minted},
		plan{Created: p.Created, Software: p.Software})
	if err != nil {
		return errors.Join(err, cause)
	}
	if again.Digest != p.Digest {
		return base.Fatal(fmt.Errorf("what was staged cannot be used, and what can be had now makes another version than was announced: %w", cause))
	}
	if err := w.commit(ctx, item, again); err != nil {
		return err
	}
	return errors.Join(item.SetResult(resultChanges, again.List), item.SetResult(resultChangesDigest, again.ListDigest))
}
