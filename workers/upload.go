package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
)

// over are the states of items that can never be at work again: what failed or was cancelled may be sent back.
var over = []registry.State{registry.StateCompleted, registry.StateAborted, registry.StateDeleted}

// releaseUpload removes the bytes that a batch was submitted as, if it is an upload's and no job of it, nor any other batch, can
// need them again: needed says whether one can. itself says that the batch is over but for the step that asks.
func releaseUpload(ctx context.Context, r registry.ForWorkers, staging storage.Store, batch registry.WorkItem, itself bool) (needed bool, err error) {
	var spec registry.Spec
	if err := json.Unmarshal(batch.Spec, &spec); err != nil {
		return false, fmt.Errorf("decode spec of item %s: %w", batch.ID, err)
	}
	id, ok := registry.UploadID(spec.URL)
	if !ok {
		return false, nil
	}
	all, err := r.BatchesOf(ctx, id)
	if err != nil {
		return false, err
	}
	for _, b := range all {
		needed, err := needsUpload(ctx, r, b, itself && b.ID == batch.ID)
		if needed || err != nil {
			return needed, err
		}
	}
	asks := ""
	if itself {
		asks = batch.ID
	}
	// Whoever submits it at this moment is told that it is gone, or keeps it.
	if retired, err := r.RetireUpload(ctx, id, asks); err != nil || !retired {
		return true, err
	}
	if err := staging.DeletePrefix(ctx, source.UploadKey(id)); err != nil {
		return false, fmt.Errorf("release upload %s: %w", id, err)
	}
	return false, nil
}

// needsUpload says whether a batch, or a job of it, may need the upload that it was submitted as.
func needsUpload(ctx context.Context, r registry.ForWorkers, batch registry.WorkItem, itself bool) (bool, error) {
	if !itself && !slices.Contains(over, batch.State) {
		return true, nil
	}
	jobs, err := r.CountItems(ctx, registry.ItemQuery{ParentID: batch.ID})
	if err != nil {
		return false, err
	}
	for state, n := range jobs {
		if n > 0 && !slices.Contains(over, state) {
			return true, nil
		}
	}
	return false, nil
}
