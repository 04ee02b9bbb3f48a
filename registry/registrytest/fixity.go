package registrytest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func fixityTests() []test {
	return []test{
		{"what_is_due_is_queued_the_longest_unchecked_first", dueInOrder},
		{"a_bounded_number_is_under_way", dueBounded},
		{"a_file_is_queued_once_at_a_time", dueOnce},
		{"a_file_that_two_names_have_is_one", sameContent},
		{"what_is_not_recorded_yet_is_not_checked", notRecorded},
		{"a_check_shows_its_file", checkShows},
		{"all_files_checked_make_the_object_verified", objectVerified},
		{"damage_is_counted_and_waits_for_a_person", damageCounted},
		{"what_was_damaged_can_be_right_again", rightAgain},
		{"all_files_are_checked_when_somebody_asks", askedFor},
		{"completed_checks_are_purged", checksPurged},
		{"storages_are_searched_by_the_schedule", storagesSearched},
		{"only_the_live_attempt_records", checkFenced},
	}
}

// every is how old a check may get.
const every = 90 * day

// recheck looks for what is due.
func (f *fixture) recheck(most int) registry.Rechecked {
	f.Helper()
	done, err := f.Recheck(f.Context(), registry.RecheckRequest{Every: every, Outstanding: most, Keep: day})
	f.must(err)
	return done
}

// objectOf makes an object of these files and returns it.
func (f *fixture) objectOf(files ...registry.File) string {
	f.Helper()
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, f.unique("object")).ARK
	f.store(c.Lease, ark, 1, files...)
	f.done(c.Lease)
	f.finish(c.Item.ID)
	return ark
}

// storagesSearched: the Registry makes a search through the storages as often as stored files are read again, the first one that long after it began, and none
// while one is open or has failed.
func storagesSearched(f *fixture) {
	searches := func(want int) []registry.WorkItem {
		f.Helper()
		f.recheck(1)
		f.recheck(1)
		page, err := f.Items(f.Context(), registry.ItemQuery{Action: registry.Tidy, Text: "belong to no object"})
		f.must(err)
		if len(page.Rows) != want {
			f.Fatalf("there are %d searches, want %d", len(page.Rows), want)
		}
		return page.Rows
	}
	searches(0)
	f.clock.pass(every - day)
	searches(0)
	f.clock.pass(2 * day)
	it := searches(1)[0]
	var spec registry.TidySpec
	f.must(json.Unmarshal(it.Spec, &spec))
	if spec.Orphans == nil || !spec.Orphans.Strays || spec.Orphans.Remove || spec.Orphans.Check() != nil || it.Status != registry.Pending {
		f.Errorf("the search is %s: %+v", it.Status, spec.Orphans)
	}
	f.clock.pass(2 * every)
	searches(1)
	f.settle(registry.Settlement{Lease: f.take(registry.Cleanup, it.ID).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "found some"})
	searches(1)
	if q := f.queue(); q.Strays != it.ID {
		f.Errorf("the queue tells of %q, want %q", q.Strays, it.ID)
	}
	f.command(it.ID, registry.ActRequeue, "")
	f.settle(registry.Settlement{Lease: f.take(registry.Cleanup, it.ID).Lease, Outcome: registry.OutcomeDone})
	searches(2)
	if q := f.queue(); q.Strays != "" {
		f.Errorf("the queue still tells of %q", q.Strays)
	}
	if done, err := f.Recheck(f.Context(), registry.RecheckRequest{Outstanding: 1, Keep: day}); err != nil || done.Queued > 0 {
		f.Errorf("without a schedule: %+v, %v", done, err)
	}
}

// takeCheck takes the next check and says what it is about.
func (f *fixture) takeCheck() (registry.Lease, registry.ObjectSpec) {
	f.Helper()
	c := f.take(registry.Fixity, "")
	spec, ok := registry.ObjectSpecIn(c.Item.Spec)
	if !ok {
		f.Fatalf("spec %s", c.Item.Spec)
	}
	return c.Lease, spec
}

// found records what a check found in the storage of the tests' versions.
func (f *fixture) found(l registry.Lease, outcome registry.CheckOutcome) {
	f.Helper()
	f.must(f.RecordCheck(f.Context(), l, registry.CheckRecord{
		Replicas: []registry.ReplicaCheck{{Storage: storageOf, Outcome: outcome}},
	}))
}

func dueInOrder(f *fixture) {
	var want []string
	for range 3 {
		want = append(want, f.objectOf(file("producer/a")))
		f.clock.pass(day)
	}
	f.clock.pass(every - 4*day)
	if done := f.recheck(10); done.Queued != 0 {
		f.Fatalf("queued %+v before any is due", done)
	}
	f.clock.pass(10 * every) // however late: nothing is skipped
	if done := f.recheck(10); done.Queued != 3 {
		f.Fatalf("queued %+v, want all 3", done)
	}
	for i, ark := range want {
		l, spec := f.takeCheck()
		if spec.ObjectID != ark || string(spec.File) != "v1/content/producer/a" || spec.Version != 1 {
			f.Errorf("check %d is of %+v, want of %s", i, spec, ark)
		}
		f.found(l, registry.CheckGood)
		f.done(l)
	}
	if done := f.recheck(10); done.Queued != 0 {
		f.Errorf("queued %+v again", done)
	}
	f.clock.pass(every)
	if done := f.recheck(10); done.Queued != 3 {
		f.Errorf("queued %+v the next time, want 3", done)
	}
}

func dueBounded(f *fixture) {
	var files []registry.File
	for i := range 7 {
		files = append(files, file(fmt.Sprintf("producer/%d", i)))
	}
	f.objectOf(files...)
	f.clock.pass(every)
	seen := map[string]bool{}
	for len(seen) < 7 {
		f.recheck(3)
		if n := len(f.all(registry.ItemQuery{Action: registry.FixityCheck, Status: registry.Pending})); n > 3 {
			f.Fatalf("%d wait, want 3 at most", n)
		}
		l, spec := f.takeCheck()
		if seen[string(spec.File)] {
			f.Fatalf("%s is checked again while others wait", spec.File)
		}
		seen[string(spec.File)] = true
		f.found(l, registry.CheckGood)
		f.done(l)
	}
}

func dueOnce(f *fixture) {
	ark := f.object()
	f.clock.pass(every)
	f.recheck(10)
	if done := f.recheck(10); done.Queued != 0 {
		f.Errorf("queued %+v while one waits", done)
	}
	if it := f.about(registry.FixityCheck, ark); it.CreatedBy != "registry" {
		f.Errorf("asked for, it got another item: %+v", it)
	}
	f.take(registry.Fixity, "")
	if done := f.recheck(10); done.Queued != 0 {
		f.Errorf("queued %+v while it runs", done)
	}
	// Given up, it is due as before.
	id := f.about(registry.FixityCheck, ark).ID
	f.sure(id, registry.ActAbort)
	if done := f.recheck(10); done.Queued != 1 {
		f.Errorf("queued %+v after it was given up, want 1", done)
	}
}

func sameContent(f *fixture) {
	second := file("producer/b")
	second.ContentPath = file("producer/a").ContentPath
	gone := registry.File{Path: "producer/c", Deleted: true}
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	f.intend(c.Lease, ark, 1, `{}`)
	f.must(f.RecordFiles(f.Context(), c.Lease, ark, 1, []registry.File{file("producer/a"), second, gone}))
	f.must(f.RecordVersion(f.Context(), c.Lease, versionRecord(f, c.Lease, ark, 1, []registry.File{file("producer/a"), second})))
	f.clock.pass(every)
	if done := f.recheck(10); done.Queued != 1 {
		f.Errorf("queued %+v, want 1", done)
	}
}

func notRecorded(f *fixture) {
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	f.intend(c.Lease, ark, 1, `{}`)
	f.must(f.RecordFiles(f.Context(), c.Lease, ark, 1, []registry.File{file("producer/a")}))
	f.clock.pass(every)
	if done := f.recheck(10); done.Queued != 0 {
		f.Errorf("queued %+v", done)
	}
	f.must(f.RecordVersion(f.Context(), c.Lease, versionRecord(f, c.Lease, ark, 1, []registry.File{file("producer/a")})))
	if done := f.recheck(10); done.Queued != 1 {
		f.Errorf("queued %+v when it is recorded, want 1", done)
	}
}

func checkShows(f *fixture) {
	ark := f.object()
	at := f.clock.now()
	f.clock.pass(every)
	f.recheck(10)
	l, _ := f.takeCheck()
	got, err := f.StoredFile(f.Context(), l)
	f.must(err)
	want := registry.StoredFile{
		ObjectID: ark, File: []byte("v1/content/" + aFile), Version: 1, SizeBytes: 5, Digests: map[string]string{"sha512": "aa"}, Head: 1,
		Storages: []string{storageOf}, CheckedAt: at,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("file (-want +got):\n%s", diff)
	}
	_, err = f.StoredFile(f.Context(), f.takeItem(f.job(registry.Download)).Lease)
	f.is(err, registry.ErrInvalid)
}

func objectVerified(f *fixture) {
	ark := f.objectOf(file("producer/a"), file("producer/b"))
	stored := f.clock.now()
	f.clock.pass(every)
	f.recheck(10)
	var at [2]time.Time
	for i := range at {
		f.clock.pass(time.Minute)
		l, spec := f.takeCheck()
		at[i] = f.clock.now()
		f.must(f.RecordCheck(f.Context(), l, registry.CheckRecord{
			Replicas: []registry.ReplicaCheck{{Storage: storageOf, Outcome: registry.CheckGood}},
			Events: []registry.Premis{{
				ID: f.unique("check"), ObjectID: ark, Version: 1, ItemID: l.ItemID, Type: "fixity check", At: at[i], Agent: agent, Outcome: "success", Detail: string(spec.File),
			}},
		}))
		f.done(l)
		o, err := f.Object(f.Context(), ark)
		f.must(err)
		want, since := stored, stored
		if i == 1 {
			want, since = at[0], at[0]
		}
		if !o.Versions[0].Replicas[0].VerifiedAt.Equal(want) || !o.CheckedAt.Equal(since) || o.Damaged != 0 {
			f.Errorf("after %d of 2: verified %v, checked %v, damaged %d; want %v", i+1, o.Versions[0].Replicas[0].VerifiedAt, o.CheckedAt, o.Damaged, want)
		}
	}
	events, err := f.PremisEvents(f.Context(), ark, "", 10)
	f.must(err)
	if len(events.Rows) != 3 { // its ingestion, two checks
		f.Errorf("events %+v", events.Rows)
	}
}

func (f *fixture) damagedFiles(ark string, want int64) {
	f.Helper()
	q, err := f.QueueStatus(f.Context())
	f.must(err)
	o, err := f.Object(f.Context(), ark)
	f.must(err)
	if q.Damaged != want || o.Damaged != want {
		f.Errorf("%d damaged, %d of the object, want %d", q.Damaged, o.Damaged, want)
	}
}

func damageCounted(f *fixture) {
	ark := f.object()
	f.clock.pass(every)
	f.recheck(10)
	l, _ := f.takeCheck()
	f.found(l, registry.CheckDamaged)
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "it is damaged"})
	f.damagedFiles(ark, 1)
	if it := f.item(l.ItemID); !it.NeedsAdminReview || it.ErrorClass != registry.SystemFault {
		f.Errorf("item %+v", it)
	}
	if got := f.events(l.ItemID); !has(got, registry.EventFileDamaged) {
		f.Errorf("events %v", got)
	}
	f.clock.pass(every)
	if done := f.recheck(10); done.Queued != 0 || done.Damaged != 1 || done.Purged != 0 {
		f.Errorf("done %+v, want nothing and 1 damaged", done)
	}
	f.command(l.ItemID, registry.ActDelete, "")
	if done := f.recheck(10); done.Queued != 1 || done.Damaged != 1 {
		f.Errorf("done %+v after its check was given up, want a new one", done)
	}
}

func rightAgain(f *fixture) {
	ark := f.object()
	f.clock.pass(every)
	f.recheck(10)
	l, _ := f.takeCheck()
	f.found(l, registry.CheckMissing)
	f.damagedFiles(ark, 1)
	f.found(l, registry.CheckRepaired)
	f.done(l)
	f.damagedFiles(ark, 0)
	if got := f.events(l.ItemID); !has(got, registry.EventFileDamaged) || !has(got, registry.EventFileRight) {
		f.Errorf("events %v", got)
	}
}

func askedFor(f *fixture) {
	ark := f.objectOf(file("producer/a"), file("producer/b"), file("producer/c"))
	f.objectOf(file("producer/other"))
	f.clock.pass(day)
	f.must(f.AskForCheck(f.Context(), ark, "because", "admin"))
	f.is(f.AskForCheck(f.Context(), "ark:/99999/no", "", "admin"), registry.ErrNotFound)
	o, err := f.Object(f.Context(), ark)
	f.must(err)
	if o.CheckAsked == nil || !o.CheckAsked.Equal(f.clock.now()) {
		f.Errorf("asked for at %v", o.CheckAsked)
	}
	for range 3 {
		f.recheck(1)
		l, spec := f.takeCheck()
		if spec.ObjectID != ark {
			f.Errorf("checked %s", spec.ObjectID)
		}
		f.found(l, registry.CheckGood)
		f.done(l)
	}
	if done := f.recheck(10); done.Queued != 0 {
		f.Errorf("queued %+v more", done)
	}
	if o, err = f.Object(f.Context(), ark); err != nil || o.CheckAsked != nil {
		f.Errorf("asked for at %v when all are checked (%v)", o.CheckAsked, err)
	}
	audit, err := f.Audit(f.Context(), registry.AuditQuery{Actor: "admin", Types: []string{registry.EventCheckAskedFor}})
	f.must(err)
	var data struct {
		Reason string `json:"reason"`
	}
	if len(audit.Rows) != 1 || json.Unmarshal(audit.Rows[0].Data, &data) != nil || data.Reason != "because" || audit.Rows[0].Collection != mnemonic {
		f.Errorf("audit %+v", audit.Rows)
	}
}

func checksPurged(f *fixture) {
	f.object()
	f.clock.pass(every)
	f.recheck(10)
	l, _ := f.takeCheck()
	f.found(l, registry.CheckGood)
	f.done(l)
	if done := f.recheck(10); done.Purged != 0 {
		f.Errorf("done %+v at once", done)
	}
	f.clock.pass(2 * day)
	if done := f.recheck(10); done.Purged != 1 {
		f.Errorf("done %+v after two days, want it purged", done)
	}
	f.purged(l.ItemID)
}

func checkFenced(f *fixture) {
	f.object()
	f.clock.pass(every)
	f.recheck(10)
	l, _ := f.takeCheck()
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	_, err := f.StoredFile(f.Context(), l)
	f.is(err, registry.ErrClaimLost)
	f.is(f.RecordCheck(f.Context(), l, registry.CheckRecord{}), registry.ErrClaimLost)
}
