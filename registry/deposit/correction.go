package deposit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/work"
)

// mostCorrections is how many corrections a batch remembers, the newest: results are small, and read
// with their item.
const mostCorrections = 50

// correct notes at the batch that a new batch corrects that it does so. Both are of one collection,
// so whoever sees one sees the other. It returns a *[registry.CorrectedError] if the corrections before
// already have all its failed rows.
func (t *tx) correct(batch work.NewItem) error {
	c := batch.Spec.Corrects
	if c == nil {
		return nil
	}
	old, err := t.Item(c.BatchID)
	if errors.Is(err, registry.ErrNotFound) || err == nil && (old.Action != registry.Batch || old.Collection != batch.Collection) {
		err = registry.ErrNotFound // the same error for all, so that it tells nothing
	}
	if err != nil {
		return fmt.Errorf("batch %s, to be corrected, in collection %s: %w", c.BatchID, batch.Collection, err)
	}
	var failed int64
	err = t.Get(`SELECT COUNT(*) FROM work_item WHERE parent_id = $1 AND status = 'failed' AND error_class = $2`, []any{old.ID, string(registry.ContentFault)}, &failed)
	if err != nil {
		return fmt.Errorf("count the failed rows of batch %s: %w", old.ID, err)
	}
	if old.Status != registry.Failed && failed == 0 { // rows can be corrected before the others have settled
		return fmt.Errorf("%w: batch %s is %s, and none of its jobs failed because of its content; there is nothing to correct", registry.ErrInvalid, old.ID, old.State)
	}
	had, err := correctionsOf(old, t.Item)
	if err != nil {
		return err
	}
	if by := registry.CorrectedAll(had, max(failed, 1)); c.Rows > 0 && by != "" {
		return &registry.CorrectedError{BatchID: old.ID, By: by}
	}
	kept := []registry.Correction{{BatchID: batch.ID, Rows: c.Rows}}
	for _, one := range had[:min(len(had), mostCorrections-1)] {
		kept = append(kept, registry.Correction{BatchID: one.BatchID, Rows: one.Rows})
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encode the corrections of batch %s: %w", old.ID, err)
	}
	if err := t.SetResult(old, registry.ResultCorrections, raw); err != nil {
		return err
	}
	return t.Event(old.ID, old.Attempt, registry.EventCorrected, batch.Actor, registry.Correction{BatchID: batch.ID, Rows: c.Rows})
}

// correctionsOf returns the corrections of a batch as they stand, newest first. Those that were
// removed are left out.
func correctionsOf(batch registry.WorkItem, item func(id string) (registry.WorkItem, error)) ([]registry.Correction, error) {
	raw, ok := batch.Results[registry.ResultCorrections]
	if !ok {
		return nil, nil
	}
	var all []registry.Correction
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("decode the corrections of batch %s: %w", batch.ID, err)
	}
	gone := func(c registry.Correction) bool { return c.State == "" }
	for i := range all {
		it, err := item(all[i].BatchID)
		if errors.Is(err, registry.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		all[i].State, all[i].Status = it.State, it.Status
		all[i].Void = it.FailedItself() || slices.Contains([]registry.Status{registry.Cancelled, registry.Aborted, registry.Deleted}, it.Status)
	}
	return slices.DeleteFunc(all, gone), nil
}
