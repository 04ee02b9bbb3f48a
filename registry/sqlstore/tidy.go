package sqlstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// lateWrites is how long after the end of an attempt its worker may still write, because it has not heard of it: a lease
// and the grace of a shutdown (R26).
const lateWrites = 2 * time.Minute

// tidy makes the item that sees to what a given-up item left in staging, in the transaction that gives it up. What was
// never claimed has left nothing, but for the upload that it was submitted as.
func (t *tx) tidy(it registry.WorkItem, actor string) error {
	staged := []registry.Action{registry.Ingest, registry.Batch, registry.RestoreObject}
	if !slices.Contains(staged, it.Action) {
		return nil
	}
	if it.Attempt == 0 {
		var spec registry.Spec
		if err := json.Unmarshal(it.Spec, &spec); err != nil {
			return fmt.Errorf("decode spec of item %s: %w", it.ID, err)
		}
		if _, upload := registry.UploadID(spec.URL); !upload || it.Action != registry.Batch {
			return nil
		}
	}
	ended := t.now
	if it.Status != registry.Running {
		ended = micros(it.UpdatedAt)
	}
	route, _ := registry.RouteOf(registry.Tidy)
	return t.insert(newItem{
		id: newID(), tenant: it.Tenant, collection: it.Collection, action: registry.Tidy, stage: route.First(),
		status: registry.Pending, priority: registry.DefaultPriority, name: "staging of item " + it.ID, actor: actor,
		input: registry.TidySpec{Subject: it.ID}, delay: max(0, ended+lateWrites.Microseconds()-t.now),
	})
}

// supersede notes that the live attempt of an item was taken from its worker.
func (t *tx) supersede(it registry.WorkItem) error {
	return t.setResult(it, registry.ResultSuperseded, json.RawMessage(strconv.FormatInt(it.Attempt, 10)))
}

// tidyAgain sees to what a worker from which the item was taken may have written to its staging after that was given back
// (R26).
func (t *tx) tidyAgain(it registry.WorkItem) error {
	if _, ok := it.Results[registry.ResultSuperseded]; !ok {
		return nil
	}
	return t.tidy(it, actorRegistry)
}

// tidied gives back the room of the item whose staging a tidy item has removed: a reservation lives as long as its
// staging (R24).
func (t *tx) tidied(it registry.WorkItem) error {
	if it.Action != registry.Tidy {
		return nil
	}
	var spec registry.TidySpec
	if err := json.Unmarshal(it.Spec, &spec); err != nil {
		return fmt.Errorf("decode spec of item %s: %w", it.ID, err)
	}
	if spec.Subject == "" {
		return nil
	}
	return t.unreserve(spec.Subject)
}
