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

// lateWrites is how long a worker may go on writing after its attempt ended, because it has not
// noticed: a lease and the grace period of a shutdown (R26).
const lateWrites = 2 * time.Minute

// queueTidy adds the item that removes what a given-up item left in staging. It runs in the
// transaction that gives the item up. An item that was never claimed left nothing, except a batch
// with an upload.
func (t *tx) queueTidy(it registry.WorkItem, actor string) error {
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

// queueTidyAgain queues another tidy if a worker lost the item. That worker may have written to its
// staging after the staging was removed (R26).
func (t *tx) queueTidyAgain(it registry.WorkItem) error {
	if _, ok := it.Results[registry.ResultSuperseded]; !ok {
		return nil
	}
	return t.queueTidy(it, work.ActorRegistry)
}

// releaseRoom ends the reservation of the item whose staging a tidy item has removed: a reservation
// lives as long as its staging (R24).
func (t *tx) releaseRoom(it registry.WorkItem) error {
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
