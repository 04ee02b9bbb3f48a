package catalogtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func objectItemTests() tests {
	return tests{
		"an_item_about_an_object":                      objectItem,
		"is_asked_for_once":                            objectItemOnce,
		"is_about_a_recorded_version":                  objectItemUnknown,
		"a_hold_on_its_volume_or_collection_covers_it": objectItemHeld,
		"can_be_stopped_sent_back_and_purged":          objectItemActs,
		"R01_keeps_others_from_the_object":             objectLock,
		"R01_waits_for_the_object_in_its_turn":         objectLockTurn,
		"R01_an_open_intent_keeps_the_object":          objectLockIntent,
		"an_unknown_object_cannot_be_locked":           objectLockUnknown,
	}
}

// requested returns the actions whose items a request adds. Deletions need an approval instead, and
// copies are the Registry's own.
func requested() []registry.Action {
	return slices.DeleteFunc(registry.ObjectActions(), func(a registry.Action) bool { return a == registry.DeleteObject || a == registry.CopyObject })
}

func objectItem(f *fixture) {
	ark := f.Object()
	for _, action := range requested() {
		r := registrytest.ObjectRequest(action, ark)
		it, err := f.Store.RequestObject(f.Context(), r)
		f.Must(err)
		route, _ := registry.RouteOf(action)
		if it.Action != action || it.Stage != route.First() || it.State != registry.StatePending || it.CreatedBy != "admin" ||
			it.Collection != registrytest.Mnemonic || !slices.Equal(it.Storages, []string{registrytest.Storage}) {
			f.Errorf("made %+v", it)
		}
		var spec registry.ObjectSpec
		f.Must(json.Unmarshal(it.Spec, &spec))
		r.Spec.Version = 1
		if diff := cmp.Diff(r.Spec, spec); diff != "" {
			f.Errorf("spec (-want +got):\n%s", diff)
		}
		events, err := f.Store.Events(f.Context(), it.ID, 0, 10)
		f.Must(err)
		if len(events) != 1 || events[0].Type != string(registry.ActSubmit) || events[0].Actor != "admin" || events[0].Collection != registrytest.Mnemonic {
			f.Fatalf("events %+v", events)
		}
		audit, err := f.Store.Audit(f.Context(), registry.AuditQuery{Actor: "admin"})
		f.Must(err)
		if !slices.ContainsFunc(audit.Rows, func(e registry.Event) bool { return e.Seq == events[0].Seq }) {
			f.Errorf("it is not among the audit's %+v", audit.Rows)
		}
		f.Finish(it.ID)
	}
}

func objectItemOnce(f *fixture) {
	ark := f.Object()
	for _, action := range requested() {
		r := registrytest.ObjectRequest(action, ark)
		r.IdempotencyKey = "once " + string(action)
		first, err := f.Store.RequestObject(f.Context(), r)
		f.Must(err)
		again, err := f.Store.RequestObject(f.Context(), r)
		f.Must(err)
		if again.ID != first.ID {
			f.Errorf("the repeat made %s beside %s", again.ID, first.ID)
		}
		r.Spec.Reason = "another"
		_, err = f.Store.RequestObject(f.Context(), r)
		f.Is(err, registry.ErrIdempotencyConflict)
	}
}

func objectItemUnknown(f *fixture) {
	ark := f.Object()
	for _, action := range requested() {
		for _, spec := range []registry.ObjectSpec{{ObjectID: "ark:/99999/no"}, {ObjectID: ark, Version: 2}, {ObjectID: ark, Version: -1}, {ObjectID: "\x00"}} {
			_, err := f.Store.RequestObject(f.Context(), registry.ObjectRequest{Action: action, Spec: spec, Actor: "admin"})
			f.Is(err, registry.ErrNotFound)
		}
	}
	for _, action := range []registry.Action{registry.Ingest, registry.Bulk, "no"} {
		_, err := f.Store.RequestObject(f.Context(), registry.ObjectRequest{Action: action, Spec: registry.ObjectSpec{ObjectID: ark}, Actor: "admin"})
		f.Is(err, registry.ErrInvalid)
	}
}

func objectItemHeld(f *fixture) {
	ark := f.Object()
	for _, action := range registry.ObjectActions() {
		route, _ := registry.RouteOf(action)
		id := f.ItemAbout(action, ark).ID
		holds := []registry.Hold{{Scope: registry.HoldAll}, {Scope: registry.HoldStage, Key: string(route.First())}, {Scope: registry.HoldItem, Key: id}}
		switch route.Steps[0].Writes {
		case registry.StorageVolume, registry.AllStorages:
			holds = append(holds, registry.Hold{Scope: registry.HoldVolume, Key: f.Item(id).Storages[0]})
		case registry.StagingVolume:
			holds = append(holds, registry.Hold{Scope: registry.HoldVolume, Key: registry.DefaultStaging})
		case registry.NoVolume:
		}
		for _, h := range holds {
			f.Hold(h.Scope, h.Key)
			f.State(id, registry.StateHeld)
			f.HeldBy(id, h.Scope, h.Key)
			if got := f.Refused(route.First(), id).Reason; got != registry.ReasonHeld {
				f.Errorf("claim: %s, want held", got)
			}
			f.Release(h.Scope, h.Key)
		}
		f.Finish(id)
	}
}

func objectItemActs(f *fixture) {
	ark := f.Object()
	for _, action := range registry.ObjectActions() {
		id := f.ItemAbout(action, ark).ID
		f.Command(id, registry.ActCancel, "")
		f.Command(id, registry.ActRequeue, "")
		f.FailItem(id, registry.SystemFault)
		f.Command(id, registry.ActRequeue, "")
		f.Finish(id)
		f.Command(id, registry.ActPurge, "")
		f.Purged(id)
	}
}

// objectKept locks an object, which must be refused because of holder.
func (f *fixture) objectKept(l registry.Lease, ark, holder string) {
	f.Helper()
	_, err := f.Store.LockObject(f.Context(), l, ark)
	var locked *registry.LockedError
	if !errors.As(err, &locked) {
		f.Fatalf("lock: %v, want that it is locked", err)
	}
	if locked.ItemID != holder {
		f.Errorf("locked by %s, want %s", locked.ItemID, holder)
	}
}

// checksOf requests a check of each of n files of an object, and claims them in the order of the
// requests.
func (f *fixture) checksOf(n int) (ark string, checks []registry.Claim) {
	f.Helper()
	c := f.Processing(1)[0]
	ark = f.Named(c.Lease, f.Unique("object")).ARK
	var files []registry.File
	for i := range n {
		files = append(files, registrytest.File(fmt.Sprint("producer/", i)))
	}
	f.Preserve(c.Lease, ark, 1, files...)
	f.Done(c.Lease)
	f.Finish(c.Item.ID)
	for _, file := range files {
		ask := registrytest.ObjectRequest(registry.FixityCheck, ark)
		ask.Spec.File = []byte(file.ContentPath)
		it, err := f.Store.RequestObject(f.Context(), ask)
		f.Must(err)
		checks = append(checks, f.Take(registry.Fixity, it.ID))
	}
	return ark, checks
}

func objectLock(f *fixture) {
	ark, c := f.checksOf(2)
	f.LockObject(c[0].Lease, ark)
	f.LockObject(c[0].Lease, ark)
	f.objectKept(c[1].Lease, ark, c[0].Item.ID)
	_, err := f.Store.Identify(f.Context(), f.Processing(1)[0].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: ark})
	var locked *registry.LockedError
	if !errors.As(err, &locked) || locked.ItemID != c[0].Item.ID {
		f.Errorf("a deposit: %v, want that the object is locked", err)
	}
	// Over a lost attempt it is kept, and the next attempt goes on with it.
	f.Settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeReleased})
	_, err = f.Store.LockObject(f.Context(), c[0].Lease, ark)
	f.Is(err, registry.ErrClaimLost)
	f.objectKept(c[1].Lease, ark, c[0].Item.ID)
	f.LockObject(f.TakeItem(c[0].Item.ID).Lease, ark)
}

func objectLockTurn(f *fixture) {
	ark, c := f.checksOf(3)
	f.LockObject(c[0].Lease, ark)
	for _, waiter := range []registry.Claim{c[2], c[1]} {
		f.objectKept(waiter.Lease, ark, c[0].Item.ID)
		f.Snooze(waiter.Lease)
	}
	f.refusedAt(registry.Fixity, registry.ReasonLocked, c[1:]...)
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	if got := f.Offered(100); !slices.Contains(got, c[1].Item.ID) || slices.Contains(got, c[2].Item.ID) {
		f.Errorf("rung for %v, want for the one who was submitted first", got)
	}
	f.LockObject(f.Take(registry.Fixity, c[1].Item.ID).Lease, ark)
	f.refusedAt(registry.Fixity, registry.ReasonLocked, c[2])
}

func objectLockIntent(f *fixture) {
	ark, checks := f.checksOf(1)
	deposit, l := f.Processing(1)[0], checks[0].Lease
	f.Identify(deposit.Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: ark})
	f.Intend(deposit.Lease, ark, 2, `{}`)
	f.Settle(registry.Settlement{Lease: deposit.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "storage is down"})
	f.objectKept(l, ark, deposit.Item.ID)
	f.Clock.Pass(time.Hour)
	f.objectKept(l, ark, deposit.Item.ID)
}

func objectLockUnknown(f *fixture) {
	_, c := f.checksOf(1)
	for _, id := range []string{"ark:/99999/no", "", "\x00"} {
		_, err := f.Store.LockObject(f.Context(), c[0].Lease, id)
		f.Is(err, registry.ErrInvalid)
	}
}
