package workers

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// commit writes the announced version and reads every new byte of it back. It may be repeated at any point.
func (w *Process) commit(ctx context.Context, item *base.Item, p plan) error {
	if err := item.Writable(ctx); err != nil {
		return err
	}
	in, err := w.Staging.Open(ctx, p.Inventory, 0, -1)
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("what was planned is gone from staging: %w", err)
	} else if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	inv, err := ocfl.ReadInventory(in, p.Inventory)
	if err != nil {
		return err
	}
	staged := map[string]string{}
	for e, err := range staging.ReadList[planned](ctx, w.Staging, p.List) {
		if err != nil {
			return err
		}
		if e.Staged != "" {
			staged[e.Content] = e.Staged
		}
	}
	files, bytes := item.Progress("files stored and verified", "files"), item.Progress("bytes verified", "bytes")
	err = w.Objects.Commit(ctx, inv, func(f ocfl.ContentFile) (storage.Store, string, error) {
		key, ok := staged[f.Path]
		if !ok {
			return nil, "", fmt.Errorf("%s is not among the planned files", f.Path)
		}
		return w.Staging, key, item.Writable(ctx)
	}, ocfl.CommitOptions{Progress: func(now ocfl.Progress) {
		files.SetEnd(int64(now.TotalFiles))
		files.Set(int64(now.Files))
		bytes.Set(now.Bytes)
	}})
	if err != nil {
		return err
	}
	return item.Event("stored", map[string]any{"object_id": p.ObjectID, "version": p.Version, "files": p.Files, "bytes": p.Bytes})
}
