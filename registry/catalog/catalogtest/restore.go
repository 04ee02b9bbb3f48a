package catalogtest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func restoreTests() tests {
	return tests{
		"is_shown_as_its_item_stands":                   restoreShown,
		"is_one_while_it_is_under_way_or_lies_ready":    restoreOnce,
		"restores_of_an_object_are_numbered_and_listed": restoreListed,
		"what_was_restored_is_recorded_once":            restoreRecordedOnce,
		"only_the_live_attempt_records_it":              restoreFenced,
		"what_no_file_can_be_is_not_recorded":           restoreInvalid,
		"of_a_deleted_object_there_is_none":             restoreDeleted,
		"its_record_outlives_item_and_file":             restoreOutlives,
		"who_waits_for_room_is_woken":                   restoreWoken,
		"what_it_staged_goes_when_it_is_given_up":       restoreTidied,
		"a_thaw_is_what_it_waits_for":                   restoreThawing,
	}
}

func restoreShown(f *fixture) {
	ark := f.Object()
	r := f.Restore(ark)
	asked := f.Clock.Now()
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
	l := f.Take(registry.Restore, r.ItemID).Lease
	want.Status = registry.RestoreRunning
	same(f.Restoration(r.ItemID))
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no storage"})
	want.Status, want.Note = registry.RestoreFailed, "no storage"
	same(f.Restoration(r.ItemID))
	f.Command(r.ItemID, registry.ActRequeue, "")
	want.Status, want.Note = registry.RestoreWaiting, f.Item(r.ItemID).Note
	same(f.Restoration(r.ItemID))
	f.Clock.Pass(time.Hour)
	l = f.Take(registry.Restore, r.ItemID).Lease
	ready, expires := f.Clock.Now(), f.Clock.Now().Add(registrytest.KeepRestored)
	want.Status, want.Note, want.RestoredParcel, want.ReadyAt, want.ExpiresAt = registry.RestoreReady, "", registrytest.RestorationRecord(l, ark).RestoredParcel, &ready, &expires
	same(f.RecordRestoration(l, ark))
	same(f.Restoration(r.ItemID))
	f.Done(l)
	f.Clock.Pass(registrytest.KeepRestored - time.Second)
	same(f.Restoration(r.ItemID))
	f.Clock.Pass(time.Second)
	want.Status = registry.RestoreRemoved
	same(f.Restoration(r.ItemID))
	if list, err := f.Store.Restorations(f.Context(), ark, 0, 10); err != nil || len(list) != 1 {
		f.Errorf("listed %v, %v", list, err)
	} else {
		same(list[0])
	}
	events, err := f.Store.Events(f.Context(), r.ItemID, 0, 100)
	f.Must(err)
	at := slices.IndexFunc(events, func(e registry.Event) bool { return e.Type == registry.EventRestored })
	if at < 0 || !strings.Contains(string(events[at].Data), want.Place) || !strings.Contains(string(events[at].Data), want.SHA256) || events[at].Collection != registrytest.Mnemonic {
		f.Errorf("events %+v", events)
	}
	if got := f.disseminations(ark); got != 1 {
		f.Errorf("the object's events tell it %d times", got)
	}
}

func restoreOnce(f *fixture) {
	ark := f.Object()
	first := f.Restore(ark)
	same := func(when string) {
		f.Helper()
		if again := f.Restore(ark); again.ItemID != first.ItemID {
			f.Errorf("%s another one is made: %+v", when, again)
		}
	}
	same("while it waits")
	if other := f.Restore(f.Object()); other.ItemID == first.ItemID || other.N != 1 {
		f.Errorf("another object's is %+v", other)
	}
	l := f.Take(registry.Restore, first.ItemID).Lease
	same("while it runs")
	f.RecordRestoration(l, ark)
	same("when it is ready")
	f.Done(l)
	same("while it can be fetched")
	f.Clock.Pass(registrytest.KeepRestored)
	second := f.Restore(ark)
	if second.ItemID == first.ItemID || second.N != 2 {
		f.Errorf("when its time is over: %+v", second)
	}
	f.FailItem(second.ItemID, registry.SystemFault)
	if third := f.Restore(ark); third.N != 3 {
		f.Errorf("after it failed: %+v", third)
	}
}

func restoreListed(f *fixture) {
	ark := f.Object()
	var items []string
	for range 5 {
		r := f.Restore(ark)
		items = append(items, r.ItemID)
		f.Command(r.ItemID, registry.ActCancel, "")
	}
	var got []string
	for before := 0; ; {
		page, err := f.Store.Restorations(f.Context(), ark, before, 2)
		f.Must(err)
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
	if list, err := f.Store.Restorations(f.Context(), f.Object(), 0, 10); err != nil || len(list) != 0 {
		f.Errorf("of an object that nobody asked for: %v, %v", list, err)
	}
	for _, id := range []string{"ark:/99999/none", "", "\x00"} {
		_, err := f.Store.Restorations(f.Context(), id, 0, 10)
		f.Is(err, registry.ErrNotFound)
		_, err = f.Store.RestorationOf(f.Context(), id)
		f.Is(err, registry.ErrNotFound)
	}
}

func restoreRecordedOnce(f *fixture) {
	ark := f.Object()
	r := f.Restore(ark)
	l := f.Take(registry.Restore, r.ItemID).Lease
	first := f.RecordRestoration(l, ark)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	f.Clock.Pass(time.Hour)
	l = f.TakeItem(r.ItemID).Lease
	other := registrytest.RestorationRecord(l, ark)
	other.SHA256 = strings.Repeat("ab", 32) // its place is another, too
	again, err := f.Store.RecordRestoration(f.Context(), l, other)
	f.Must(err)
	if diff := cmp.Diff(first, again); diff != "" {
		f.Errorf("the repeat changed it (-first +again):\n%s", diff)
	}
	if told := f.disseminations(ark); told != 1 {
		f.Errorf("told %d times", told)
	}
}

// disseminations counts an object's PREMIS events about restores.
func (f *fixture) disseminations(ark string) (n int) {
	f.Helper()
	page, err := f.Store.PremisEvents(f.Context(), ark, "", 100)
	f.Must(err)
	for _, e := range page.Rows {
		if e.Type == "dissemination" {
			n++
		}
	}
	return n
}

func restoreFenced(f *fixture) {
	ark := f.Object()
	r := f.Restore(ark)
	l := f.Take(registry.Restore, r.ItemID).Lease
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	_, err := f.Store.RecordRestoration(f.Context(), l, registrytest.RestorationRecord(l, ark))
	f.Is(err, registry.ErrClaimLost)
	if got := f.Restoration(r.ItemID); got.ReadyAt != nil {
		f.Errorf("recorded all the same: %+v", got)
	}
	job := f.Processing(1)[0].Lease
	_, err = f.Store.RecordRestoration(f.Context(), job, registrytest.RestorationRecord(job, ark))
	f.Is(err, registry.ErrNotFound)
}

func restoreInvalid(f *fixture) {
	ark := f.Object()
	_, err := f.Store.RequestObject(f.Context(), registry.ObjectRequest{
		Action: registry.RestoreObject, Spec: registry.ObjectSpec{ObjectID: ark, File: []byte("v1/content/" + registrytest.FilePath)}, Actor: "admin",
	})
	f.Is(err, registry.ErrInvalid)
	r := f.Restore(ark)
	l := f.Take(registry.Restore, r.ItemID).Lease
	for _, change := range []func(*registry.RestorationRecord){
		func(r *registry.RestorationRecord) { r.Place = "" },
		func(r *registry.RestorationRecord) { r.Name = "" },
		func(r *registry.RestorationRecord) { r.SizeBytes = 0 },
		func(r *registry.RestorationRecord) { r.SHA256 = "abc" },
		func(r *registry.RestorationRecord) { r.Keep = 0 },
	} {
		rec := registrytest.RestorationRecord(l, ark)
		change(&rec)
		_, err := f.Store.RecordRestoration(f.Context(), l, rec)
		f.Is(err, registry.ErrInvalid)
	}
	if got := f.Restoration(r.ItemID); got.ReadyAt != nil {
		f.Errorf("recorded all the same: %+v", got)
	}
}

func restoreDeleted(f *fixture) {
	ark := f.Object()
	before := f.Restore(ark)
	l := f.Take(registry.Restore, before.ItemID).Lease
	f.RecordRestoration(l, ark)
	f.Done(l)
	f.Clock.Pass(registrytest.KeepRestored)
	during := f.Restore(ark)
	running := f.Take(registry.Restore, during.ItemID).Lease
	f.Clock.Pass(-time.Hour) // the first one can be fetched again
	deletion := f.Take(registry.Delete, f.ApprovedDeletion(ark).ID).Lease
	f.LockObject(deletion, ark)
	_, err := f.Store.MarkDeleting(f.Context(), deletion, ark, registry.Remains{Version: 1})
	f.Must(err)
	if got := f.Restoration(before.ItemID); got.Status != registry.RestoreRemoved {
		f.Errorf("what lay ready is %+v", got)
	}
	var gone *registry.GoneError
	if _, err := f.Store.RecordRestoration(f.Context(), running, registrytest.RestorationRecord(running, ark)); !errors.As(err, &gone) {
		f.Errorf("recorded: %v", err)
	}
	_, err = f.Store.RequestObject(f.Context(), registry.ObjectRequest{Action: registry.RestoreObject, Spec: registry.ObjectSpec{ObjectID: ark}, Actor: "depositor"})
	if !errors.As(err, &gone) || gone.ObjectID != ark {
		f.Errorf("asked for: %v", err)
	}
}

func restoreOutlives(f *fixture) {
	ark := f.Object()
	r := f.Restore(ark)
	l := f.Take(registry.Restore, r.ItemID).Lease
	want := f.RecordRestoration(l, ark)
	f.Done(l)
	f.Command(r.ItemID, registry.ActPurge, "")
	f.Purged(r.ItemID)
	if diff := cmp.Diff(want, f.Restoration(r.ItemID)); diff != "" {
		f.Errorf("(-want +got):\n%s", diff)
	}
	next := f.Restore(ark) // its item cannot be shown any more
	if next.N != 2 {
		f.Errorf("the next is %+v", next)
	}
	f.Command(next.ItemID, registry.ActCancel, "")
	f.ConfirmAndApply(next.ItemID, registry.ActDelete)
	f.Command(next.ItemID, registry.ActPurge, "")
	if got := f.Restoration(next.ItemID); got.Status != registry.RestoreGivenUp {
		f.Errorf("a purged one is %+v", got)
	}
}

func restoreWoken(f *fixture) {
	ark := f.Object()
	r := f.Restore(ark)
	l := f.Take(registry.Restore, r.ItemID).Lease
	job := f.Provisioning(1)[0]
	f.Must(f.Store.Reserve(f.Context(), job.Lease, registrytest.Room(800, 0)))
	f.NoRoom(l, registrytest.Room(1, 0))
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: "no room", Delay: time.Hour})
	f.Done(job.Lease)
	f.Finish(job.Item.ID)
	if got := f.Offered(5); !slices.Contains(got, r.ItemID) {
		f.Errorf("due %v: who waits for room is not rung for", got)
	}
	l = f.Take(registry.Restore, r.ItemID).Lease
	f.Must(f.Store.Reserve(f.Context(), l, registrytest.Room(800, 0)))
	f.RecordRestoration(l, ark)
	f.Done(l)
	other := f.Provisioning(1)[0]
	f.Must(f.Store.Reserve(f.Context(), other.Lease, registrytest.Room(800, 0))) // its room came back with its end
}

func restoreTidied(f *fixture) {
	ark := f.Object()
	r := f.Restore(ark)
	l := f.Take(registry.Restore, r.ItemID).Lease
	f.Must(f.Store.Reserve(f.Context(), l, registrytest.Room(800, 0)))
	f.Confirm(r.ItemID, registry.ActAbort)
	if tidy := f.TidyOf(r.ItemID); tidy.ID == "" {
		f.Error("nobody sees to its staging")
	}
	if got := f.Restoration(r.ItemID); got.Status != registry.RestoreGivenUp {
		f.Errorf("restore %+v", got)
	}
}

func restoreThawing(f *fixture) {
	r := f.Restore(f.Object())
	l := f.Take(registry.Restore, r.ItemID).Lease
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonThawing, Error: "waits for 3 files", Delay: time.Hour})
	why, err := f.Store.Why(f.Context(), r.ItemID)
	f.Must(err)
	if why.Reason != registry.ReasonThawing || !strings.Contains(why.Sentence, "waits for 3 files") || !strings.Contains(why.Act, "nothing") {
		f.Errorf("why %+v", why)
	}
	if it := f.Item(r.ItemID); it.Tries != 0 || it.Status != registry.Pending {
		f.Errorf("item %+v", it)
	}
	if got := f.Restoration(r.ItemID); got.Status != registry.RestoreWaiting || got.Note != "waits for 3 files" {
		f.Errorf("restore %+v", got)
	}
	f.Clock.Pass(time.Hour)
	f.Take(registry.Restore, r.ItemID)
}
