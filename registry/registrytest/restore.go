package registrytest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/registry"
)

func restoreTests() []test {
	return []test{
		{"is_shown_as_its_item_stands", restoreShown},
		{"is_one_while_it_is_under_way_or_lies_ready", restoreOnce},
		{"restores_of_an_object_are_numbered_and_listed", restoreListed},
		{"what_was_restored_is_recorded_once", restoreRecordedOnce},
		{"only_the_live_attempt_records_it", restoreFenced},
		{"what_no_file_can_be_is_not_recorded", restoreInvalid},
		{"of_a_deleted_object_there_is_none", restoreDeleted},
		{"its_record_outlives_item_and_file", restoreOutlives},
		{"who_waits_for_room_is_woken", restoreWoken},
		{"what_it_staged_goes_when_it_is_given_up", restoreTidied},
		{"a_thaw_is_what_it_waits_for", restoreThawing},
	}
}

// week is how long what is restored is kept in these tests.
const week = 7 * day

// restore asks for the newest version.
func (f *fixture) restore(ark string) registry.Restoration {
	f.Helper()
	it, err := f.RequestObject(f.Context(), registry.ObjectRequest{
		Action: registry.RestoreObject, Spec: registry.ObjectSpec{ObjectID: ark, Reason: "a fire"}, Actor: "depositor",
	})
	f.must(err)
	return f.restoration(it.ID)
}

func (f *fixture) restoration(item string) registry.Restoration {
	f.Helper()
	r, err := f.RestorationOf(f.Context(), item)
	f.must(err)
	return r
}

// brought is what an attempt records.
func brought(l registry.Lease, ark string) registry.RestorationRecord {
	return registry.RestorationRecord{
		RestoredParcel: registry.RestoredParcel{
			Name: "object-v1.tar", Place: registry.RestoredKey(l, "object-v1.tar"), SizeBytes: 12_345, SHA256: strings.Repeat("0f", 32), Files: 7,
		},
		Keep:   week,
		Events: []registry.Premis{{ID: "restored by " + l.ItemID, ObjectID: ark, Version: 1, ItemID: l.ItemID, Type: "dissemination", Agent: agent, Outcome: "success"}},
	}
}

// bring records it.
func (f *fixture) brings(l registry.Lease, ark string) registry.Restoration {
	f.Helper()
	r, err := f.RecordRestoration(f.Context(), l, brought(l, ark))
	f.must(err)
	return r
}

func restoreShown(f *fixture) {
	ark := f.object()
	r := f.restore(ark)
	asked := f.clock.now()
	want := registry.Restoration{
		ObjectID: ark, N: 1, Version: 1, Status: registry.RestoreWaiting, Reason: "a fire", AskedBy: "depositor", AskedAt: asked, ItemID: r.ItemID,
	}
	same := func(got registry.Restoration) {
		f.Helper()
		if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); diff != "" {
			f.Errorf("(-want +got):\n%s", diff)
		}
	}
	same(r)
	l := f.take(registry.Restore, r.ItemID).Lease
	want.Status = registry.RestoreRunning
	same(f.restoration(r.ItemID))
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no storage"})
	want.Status, want.Note = registry.RestoreFailed, "no storage"
	same(f.restoration(r.ItemID))
	f.command(r.ItemID, registry.ActRequeue, "")
	want.Status, want.Note = registry.RestoreWaiting, f.item(r.ItemID).Note
	same(f.restoration(r.ItemID))
	f.clock.pass(time.Hour)
	l = f.take(registry.Restore, r.ItemID).Lease
	ready, expires := f.clock.now(), f.clock.now().Add(week)
	want.Status, want.Note, want.RestoredParcel, want.ReadyAt, want.ExpiresAt = registry.RestoreReady, "", brought(l, ark).RestoredParcel, &ready, &expires
	same(f.brings(l, ark))
	same(f.restoration(r.ItemID))
	f.done(l)
	f.clock.pass(week - time.Second)
	same(f.restoration(r.ItemID))
	f.clock.pass(time.Second)
	want.Status = registry.RestoreRemoved
	same(f.restoration(r.ItemID))
	if list, err := f.Restorations(f.Context(), ark, 0, 10); err != nil || len(list) != 1 {
		f.Errorf("listed %v, %v", list, err)
	} else {
		same(list[0])
	}
	events, err := f.Events(f.Context(), r.ItemID, 0, 100)
	f.must(err)
	at := slices.IndexFunc(events, func(e registry.Event) bool { return e.Type == registry.EventRestored })
	if at < 0 || !strings.Contains(string(events[at].Data), want.Place) || !strings.Contains(string(events[at].Data), want.SHA256) || events[at].Collection != mnemonic {
		f.Errorf("events %+v", events)
	}
	if got := f.disseminations(ark); got != 1 {
		f.Errorf("the object's events tell it %d times", got)
	}
}

func restoreOnce(f *fixture) {
	ark := f.object()
	first := f.restore(ark)
	same := func(when string) {
		f.Helper()
		if again := f.restore(ark); again.ItemID != first.ItemID {
			f.Errorf("%s another one is made: %+v", when, again)
		}
	}
	same("while it waits")
	if other := f.restore(f.object()); other.ItemID == first.ItemID || other.N != 1 {
		f.Errorf("another object's is %+v", other)
	}
	l := f.take(registry.Restore, first.ItemID).Lease
	same("while it runs")
	f.brings(l, ark)
	same("when it is ready")
	f.done(l)
	same("while it can be fetched")
	f.clock.pass(week)
	second := f.restore(ark)
	if second.ItemID == first.ItemID || second.N != 2 {
		f.Errorf("when its time is over: %+v", second)
	}
	f.fail(second.ItemID, registry.SystemFault)
	if third := f.restore(ark); third.N != 3 {
		f.Errorf("after it failed: %+v", third)
	}
}

func restoreListed(f *fixture) {
	ark := f.object()
	var items []string
	for range 5 {
		r := f.restore(ark)
		items = append(items, r.ItemID)
		f.command(r.ItemID, registry.ActCancel, "")
	}
	var got []string
	for before := 0; ; {
		page, err := f.Restorations(f.Context(), ark, before, 2)
		f.must(err)
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			got = append(got, r.ItemID)
			if r.Status != registry.RestoreGivenUp || r.N != 5-len(got)+1 {
				f.Errorf("restore %+v at %d", r, len(got))
			}
			before = r.N
		}
	}
	slices.Reverse(got)
	if diff := cmp.Diff(items, got); diff != "" {
		f.Errorf("(-want +got):\n%s", diff)
	}
	if list, err := f.Restorations(f.Context(), f.object(), 0, 10); err != nil || len(list) != 0 {
		f.Errorf("of an object that nobody asked for: %v, %v", list, err)
	}
	for _, id := range []string{"ark:/99999/none", "", "\x00"} {
		_, err := f.Restorations(f.Context(), id, 0, 10)
		f.is(err, registry.ErrNotFound)
		_, err = f.RestorationOf(f.Context(), id)
		f.is(err, registry.ErrNotFound)
	}
}

func restoreRecordedOnce(f *fixture) {
	ark := f.object()
	r := f.restore(ark)
	l := f.take(registry.Restore, r.ItemID).Lease
	first := f.brings(l, ark)
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	f.clock.pass(time.Hour)
	l = f.takeItem(r.ItemID).Lease
	other := brought(l, ark)
	other.SHA256 = strings.Repeat("ab", 32) // its place is another, too
	again, err := f.RecordRestoration(f.Context(), l, other)
	f.must(err)
	if diff := cmp.Diff(first, again); diff != "" {
		f.Errorf("the repeat changed it (-first +again):\n%s", diff)
	}
	if told := f.disseminations(ark); told != 1 {
		f.Errorf("told %d times", told)
	}
}

// disseminations counts the preservation events of an object that tell of a restore.
func (f *fixture) disseminations(ark string) (n int) {
	f.Helper()
	page, err := f.PremisEvents(f.Context(), ark, "", 100)
	f.must(err)
	for _, e := range page.Rows {
		if e.Type == "dissemination" {
			n++
		}
	}
	return n
}

func restoreFenced(f *fixture) {
	ark := f.object()
	r := f.restore(ark)
	l := f.take(registry.Restore, r.ItemID).Lease
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	_, err := f.RecordRestoration(f.Context(), l, brought(l, ark))
	f.is(err, registry.ErrClaimLost)
	if got := f.restoration(r.ItemID); got.ReadyAt != nil {
		f.Errorf("recorded all the same: %+v", got)
	}
	job := f.processing(1)[0].Lease
	_, err = f.RecordRestoration(f.Context(), job, brought(job, ark))
	f.is(err, registry.ErrNotFound)
}

func restoreInvalid(f *fixture) {
	ark := f.object()
	_, err := f.RequestObject(f.Context(), registry.ObjectRequest{
		Action: registry.RestoreObject, Spec: registry.ObjectSpec{ObjectID: ark, File: []byte("v1/content/" + aFile)}, Actor: "admin",
	})
	f.is(err, registry.ErrInvalid)
	r := f.restore(ark)
	l := f.take(registry.Restore, r.ItemID).Lease
	for _, change := range []func(*registry.RestorationRecord){
		func(r *registry.RestorationRecord) { r.Place = "" },
		func(r *registry.RestorationRecord) { r.Name = "" },
		func(r *registry.RestorationRecord) { r.SizeBytes = 0 },
		func(r *registry.RestorationRecord) { r.SHA256 = "abc" },
		func(r *registry.RestorationRecord) { r.Keep = 0 },
	} {
		rec := brought(l, ark)
		change(&rec)
		_, err := f.RecordRestoration(f.Context(), l, rec)
		f.is(err, registry.ErrInvalid)
	}
	if got := f.restoration(r.ItemID); got.ReadyAt != nil {
		f.Errorf("recorded all the same: %+v", got)
	}
}

func restoreDeleted(f *fixture) {
	ark := f.object()
	before := f.restore(ark)
	l := f.take(registry.Restore, before.ItemID).Lease
	f.brings(l, ark)
	f.done(l)
	f.clock.pass(week)
	during := f.restore(ark)
	running := f.take(registry.Restore, during.ItemID).Lease
	f.clock.pass(-time.Hour) // the first one can be fetched again
	deletion := f.take(registry.Delete, f.approved(ark).ID).Lease
	f.lockObject(deletion, ark)
	_, err := f.MarkDeleting(f.Context(), deletion, ark, registry.Remains{Version: 1})
	f.must(err)
	if got := f.restoration(before.ItemID); got.Status != registry.RestoreRemoved {
		f.Errorf("what lay ready is %+v", got)
	}
	var gone *registry.GoneError
	if _, err := f.RecordRestoration(f.Context(), running, brought(running, ark)); !errors.As(err, &gone) {
		f.Errorf("recorded: %v", err)
	}
	_, err = f.RequestObject(f.Context(), registry.ObjectRequest{Action: registry.RestoreObject, Spec: registry.ObjectSpec{ObjectID: ark}, Actor: "depositor"})
	if !errors.As(err, &gone) || gone.ObjectID != ark {
		f.Errorf("asked for: %v", err)
	}
}

func restoreOutlives(f *fixture) {
	ark := f.object()
	r := f.restore(ark)
	l := f.take(registry.Restore, r.ItemID).Lease
	want := f.brings(l, ark)
	f.done(l)
	f.command(r.ItemID, registry.ActPurge, "")
	f.purged(r.ItemID)
	if diff := cmp.Diff(want, f.restoration(r.ItemID)); diff != "" {
		f.Errorf("(-want +got):\n%s", diff)
	}
	next := f.restore(ark) // its item cannot be shown any more
	if next.N != 2 {
		f.Errorf("the next is %+v", next)
	}
	f.command(next.ItemID, registry.ActCancel, "")
	f.confirmed(next.ItemID, registry.ActDelete)
	f.command(next.ItemID, registry.ActPurge, "")
	if got := f.restoration(next.ItemID); got.Status != registry.RestoreGivenUp {
		f.Errorf("a purged one is %+v", got)
	}
}

func restoreWoken(f *fixture) {
	ark := f.object()
	r := f.restore(ark)
	l := f.take(registry.Restore, r.ItemID).Lease
	job := f.provisioning(1)[0]
	f.must(f.Reserve(f.Context(), job.Lease, room(800, 0)))
	f.full(l, room(1, 0))
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: "no room", Delay: time.Hour})
	f.done(job.Lease)
	f.finish(job.Item.ID)
	if got := f.offered(5); !has(got, r.ItemID) {
		f.Errorf("due %v: who waits for room is not rung for", got)
	}
	l = f.take(registry.Restore, r.ItemID).Lease
	f.must(f.Reserve(f.Context(), l, room(800, 0)))
	f.brings(l, ark)
	f.done(l)
	other := f.provisioning(1)[0]
	f.must(f.Reserve(f.Context(), other.Lease, room(800, 0))) // its room came back with its end
}

func restoreTidied(f *fixture) {
	ark := f.object()
	r := f.restore(ark)
	l := f.take(registry.Restore, r.ItemID).Lease
	f.must(f.Reserve(f.Context(), l, room(800, 0)))
	f.sure(r.ItemID, registry.ActAbort)
	if tidy := f.tidyOf(r.ItemID); tidy.ID == "" {
		f.Error("nobody sees to its staging")
	}
	if got := f.restoration(r.ItemID); got.Status != registry.RestoreGivenUp {
		f.Errorf("restore %+v", got)
	}
}

func restoreThawing(f *fixture) {
	r := f.restore(f.object())
	l := f.take(registry.Restore, r.ItemID).Lease
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonThawing, Error: "waits for 3 files", Delay: time.Hour})
	why, err := f.Why(f.Context(), r.ItemID)
	f.must(err)
	if why.Reason != registry.ReasonThawing || !strings.Contains(why.Sentence, "waits for 3 files") || !strings.Contains(why.Act, "nothing") {
		f.Errorf("why %+v", why)
	}
	if it := f.item(r.ItemID); it.Tries != 0 || it.Status != registry.Pending {
		f.Errorf("item %+v", it)
	}
	if got := f.restoration(r.ItemID); got.Status != registry.RestoreWaiting || got.Note != "waits for 3 files" {
		f.Errorf("restore %+v", got)
	}
	f.clock.pass(time.Hour)
	f.take(registry.Restore, r.ItemID)
}
