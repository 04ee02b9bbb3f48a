package worktest

import (
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// seedLockTests check what replaces Merritt's five locks (mrt-zk's lock_ingest, lock_collection,
// lock_store, lock_inventory, and the ingest service's lock of a local id with its owner): a hold,
// or a row of table lock.
func seedLockTests() tests {
	return tests{
		// /locks/queue/ingest: a hold on all deposits.
		"lock_ingest_is_a_hold_on_ingest":                 seedHold(registry.HoldIngest, ""),
		"a_hold_on_all_is_a_lock_ingest_that_covers_more": seedHold(registry.HoldAll, ""),
		// /locks/collections/MNEMONIC: a hold on the collection.
		"lock_collection_is_a_hold_on_the_collection": seedHold(registry.HoldCollection, registrytest.Mnemonic),
		// The storage node: a hold on the volume.
		"lock_storage_node_is_a_hold_on_the_volume": seedHold(registry.HoldVolume, registry.DefaultStorage),
		// /locks/storage/ARK and /locks/inventory/ARK: one lock of the ARK, from process to the end
		// of the item.
		"lock_store_and_lock_inventory_are_the_lock_of_the_ark": seedLock(registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: "ark:/99999/x"}),
		// /locks/local_id/OWNER_LOCAL: the lock of owner and local id.
		"lock_localid_is_the_lock_of_owner_and_local_id": seedLock(registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x"}}),
		"lock_localid_keeps_owners_apart":                seedOwners,
	}
}

// seedHold: the hold stops everybody else. Adding it again adds no second one. A worker that dies
// under it loses nothing. Releasing a missing hold is an error.
func seedHold(scope registry.HoldScope, key string) func(*fixture) {
	return func(f *fixture) {
		var waits []string
		for range 3 {
			waits = append(waits, f.Job(registry.Process))
		}
		dying := f.TakeItem(waits[0])
		f.Hold(scope, key)
		f.Hold(scope, key)
		if all, err := f.Store.Holds(f.Context()); err != nil || len(all) != 1 {
			f.Fatalf("holds %+v, %v; want one", all, err)
		}
		for _, id := range waits[1:] {
			if got := f.Refused(registry.Process, id).Reason; got != registry.ReasonHeld {
				f.Errorf("claim: %s, want held", got)
			}
		}
		if lost := f.Sweep(2 * registrytest.Lease); !slices.Equal(lost, []registry.Lease{dying.Lease}) {
			f.Errorf("lost %v, want the dead worker's %v", lost, dying.Lease)
		}
		f.Clock.Pass(time.Hour)
		f.State(waits[0], registry.StateHeld) // its next try is a new step
		f.Release(scope, key)
		f.Is(f.Store.RemoveHold(f.Context(), scope, key, "admin"), registry.ErrNotFound)
		for _, id := range waits { // in submit order
			if got := f.Take(registry.Process, "").Item.ID; got != id {
				f.Errorf("claimed %s, want %s", got, id)
			}
		}
	}
}

// seedLock: the second item waits in the order of submission. A dead worker's item keeps the lock
// and continues. The lock ends when the item settles.
func seedLock(r registry.IdentifyRequest) func(*fixture) {
	return func(f *fixture) {
		c := f.Processing(3)
		identify := func(l registry.Lease) error {
			r.Proposed = f.Unique("ark:/99999/fk")
			_, err := f.Store.Identify(f.Context(), l, r)
			return err
		}
		refused := func(l registry.Lease, holder string) {
			f.Helper()
			if got := f.LockedBy(identify(l)); got != holder {
				f.Errorf("locked by %s, want %s", got, holder)
			}
		}
		f.Must(identify(c[0].Lease))
		f.Must(identify(c[0].Lease)) // a repeat is the same lock
		for _, i := range []int{2, 1} {
			refused(c[i].Lease, c[0].Item.ID)
			f.Snooze(c[i].Lease)
		}

		// The holder's worker dies. Nobody gets its lock; another worker goes on with it.
		if lost := f.Sweep(2 * registrytest.Lease); !slices.Equal(lost, []registry.Lease{c[0].Lease}) {
			f.Fatalf("lost %v, want %v", lost, c[0].Lease)
		}
		f.Clock.Pass(time.Hour)
		f.refusedAtProcess(c[1].Item.ID)
		again := f.TakeItem(c[0].Item.ID)
		f.Must(identify(again.Lease))

		// It settles: the lock goes to the one that was submitted next, and not to who asked first.
		f.Done(again.Lease)
		f.Finish(c[0].Item.ID)
		for i := 1; i < 3; i++ {
			next := f.Take(registry.Process, c[2].Item.ID)
			if next.Item.ID != c[i].Item.ID {
				f.Fatalf("turn %d went to %s, want %s", i, next.Item.ID, c[i].Item.ID)
			}
			f.Must(identify(next.Lease))
			f.Settle(registry.Settlement{Lease: next.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"}) // a failed item's locks go, too
		}
	}
}

// refusedAtProcess checks that an item waits for a lock.
func (f *fixture) refusedAtProcess(id string) {
	f.Helper()
	r := f.Request(registry.Process, id)
	c, err := f.Store.Claim(f.Context(), r)
	if err == nil {
		if c.Item.ID == id {
			f.Errorf("%s was claimed although another item has its lock", id)
		}
		f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
		return
	}
	if got := f.ReasonOf(err); got != registry.ReasonLocked {
		f.Errorf("claim: %s, want locked", got)
	}
}

// seedOwners: the same local id of another owner is another lock.
func seedOwners(f *fixture) {
	for _, who := range []string{registrytest.Owner, "ark:/99999/other"} {
		f.Collection(registrytest.Mnemonic, registry.Profile{Owner: who})
		_, err := f.Store.Identify(f.Context(), f.Processing(1)[0].Lease, registry.IdentifyRequest{Owner: who, LocalIDs: []string{"x"}, Proposed: f.Unique("ark:/99999/fk")})
		f.Must(err)
	}
}
