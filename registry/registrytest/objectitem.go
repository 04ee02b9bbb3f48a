package registrytest

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func objectItemTests() []test {
	return []test{
		{"an_item_about_an_object", objectItem},
		{"is_asked_for_once", objectItemOnce},
		{"is_about_a_recorded_version", objectItemUnknown},
		{"a_hold_on_its_volume_or_collection_covers_it", objectItemHeld},
		{"can_be_stopped_sent_back_and_purged", objectItemActs},
		{"R01_keeps_others_from_the_object", objectLock},
		{"R01_waits_for_the_object_in_its_turn", objectLockTurn},
		{"R01_an_open_intent_keeps_the_object", objectLockIntent},
		{"an_unknown_object_cannot_be_locked", objectLockUnknown},
	}
}

// aFile is the file of the objects that object makes, in no text that databases like.
const aFile = "producer/\xff"

// storageOf is the volume of the versions that tests record.
const storageOf = registry.DefaultStorage

// object makes an object of one file, recorded.
func (f *fixture) object() (ark string) {
	f.Helper()
	c := f.processing(1)[0]
	ark = f.locks(c.Lease, f.unique("object")).ARK
	f.store(c.Lease, ark, 1, file(aFile))
	f.done(c.Lease)
	f.finish(c.Item.ID)
	return ark
}

// requested are the actions whose items are simply asked for: a deletion is approved.
func requested() []registry.Action {
	return slices.DeleteFunc(registry.ObjectActions(), func(a registry.Action) bool { return a == registry.DeleteObject })
}

// about makes an item about an object.
func (f *fixture) about(a registry.Action, ark string) registry.WorkItem {
	f.Helper()
	if a == registry.DeleteObject {
		return f.approved(ark)
	}
	it, err := f.RequestObject(f.Context(), request(a, ark))
	f.must(err)
	return it
}

// request asks for an item about an object, or about its file, as the action has it.
func request(a registry.Action, ark string) registry.ObjectRequest {
	r := registry.ObjectRequest{Action: a, Spec: registry.ObjectSpec{ObjectID: ark, Reason: "because"}, Actor: "admin"}
	if a == registry.FixityCheck {
		r.Spec.File = []byte("v1/content/" + aFile)
	}
	return r
}

func objectItem(f *fixture) {
	ark := f.object()
	for _, action := range requested() {
		r := request(action, ark)
		it, err := f.RequestObject(f.Context(), r)
		f.must(err)
		route, _ := registry.RouteOf(action)
		if it.Action != action || it.Stage != route.First() || it.State != registry.StatePending || it.CreatedBy != "admin" ||
			it.Collection != mnemonic || !slices.Equal(it.Storages, []string{storageOf}) {
			f.Errorf("made %+v", it)
		}
		var spec registry.ObjectSpec
		f.must(json.Unmarshal(it.Spec, &spec))
		r.Spec.Version = 1
		if diff := cmp.Diff(r.Spec, spec); diff != "" {
			f.Errorf("spec (-want +got):\n%s", diff)
		}
		events, err := f.Events(f.Context(), it.ID, 0, 10)
		f.must(err)
		if len(events) != 1 || events[0].Type != string(registry.ActSubmit) || events[0].Actor != "admin" || events[0].Collection != mnemonic {
			f.Fatalf("events %+v", events)
		}
		audit, err := f.Audit(f.Context(), registry.AuditQuery{Actor: "admin"})
		f.must(err)
		if !slices.ContainsFunc(audit.Rows, func(e registry.Event) bool { return e.Seq == events[0].Seq }) {
			f.Errorf("it is not among the audit's %+v", audit.Rows)
		}
		f.finish(it.ID)
	}
}

func objectItemOnce(f *fixture) {
	ark := f.object()
	for _, action := range requested() {
		r := request(action, ark)
		r.IdempotencyKey = "once " + string(action)
		first, err := f.RequestObject(f.Context(), r)
		f.must(err)
		again, err := f.RequestObject(f.Context(), r)
		f.must(err)
		if again.ID != first.ID {
			f.Errorf("the repeat made %s beside %s", again.ID, first.ID)
		}
		r.Spec.Reason = "another"
		_, err = f.RequestObject(f.Context(), r)
		f.is(err, registry.ErrIdempotencyConflict)
	}
}

func objectItemUnknown(f *fixture) {
	ark := f.object()
	for _, action := range requested() {
		for _, spec := range []registry.ObjectSpec{{ObjectID: "ark:/99999/no"}, {ObjectID: ark, Version: 2}, {ObjectID: ark, Version: -1}, {ObjectID: "\x00"}} {
			_, err := f.RequestObject(f.Context(), registry.ObjectRequest{Action: action, Spec: spec, Actor: "admin"})
			f.is(err, registry.ErrNotFound)
		}
	}
	for _, action := range []registry.Action{registry.Ingest, registry.Bulk, "no"} {
		_, err := f.RequestObject(f.Context(), registry.ObjectRequest{Action: action, Spec: registry.ObjectSpec{ObjectID: ark}, Actor: "admin"})
		f.is(err, registry.ErrInvalid)
	}
}

func objectItemHeld(f *fixture) {
	ark := f.object()
	for _, action := range registry.ObjectActions() {
		route, _ := registry.RouteOf(action)
		id := f.about(action, ark).ID
		holds := []registry.Hold{{Scope: registry.HoldAll}, {Scope: registry.HoldStage, Key: string(route.First())}, {Scope: registry.HoldItem, Key: id}}
		switch route.Steps[0].Writes {
		case registry.StorageVolume, registry.AllStorages:
			holds = append(holds, registry.Hold{Scope: registry.HoldVolume, Key: storageOf})
		case registry.StagingVolume:
			holds = append(holds, registry.Hold{Scope: registry.HoldVolume, Key: registry.DefaultStaging})
		case registry.NoVolume:
		}
		for _, h := range holds {
			f.hold(h.Scope, h.Key)
			f.state(id, registry.StateHeld)
			f.heldBy(id, h.Scope, h.Key)
			if got := f.refused(route.First(), id).Reason; got != registry.ReasonHeld {
				f.Errorf("claim: %s, want held", got)
			}
			f.release(h.Scope, h.Key)
		}
		f.finish(id)
	}
}

func objectItemActs(f *fixture) {
	ark := f.object()
	for _, action := range registry.ObjectActions() {
		id := f.about(action, ark).ID
		f.command(id, registry.ActCancel, "")
		f.command(id, registry.ActRequeue, "")
		f.fail(id, registry.SystemFault)
		f.command(id, registry.ActRequeue, "")
		f.finish(id)
		f.command(id, registry.ActPurge, "")
		f.purged(id)
	}
}

// lockObject must get an object at its first version.
func (f *fixture) lockObject(l registry.Lease, ark string) {
	f.Helper()
	head, err := f.LockObject(f.Context(), l, ark)
	f.must(err)
	if head != 1 {
		f.Errorf("head %d, want 1", head)
	}
}

// objectKept must be refused an object because of holder.
func (f *fixture) objectKept(l registry.Lease, ark, holder string) {
	f.Helper()
	_, err := f.LockObject(f.Context(), l, ark)
	var locked *registry.LockedError
	if !errors.As(err, &locked) {
		f.Fatalf("lock: %v, want that it is locked", err)
	}
	if locked.ItemID != holder {
		f.Errorf("locked by %s, want %s", locked.ItemID, holder)
	}
}

func objectLock(f *fixture) {
	ark := f.object()
	c := f.processing(3)
	f.lockObject(c[0].Lease, ark)
	f.lockObject(c[0].Lease, ark)
	f.objectKept(c[1].Lease, ark, c[0].Item.ID)
	_, err := f.Identify(f.Context(), c[2].Lease, registry.IdentifyRequest{Owner: owner, Supplied: ark})
	var locked *registry.LockedError
	if !errors.As(err, &locked) || locked.ItemID != c[0].Item.ID {
		f.Errorf("a deposit: %v, want that the object is locked", err)
	}
	// Over a lost attempt it is kept, and the next attempt goes on with it.
	f.settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeReleased})
	_, err = f.LockObject(f.Context(), c[0].Lease, ark)
	f.is(err, registry.ErrClaimLost)
	f.objectKept(c[1].Lease, ark, c[0].Item.ID)
	f.lockObject(f.takeItem(c[0].Item.ID).Lease, ark)
}

func objectLockTurn(f *fixture) {
	ark := f.object()
	c := f.processing(3)
	f.lockObject(c[0].Lease, ark)
	for _, waiter := range []registry.Claim{c[2], c[1]} {
		f.objectKept(waiter.Lease, ark, c[0].Item.ID)
		f.snooze(waiter.Lease)
	}
	f.refusedAt(registry.Process, registry.ReasonLocked, c[1:]...)
	f.done(c[0].Lease)
	f.finish(c[0].Item.ID)
	if got := f.offered(100); !has(got, c[1].Item.ID) || has(got, c[2].Item.ID) {
		f.Errorf("rung for %v, want for the one who was submitted first", got)
	}
	f.lockObject(f.take(registry.Process, c[1].Item.ID).Lease, ark)
	f.refusedAt(registry.Process, registry.ReasonLocked, c[2])
}

func objectLockIntent(f *fixture) {
	ark := f.object()
	c := f.processing(2)
	f.identify(c[0].Lease, registry.IdentifyRequest{Owner: owner, Supplied: ark})
	f.intend(c[0].Lease, ark, 2, `{}`)
	f.settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "storage is down"})
	f.objectKept(c[1].Lease, ark, c[0].Item.ID)
	f.clock.pass(time.Hour)
	f.objectKept(c[1].Lease, ark, c[0].Item.ID)
}

func objectLockUnknown(f *fixture) {
	c := f.processing(2)
	named := f.locks(c[0].Lease, "x").ARK
	f.settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"})
	for _, id := range []string{named, "ark:/99999/no", "", "\x00"} { // the first has a name and no version
		_, err := f.LockObject(f.Context(), c[1].Lease, id)
		f.is(err, registry.ErrNotFound)
	}
}
