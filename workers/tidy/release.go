// Package tidy removes items' data from staging, and finds orphaned data.
//
// Release removes everything that one item staged and noted, by its prefix and never by the content
// of interim data (R26). ReleaseUpload removes an upload that no batch can need any more. Orphans
// searches volumes and interim data for data without an owner. It lists them first and asks the
// Registry afterwards, so that data whose owner appears meanwhile never counts as orphaned. It
// removes only data that certainly belongs to this Holdfast. When to do this is decided by the
// workers.
package tidy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// Release removes everything that the attempts of an item, named by id, have staged and noted. It
// deletes by prefix, never by the content of interim data (R26). A repeat removes what is left.
func Release(ctx context.Context, item *base.Item, id string, s storage.Store, i interim.Store) error {
	if err := item.Writable(ctx); err != nil {
		return err
	}
	if err := s.DeletePrefix(ctx, staging.ItemPrefix(id)); err != nil {
		return fmt.Errorf("release staging: %w", err)
	}
	if err := i.Drop(ctx, id); err != nil {
		return fmt.Errorf("release interim data: %w", err)
	}
	return nil
}

// finalStates are the states of items that can never run again. Failed and cancelled items can be
// requeued.
var finalStates = []registry.State{registry.StateCompleted, registry.StateAborted, registry.StateDeleted}

// ReleaseUpload removes the upload of a batch, unless one of its jobs or another batch may still
// need it: then needed is true. The item is the batch at its report, or the item that cleans up
// after it. It does nothing for a batch from another source.
func ReleaseUpload(ctx context.Context, r registry.ForWorkers, staging storage.Store, item *base.Item, batch registry.WorkItem) (needed bool, err error) {
	var spec registry.Spec
	if err := json.Unmarshal(batch.Spec, &spec); err != nil {
		return false, fmt.Errorf("decode spec of item %s: %w", batch.ID, err)
	}
	id, ok := registry.UploadID(spec.URL)
	if !ok {
		return false, nil
	}
	// A concurrent submission either gets an error or keeps the upload.
	if released, err := r.ReleaseUpload(ctx, item.Lease(), id); err != nil || !released {
		return true, err
	}
	if err := staging.DeletePrefix(ctx, source.UploadKey(id)); err != nil {
		return false, fmt.Errorf("release upload %s: %w", id, err)
	}
	return false, nil
}

// needsUpload reports whether a batch, or one of its jobs, may need its upload.
func needsUpload(ctx context.Context, r registry.ForWorkers, batch registry.WorkItem) (bool, error) {
	if !slices.Contains(finalStates, batch.State) {
		return true, nil
	}
	jobs, err := r.CountItems(ctx, registry.ItemQuery{ParentID: batch.ID})
	if err != nil {
		return false, err
	}
	for state, n := range jobs {
		if n > 0 && !slices.Contains(finalStates, state) {
			return true, nil
		}
	}
	return false, nil
}
