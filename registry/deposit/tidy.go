package deposit

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// lateWrites is how long after the end of an attempt its worker may still write, because it has not
// heard of it: a lease and the grace of a shutdown (R26).
const lateWrites = 2 * time.Minute

// tidy makes the item that sees to what a given-up item left in staging, in the transaction that
// gives it up. What was never claimed has left nothing, but for the upload that it was submitted
// as.
func (t *tx) tidy(it registry.WorkItem, actor string) error {
	staged := []registry.Action{registry.Ingest, registry.Batch, registry.RestoreObject}
	if !slices.Contains(staged, it.Action) {
		return nil
	}
	if it.Attempt == 0 {
		spec, err := work.SpecOf(it)
		if err != nil {
			return err
		}
		if _, upload := registry.UploadID(spec.URL); !upload || it.Action != registry.Batch {
			return nil
		}
	}
	ended := t.Now
	if it.Status != registry.Running {
		ended = sqldb.Micros(it.UpdatedAt)
	}
	route, _ := registry.RouteOf(registry.Tidy)
	return t.Insert(work.NewItem{
		ID: sqldb.NewID(), Tenant: it.Tenant, Collection: it.Collection, Action: registry.Tidy, Stage: route.First(),
		Status: registry.Pending, Priority: registry.DefaultPriority, Name: "staging of item " + it.ID, Actor: actor,
		Input: registry.TidySpec{Subject: it.ID}, Delay: max(0, ended+lateWrites.Microseconds()-t.Now),
	})
}

// tidyAgain sees to what a worker from which the item was taken may have written to its staging
// after that was given back (R26).
func (t *tx) tidyAgain(it registry.WorkItem) error {
	if _, ok := it.Results[registry.ResultSuperseded]; !ok {
		return nil
	}
	return t.tidy(it, work.ActorRegistry)
}

// tidied gives back the room of the item whose staging a tidy item has removed: a reservation lives
// as long as its staging (R24).
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
	return t.Unreserve(spec.Subject)
}
