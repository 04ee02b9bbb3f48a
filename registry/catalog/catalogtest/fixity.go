package catalogtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func fixityTests() tests {
	return tests{
		"what_is_due_is_queued_the_longest_unchecked_first": dueInOrder,
		"a_bounded_number_is_under_way":                     dueBounded,
		"a_file_is_queued_once_at_a_time":                   dueOnce,
		"a_file_that_two_names_have_is_one":                 sameContent,
		"what_is_not_recorded_yet_is_not_checked":           notRecorded,
		"a_check_shows_its_file":                            checkShows,
		"all_files_checked_make_the_object_verified":        objectVerified,
		"damage_is_counted_and_waits_for_a_person":          damageCounted,
		"damage_of_many_files_is_counted_by_storage":        damageOfMany,
		"what_was_damaged_can_be_right_again":               rightAgain,
		"all_files_are_checked_when_somebody_asks":          askedFor,
		"completed_checks_are_purged":                       checksPurged,
		"storages_are_searched_by_the_schedule":             storagesSearched,
		"only_the_live_attempt_records":                     checkFenced,
	}
}

// objectOf records an object with these files.
func (f *fixture) objectOf(files ...registry.File) string {
	f.Helper()
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, f.Unique("object")).ARK
	f.Preserve(c.Lease, ark, 1, files...)
	f.Done(c.Lease)
	f.Finish(c.Item.ID)
	return ark
}

// storagesSearched: the Registry queues a search for orphaned data as often as files are checked.
// The first one comes one interval after the Registry's first start. It queues none while one is
// open or failed.
func storagesSearched(f *fixture) {
	searches := func(want int) []registry.WorkItem {
		f.Helper()
		f.Recheck(1)
		f.Recheck(1)
		page, err := f.Store.Items(f.Context(), registry.ItemQuery{Action: registry.Tidy, Text: "belong to no object"})
		f.Must(err)
		if len(page.Rows) != want {
			f.Fatalf("there are %d searches, want %d", len(page.Rows), want)
		}
		return page.Rows
	}
	searches(0)
	f.Clock.Pass(registrytest.CheckEvery - registrytest.Day)
	searches(0)
	f.Clock.Pass(2 * registrytest.Day)
	it := searches(1)[0]
	var spec registry.TidySpec
	f.Must(json.Unmarshal(it.Spec, &spec))
	if spec.Orphans == nil || !spec.Orphans.Strays || spec.Orphans.Remove || spec.Orphans.Check() != nil || it.Status != registry.Pending {
		f.Errorf("the search is %s: %+v", it.Status, spec.Orphans)
	}
	f.Clock.Pass(2 * registrytest.CheckEvery)
	searches(1)
	f.Settle(registry.Settlement{Lease: f.Take(registry.Cleanup, it.ID).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "found some"})
	searches(1)
	if q := f.Queue(); q.Strays != it.ID {
		f.Errorf("the queue tells of %q, want %q", q.Strays, it.ID)
	}
	f.Command(it.ID, registry.ActRequeue, "")
	f.Settle(registry.Settlement{Lease: f.Take(registry.Cleanup, it.ID).Lease, Outcome: registry.OutcomeDone})
	searches(2)
	if q := f.Queue(); q.Strays != "" {
		f.Errorf("the queue still tells of %q", q.Strays)
	}
	if done, err := f.Store.Recheck(f.Context(), registry.RecheckRequest{Outstanding: 1, Keep: registrytest.Day}); err != nil || done.Queued > 0 {
		f.Errorf("without a schedule: %+v, %v", done, err)
	}
}

func dueInOrder(f *fixture) {
	var want []string
	for range 3 {
		want = append(want, f.objectOf(registrytest.File("producer/a")))
		f.Clock.Pass(registrytest.Day)
	}
	f.Clock.Pass(registrytest.CheckEvery - 4*registrytest.Day)
	if done := f.Recheck(10); done.Queued != 0 {
		f.Fatalf("queued %+v before any is due", done)
	}
	f.Clock.Pass(10 * registrytest.CheckEvery) // however late: nothing is skipped
	if done := f.Recheck(10); done.Queued != 3 {
		f.Fatalf("queued %+v, want all 3", done)
	}
	for i, ark := range want {
		l, spec := f.TakeCheck()
		if spec.ObjectID != ark || string(spec.File) != "v1/content/producer/a" || spec.Version != 1 {
			f.Errorf("check %d is of %+v, want of %s", i, spec, ark)
		}
		f.RecordCheck(l, registry.CheckGood)
		f.Done(l)
	}
	if done := f.Recheck(10); done.Queued != 0 {
		f.Errorf("queued %+v again", done)
	}
	f.Clock.Pass(registrytest.CheckEvery)
	if done := f.Recheck(10); done.Queued != 3 {
		f.Errorf("queued %+v the next time, want 3", done)
	}
}

func dueBounded(f *fixture) {
	var files []registry.File
	for i := range 7 {
		files = append(files, registrytest.File(fmt.Sprintf("producer/%d", i)))
	}
	f.objectOf(files...)
	f.Clock.Pass(registrytest.CheckEvery)
	seen := map[string]bool{}
	for len(seen) < 7 {
		f.Recheck(3)
		if n := len(f.All(registry.ItemQuery{Action: registry.FixityCheck, Status: registry.Pending})); n > 3 {
			f.Fatalf("%d wait, want 3 at most", n)
		}
		l, spec := f.TakeCheck()
		if seen[string(spec.File)] {
			f.Fatalf("%s is checked again while others wait", spec.File)
		}
		seen[string(spec.File)] = true
		f.RecordCheck(l, registry.CheckGood)
		f.Done(l)
	}
}

func dueOnce(f *fixture) {
	ark := f.Object()
	f.Clock.Pass(registrytest.CheckEvery)
	f.Recheck(10)
	if done := f.Recheck(10); done.Queued != 0 {
		f.Errorf("queued %+v while one waits", done)
	}
	if it := f.ItemAbout(registry.FixityCheck, ark); it.CreatedBy != "registry" {
		f.Errorf("asked for, it got another item: %+v", it)
	}
	f.Take(registry.Fixity, "")
	if done := f.Recheck(10); done.Queued != 0 {
		f.Errorf("queued %+v while it runs", done)
	}
	// Given up, it is due as before.
	id := f.ItemAbout(registry.FixityCheck, ark).ID
	f.Confirm(id, registry.ActAbort)
	if done := f.Recheck(10); done.Queued != 1 {
		f.Errorf("queued %+v after it was given up, want 1", done)
	}
}

func sameContent(f *fixture) {
	second := registrytest.File("producer/b")
	second.ContentPath = registrytest.File("producer/a").ContentPath
	gone := registry.File{Path: "producer/c", Deleted: true}
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	f.Intend(c.Lease, ark, 1, `{}`)
	f.Must(f.Store.RecordFiles(f.Context(), c.Lease, ark, 1, []registry.File{registrytest.File("producer/a"), second, gone}))
	f.Must(f.Store.RecordVersion(f.Context(), c.Lease, registrytest.VersionRecord(f.Fixture, c.Lease, ark, 1, []registry.File{registrytest.File("producer/a"), second})))
	f.Clock.Pass(registrytest.CheckEvery)
	if done := f.Recheck(10); done.Queued != 1 {
		f.Errorf("queued %+v, want 1", done)
	}
}

func notRecorded(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	f.Intend(c.Lease, ark, 1, `{}`)
	f.Must(f.Store.RecordFiles(f.Context(), c.Lease, ark, 1, []registry.File{registrytest.File("producer/a")}))
	f.Clock.Pass(registrytest.CheckEvery)
	if done := f.Recheck(10); done.Queued != 0 {
		f.Errorf("queued %+v", done)
	}
	f.Must(f.Store.RecordVersion(f.Context(), c.Lease, registrytest.VersionRecord(f.Fixture, c.Lease, ark, 1, []registry.File{registrytest.File("producer/a")})))
	if done := f.Recheck(10); done.Queued != 1 {
		f.Errorf("queued %+v when it is recorded, want 1", done)
	}
}

func checkShows(f *fixture) {
	ark := f.Object()
	at := f.Clock.Now()
	f.Clock.Pass(registrytest.CheckEvery)
	f.Recheck(10)
	l, _ := f.TakeCheck()
	got, err := f.Store.StoredFile(f.Context(), l)
	f.Must(err)
	want := registry.StoredFile{
		ObjectID: ark, File: []byte("v1/content/" + registrytest.FilePath), Version: 1, SizeBytes: 5, Digests: map[string]string{"sha512": "aa"}, Head: 1,
		Storages: []string{registrytest.Storage}, CheckedAt: at,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("file (-want +got):\n%s", diff)
	}
	_, err = f.Store.StoredFile(f.Context(), f.TakeItem(f.Job(registry.Download)).Lease)
	f.Is(err, registry.ErrInvalid)
}

func objectVerified(f *fixture) {
	ark := f.objectOf(registrytest.File("producer/a"), registrytest.File("producer/b"))
	stored := f.Clock.Now()
	f.Clock.Pass(registrytest.CheckEvery)
	f.Recheck(10)
	var at [2]time.Time
	for i := range at {
		f.Clock.Pass(time.Minute)
		l, spec := f.TakeCheck()
		at[i] = f.Clock.Now()
		f.Must(f.Store.RecordCheck(f.Context(), l, registry.CheckRecord{
			Replicas: []registry.ReplicaCheck{{Storage: registrytest.Storage, Outcome: registry.CheckGood}},
			Events: []registry.Premis{{
				ID: f.Unique("check"), ObjectID: ark, Version: 1, ItemID: l.ItemID, Type: "fixity check", At: at[i], Agent: registrytest.Agent, Outcome: "success", Detail: string(spec.File),
			}},
		}))
		f.Done(l)
		o, err := f.Store.Object(f.Context(), ark)
		f.Must(err)
		want, since := stored, stored
		if i == 1 {
			want, since = at[0], at[0]
		}
		if !o.Versions[0].Replicas[0].VerifiedAt.Equal(want) || !o.CheckedAt.Equal(since) || o.Damaged != 0 {
			f.Errorf("after %d of 2: verified %v, checked %v, damaged %d; want %v", i+1, o.Versions[0].Replicas[0].VerifiedAt, o.CheckedAt, o.Damaged, want)
		}
	}
	events, err := f.Store.PremisEvents(f.Context(), ark, "", 10)
	f.Must(err)
	if len(events.Rows) != 3 { // its ingestion, two checks
		f.Errorf("events %+v", events.Rows)
	}
}

func (f *fixture) damagedFiles(ark string, want int64) {
	f.Helper()
	q, err := f.Store.QueueStatus(f.Context())
	f.Must(err)
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if q.Damaged != want || o.Damaged != want {
		f.Errorf("%d damaged, %d of the object, want %d", q.Damaged, o.Damaged, want)
	}
	if want == 0 && o.Damages != nil {
		f.Errorf("nothing is damaged, but %+v", o.Damages)
	}
}

// damaged makes an object that the next check finds damaged, and does this check.
func (f *fixture) damaged() (ark, check string) {
	ark = f.Object()
	f.Clock.Pass(registrytest.CheckEvery)
	f.Recheck(10)
	l, _ := f.TakeCheck()
	f.RecordCheck(l, registry.CheckDamaged)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "it is damaged"})
	return ark, l.ItemID
}

// damageOfMany: of an object with more damaged files than it names, it is known how many each storage has.
func damageOfMany(f *fixture) {
	const more = registry.MostDamages + 2
	var files []registry.File
	for n := range more {
		files = append(files, registrytest.File(fmt.Sprintf("producer/%03d", n)))
	}
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, f.Unique("object")).ARK
	f.Preserve(c.Lease, ark, 1, files...)
	f.Done(c.Lease)
	f.Clock.Pass(registrytest.CheckEvery)
	f.Recheck(more)
	for range more {
		l, _ := f.TakeCheck()
		f.RecordCheck(l, registry.CheckMissing)
		f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "it is missing"})
	}
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if o.Damaged != more || o.Located != more || len(o.Damages) != registry.MostDamages {
		f.Errorf("%d damaged, %d located, %d named; want %d", o.Damaged, o.Located, len(o.Damages), more)
	}
	if diff := cmp.Diff([]registry.StorageDamage{{Storage: registrytest.Storage, Files: more}}, o.DamagedIn); diff != "" {
		f.Errorf("by storage (-want +got):\n%s", diff)
	}
}

func damageCounted(f *fixture) {
	ark, check := f.damaged()
	f.damagedFiles(ark, 1)
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	where := []registry.FileDamage{{
		File: strings.ToValidUTF8("v1/content/"+registrytest.FilePath, "\uFFFD"), Replicas: []registry.ReplicaCheck{{Storage: registrytest.Storage, Outcome: registry.CheckDamaged}},
	}}
	if diff := cmp.Diff(where, o.Damages); diff != "" {
		f.Errorf("where it is damaged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]registry.StorageDamage{{Storage: registrytest.Storage, Files: 1}}, o.DamagedIn); diff != "" || o.Located != 1 {
		f.Errorf("of %d located (-want +got):\n%s", o.Located, diff)
	}
	if it := f.Item(check); !it.NeedsAdminReview || it.ErrorClass != registry.SystemFault {
		f.Errorf("item %+v", it)
	}
	if got := f.Events(check); !slices.Contains(got, registry.EventFileDamaged) {
		f.Errorf("events %v", got)
	}
	f.Clock.Pass(registrytest.CheckEvery)
	if done := f.Recheck(10); done.Queued != 0 || done.Damaged != 1 || done.Purged != 0 {
		f.Errorf("done %+v, want nothing and 1 damaged", done)
	}
	f.Command(check, registry.ActDelete, "")
	if done := f.Recheck(10); done.Queued != 1 || done.Damaged != 1 {
		f.Errorf("done %+v after its check was given up, want a new one", done)
	}
}

func rightAgain(f *fixture) {
	ark := f.Object()
	f.Clock.Pass(registrytest.CheckEvery)
	f.Recheck(10)
	l, _ := f.TakeCheck()
	f.RecordCheck(l, registry.CheckMissing)
	f.damagedFiles(ark, 1)
	f.RecordCheck(l, registry.CheckRepaired)
	f.Done(l)
	f.damagedFiles(ark, 0)
	if got := f.Events(l.ItemID); !slices.Contains(got, registry.EventFileDamaged) || !slices.Contains(got, registry.EventFileRight) {
		f.Errorf("events %v", got)
	}
}

func askedFor(f *fixture) {
	ark := f.objectOf(registrytest.File("producer/a"), registrytest.File("producer/b"), registrytest.File("producer/c"))
	f.objectOf(registrytest.File("producer/other"))
	f.Clock.Pass(registrytest.Day)
	ask := registry.CheckRequest{ObjectID: ark, Reason: "because", Actor: "admin", IdempotencyKey: "once"}
	f.Must(f.Store.AskForCheck(f.Context(), ask))
	f.Must(f.Store.AskForCheck(f.Context(), ask))
	ask.Reason = "another"
	f.Is(f.Store.AskForCheck(f.Context(), ask), registry.ErrIdempotencyConflict)
	f.Is(f.Store.AskForCheck(f.Context(), registry.CheckRequest{ObjectID: "ark:/99999/no", Actor: "admin"}), registry.ErrNotFound)
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if o.CheckAsked == nil || !o.CheckAsked.Equal(f.Clock.Now()) {
		f.Errorf("asked for at %v", o.CheckAsked)
	}
	for range 3 {
		f.Recheck(1)
		l, spec := f.TakeCheck()
		if spec.ObjectID != ark {
			f.Errorf("checked %s", spec.ObjectID)
		}
		f.RecordCheck(l, registry.CheckGood)
		f.Done(l)
	}
	if done := f.Recheck(10); done.Queued != 0 {
		f.Errorf("queued %+v more", done)
	}
	if o, err = f.Store.Object(f.Context(), ark); err != nil || o.CheckAsked != nil {
		f.Errorf("asked for at %v when all are checked (%v)", o.CheckAsked, err)
	}
	audit, err := f.Store.Audit(f.Context(), registry.AuditQuery{Actor: "admin", Types: []string{registry.EventCheckAskedFor}})
	f.Must(err)
	var data struct {
		Reason string `json:"reason"`
	}
	if len(audit.Rows) != 1 || json.Unmarshal(audit.Rows[0].Data, &data) != nil || data.Reason != "because" || audit.Rows[0].Collection != registrytest.Mnemonic {
		f.Errorf("audit %+v", audit.Rows)
	}
}

func checksPurged(f *fixture) {
	f.Object()
	f.Clock.Pass(registrytest.CheckEvery)
	f.Recheck(10)
	l, _ := f.TakeCheck()
	f.RecordCheck(l, registry.CheckGood)
	f.Done(l)
	if done := f.Recheck(10); done.Purged != 0 {
		f.Errorf("done %+v at once", done)
	}
	f.Clock.Pass(2 * registrytest.Day)
	if done := f.Recheck(10); done.Purged != 1 {
		f.Errorf("done %+v after two days, want it purged", done)
	}
	f.Purged(l.ItemID)
}

func checkFenced(f *fixture) {
	f.Object()
	f.Clock.Pass(registrytest.CheckEvery)
	f.Recheck(10)
	l, _ := f.TakeCheck()
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	_, err := f.Store.StoredFile(f.Context(), l)
	f.Is(err, registry.ErrClaimLost)
	f.Is(f.Store.RecordCheck(f.Context(), l, registry.CheckRecord{}), registry.ErrClaimLost)
}
