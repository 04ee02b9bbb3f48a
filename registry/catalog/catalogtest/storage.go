package catalogtest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func storageTests() tests {
	return tests{
		"a_new_storage_is_filled":                           storageFilled,
		"a_storage_is_retired_when_all_is_elsewhere":        storageRetired,
		"a_storage_is_kept_in_its_former_place":             storageKept,
		"nothing_is_changed_that_a_profile_forbids":         storageRefused,
		"copies_are_counted_by_the_policy_of_the_profile":   copiesCounted,
		"a_copy_is_recorded_by_its_item_for_its_storages":   copyRecorded,
		"objects_that_lack_copies_are_listed":               lackingListed,
		"a_bounded_number_of_copies_is_under_way_at_a_time": copiesBounded,
		"nobody_looks_for_copies_while_nothing_happens":     alignRests,
	}
}

// other is a storage beside the default one.
const other = "other"

func (f *fixture) change(c registry.StorageChange) registry.StorageChanged {
	f.Helper()
	c.Actor = "admin"
	done, err := f.Store.ChangeStorage(f.Context(), c)
	f.Must(err)
	return done
}

func (f *fixture) align(outstanding int) registry.Aligned {
	f.Helper()
	done, err := f.Store.Align(f.Context(), registry.AlignRequest{Outstanding: outstanding, Keep: time.Hour})
	f.Must(err)
	return done
}

// storageNow returns what is known of a storage.
func (f *fixture) storageNow(name string) (registry.Storage, registry.StorageReport) {
	f.Helper()
	f.Clock.Pass(time.Hour) // a count is used again for a while
	report, err := f.Store.Storages(f.Context(), nil)
	f.Must(err)
	i := slices.IndexFunc(report.Storages, func(s registry.Storage) bool { return s.Name == name })
	if i < 0 {
		f.Fatalf("storage %s is not listed: %+v", name, report)
	}
	return report.Storages[i], report
}

// storagesOf returns the storages in the profile of the tests' collection.
func (f *fixture) storagesOf() []string {
	f.Helper()
	c, err := f.Store.Collection(f.Context(), registrytest.Mnemonic)
	f.Must(err)
	return c.Profile.StorageNames()
}

// copyNext carries out the copy that is next.
func (f *fixture) copyNext() (ark string) {
	f.Helper()
	c := f.Take(registry.Copy, "")
	spec, _ := registry.ObjectSpecIn(c.Item.Spec)
	f.LockObject(c.Lease, spec.ObjectID)
	f.Must(f.Store.RecordCopy(f.Context(), c.Lease, f.copyOf(c, spec.ObjectID)))
	f.Done(c.Lease)
	return spec.ObjectID
}

func (f *fixture) copyOf(c registry.Claim, ark string) registry.CopyRecord {
	r := registry.CopyRecord{ObjectID: ark, Version: 1, Events: []registry.Premis{{
		ID: c.Item.ID + "-copied", ObjectID: ark, Version: 1, ItemID: c.Item.ID, Type: "replication", At: f.Clock.Now(), Agent: registrytest.Agent, Outcome: "success", Detail: "copied",
	}}}
	for _, name := range c.Item.Storages {
		r.Replicas = append(r.Replicas, registry.Replica{Storage: name, VerifiedAt: f.Clock.Now()})
	}
	return r
}

func storageFilled(f *fixture) {
	objects := []string{f.Object(), f.Object()}
	would, err := f.Store.ChangeStorage(f.Context(), registry.StorageChange{Name: other, Act: registry.ActFill, DryRun: true, Actor: "admin"})
	f.Must(err)
	if got := f.storagesOf(); len(got) != 1 || would.Copies.Objects != 2 {
		f.Errorf("a dry run changed %v, and would copy %+v", got, would.Copies)
	}
	f.change(registry.StorageChange{Name: other, Act: registry.ActFill, Reason: "more"})
	if diff := cmp.Diff([]string{registrytest.Storage, other}, f.storagesOf()); diff != "" {
		f.Errorf("the profile (-want +got):\n%s", diff)
	}
	if done := f.align(10); done.Queued != 2 || len(done.Ended) != 0 {
		f.Errorf("%+v, want two copies", done)
	}
	if done := f.align(10); done.Queued != 0 {
		f.Errorf("%d copies were queued again", done.Queued)
	}
	f.copyNext()
	if s, _ := f.storageNow(other); s.State != registry.StorageFilling || s.Objects != 1 || s.Missing.Objects != 1 || s.RestSeconds == 0 || s.Reason != "more" {
		f.Errorf("half filled: %+v", s)
	}
	failed := f.Take(registry.Copy, "")
	f.Settle(registry.Settlement{Lease: failed.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	if done := f.align(10); done.Queued != 0 || len(done.Ended) != 0 {
		f.Errorf("while a copy has failed: %+v", done)
	}
	if s, _ := f.storageNow(other); s.Failed != 1 {
		f.Errorf("%d failed copies, want 1", s.Failed)
	}
	_, err = f.Store.Command(f.Context(), registry.Command{ItemID: failed.Item.ID, Act: registry.ActDelete, Actor: "admin", Confirmed: true})
	f.Must(err)
	if done := f.align(10); done.Queued != 1 {
		f.Errorf("after the failed copy is deleted: %+v", done)
	}
	f.copyNext()
	if done := f.align(10); len(done.Ended) != 1 || done.Ended[0].State != registry.StorageInUse {
		f.Errorf("at the end: %+v", done)
	}
	for _, ark := range objects {
		o, err := f.Store.Object(f.Context(), ark)
		f.Must(err)
		if len(o.Versions[0].Replicas) != 2 {
			f.Errorf("copies of %s: %+v", ark, o.Versions[0].Replicas)
		}
	}
}

func storageRetired(f *fixture) {
	f.Object()
	open := f.Processing(1)[0]
	f.change(registry.StorageChange{Name: registrytest.Storage, Act: registry.ActRetire, To: other})
	if diff := cmp.Diff([]string{other}, f.storagesOf()); diff != "" {
		f.Errorf("the profile (-want +got):\n%s", diff)
	}
	f.align(10)
	s, _ := f.storageNow(registrytest.Storage)
	if s.State != registry.StorageRetiring || s.Waits.Lacking.Objects != 1 || s.Waits.Items != 1 {
		f.Errorf("%+v, it waits for %+v", s, s.Waits)
	}
	f.copyNext()
	f.align(10)
	if s, _ := f.storageNow(registrytest.Storage); s.State != registry.StorageRetiring || s.Waits.Lacking.Objects != 0 || s.Waits.Items != 1 {
		f.Errorf("while a job may write to it: %+v, it waits for %+v", s, s.Waits)
	}
	ark := f.Named(open.Lease, f.Unique("object")).ARK
	f.Preserve(open.Lease, ark, 1, registrytest.File(registrytest.FilePath))
	f.Done(open.Lease)
	f.Finish(open.Item.ID)
	f.align(10)
	if s, _ := f.storageNow(registrytest.Storage); s.Waits == nil || s.Waits.Lacking.Objects != 1 {
		f.Errorf("with what the job stored: %+v", s)
	}
	if got := f.copyNext(); got != ark {
		f.Errorf("copied %s, want %s", got, ark)
	}
	f.align(10)
	if s, _ := f.storageNow(registrytest.Storage); s.State != registry.StorageRetired {
		f.Fatalf("%+v, it waits for %+v", s, s.Waits)
	}
	f.align(10) // its replicas are forgotten
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if len(o.Versions[0].Replicas) != 1 || o.Versions[0].Replicas[0].Storage != other {
		f.Errorf("copies in the end: %+v", o.Versions[0].Replicas)
	}
	for _, act := range []registry.StorageAct{registry.ActFill, registry.ActKeep} {
		_, err := f.Store.ChangeStorage(f.Context(), registry.StorageChange{Name: registrytest.Storage, Act: act, Actor: "admin"})
		f.invalid("to "+string(act)+" a retired storage", err)
	}
	f.invalid("a profile with a retired storage", f.Store.PutCollection(f.Context(), registry.Collection{
		Mnemonic: "late", Profile: registry.Profile{Owner: registrytest.Owner, Storages: []string{registrytest.Storage, other}},
	}, "admin"))
}

func storageKept(f *fixture) {
	f.Object()
	f.change(registry.StorageChange{Name: other, Act: registry.ActFill})
	f.change(registry.StorageChange{Name: registrytest.Storage, Act: registry.ActRetire})
	if diff := cmp.Diff([]string{other}, f.storagesOf()); diff != "" {
		f.Errorf("while it is retired (-want +got):\n%s", diff)
	}
	f.change(registry.StorageChange{Name: registrytest.Storage, Act: registry.ActKeep})
	f.change(registry.StorageChange{Name: registrytest.Storage, Act: registry.ActKeep}) // a repeat
	if diff := cmp.Diff([]string{registrytest.Storage, other}, f.storagesOf()); diff != "" {
		f.Errorf("kept (-want +got):\n%s", diff)
	}
	if s, _ := f.storageNow(registrytest.Storage); s.State != registry.StorageInUse || s.Objects != 1 {
		f.Errorf("kept: %+v", s)
	}
}

func storageRefused(f *fixture) {
	two, far := 2, 1
	profile := registry.Profile{Owner: registrytest.Owner, Storages: []string{registrytest.Storage, other}, Copies: &two}
	f.Must(f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: "two", Profile: profile}, "admin"))
	_, err := f.Store.ChangeStorage(f.Context(), registry.StorageChange{Name: other, Act: registry.ActRetire, Actor: "admin"})
	f.invalid("too few storages for the copies", err)
	_, err = f.Store.ChangeStorage(f.Context(), registry.StorageChange{Name: registrytest.Storage, Act: registry.ActRetire, Actor: "admin"})
	f.invalid("the only storage of a collection", err)
	_, err = f.Store.ChangeStorage(f.Context(), registry.StorageChange{Name: "third", Act: registry.ActFill, Collections: []string{"nothing"}, Actor: "admin"})
	f.invalid("a collection that is not there", err)
	profile.OffsiteCopies = &far
	f.invalid("more off-site copies than off-site storages", f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: "two", Profile: profile}, "admin"))
	yes := true
	f.change(registry.StorageChange{Name: other, Act: registry.ActPlace, Offsite: &yes})
	f.Must(f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: "two", Profile: profile}, "admin"))
	three := 3
	profile.Copies = &three
	f.invalid("more copies than storages", f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: "two", Profile: profile}, "admin"))
}

func copiesCounted(f *fixture) {
	f.Object()
	f.change(registry.StorageChange{Name: other, Act: registry.ActFill})
	_, report := f.storageNow(other)
	if report.Short() != 1 || report.Collections[0].Copies != 2 || report.Collections[0].Objects != 1 {
		f.Errorf("with one copy of two: %+v", report.Collections)
	}
	one, far := 1, 1
	c, err := f.Store.Collection(f.Context(), registrytest.Mnemonic)
	f.Must(err)
	c.Profile.Copies = &one
	f.Must(f.Store.PutCollection(f.Context(), c, "admin"))
	if _, report := f.storageNow(other); report.Short() != 0 {
		f.Errorf("one copy is enough, and %d objects are short", report.Short())
	}
	yes := true
	f.change(registry.StorageChange{Name: other, Act: registry.ActPlace, Offsite: &yes})
	c, err = f.Store.Collection(f.Context(), registrytest.Mnemonic)
	f.Must(err)
	c.Profile.OffsiteCopies = &far
	f.Must(f.Store.PutCollection(f.Context(), c, "admin"))
	if s, report := f.storageNow(other); report.Short() != 1 || !s.Offsite {
		f.Errorf("no copy is off-site, and %d objects are short; %+v", report.Short(), s)
	}
	f.align(10)
	f.copyNext()
	if _, report := f.storageNow(other); report.Short() != 0 {
		f.Errorf("with the off-site copy %d objects are short", report.Short())
	}
}

func copyRecorded(f *fixture) {
	ark := f.Object()
	f.change(registry.StorageChange{Name: other, Act: registry.ActFill})
	f.align(10)
	c := f.Take(registry.Copy, "")
	record := f.copyOf(c, ark)
	if err := f.Store.RecordCopy(f.Context(), c.Lease, record); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("without the object's lock: %v", err)
	}
	f.LockObject(c.Lease, ark)
	wrong := record
	wrong.Replicas = []registry.Replica{{Storage: "elsewhere", VerifiedAt: f.Clock.Now()}}
	f.invalid("a storage that is not the item's", f.Store.RecordCopy(f.Context(), c.Lease, wrong))
	wrong = record
	wrong.Replicas = []registry.Replica{{Storage: other}}
	f.invalid("a copy that was not verified", f.Store.RecordCopy(f.Context(), c.Lease, wrong))
	wrong = record
	wrong.Version = 2
	f.invalid("a version that is not there", f.Store.RecordCopy(f.Context(), c.Lease, wrong))
	record.Damaged = true
	f.Must(f.Store.RecordCopy(f.Context(), c.Lease, record))
	f.Must(f.Store.RecordCopy(f.Context(), c.Lease, record)) // a repeat
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if len(o.Versions[0].Replicas) != 2 || o.CheckAsked == nil {
		f.Errorf("copies %+v, a check was asked for at %v", o.Versions[0].Replicas, o.CheckAsked)
	}
	f.Done(c.Lease)
	if err := f.Store.RecordCopy(f.Context(), c.Lease, record); !errors.Is(err, registry.ErrClaimLost) {
		f.Errorf("after its end: %v", err)
	}
	_, err = f.Store.RequestObject(f.Context(), registry.ObjectRequest{Action: registry.CopyObject, Spec: registry.ObjectSpec{ObjectID: ark}, Actor: "admin"})
	f.invalid("a copy that a person asks for", err)
}

func copiesBounded(f *fixture) {
	for range 3 {
		f.Object()
	}
	f.change(registry.StorageChange{Name: other, Act: registry.ActFill})
	if done := f.align(2); done.Queued != 2 {
		f.Errorf("%d copies are queued, want 2", done.Queued)
	}
	if done := f.align(2); done.Queued != 0 {
		f.Errorf("%d more copies are queued", done.Queued)
	}
	f.copyNext()
	if done := f.align(2); done.Queued != 1 || len(done.Ended) != 0 {
		f.Errorf("when one has ended: %+v", done)
	}
	f.copyNext()
	f.copyNext()
	f.align(2)
	if s, _ := f.storageNow(other); s.State != registry.StorageInUse || s.Objects != 3 {
		f.Errorf("in the end: %+v", s)
	}
}

// Once all objects were looked at and only failed copies are left, a walk over all of them begins again only
// when something happens that may matter to it, or after a long time.
func alignRests(f *fixture) {
	f.Object()
	open := f.Processing(1)[0]
	f.change(registry.StorageChange{Name: other, Act: registry.ActFill})
	f.align(10)
	c := f.Take(registry.Copy, "")
	fail := func() {
		f.Helper()
		f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	}
	walks := func(after string, want int) {
		f.Helper()
		done := f.align(10)
		if done.Seen != want {
			f.Errorf("%s: %d objects were looked at, want %d", after, done.Seen, want)
		}
		if done.Queued > 0 {
			f.align(10)
		}
		if done := f.align(10); done.Seen != 0 {
			f.Errorf("%s: %d objects were looked at once more", after, done.Seen)
		}
	}
	fail()
	walks("a failed copy", 1)
	f.Clock.Pass(time.Minute)
	walks("a minute", 0)
	f.Command(c.Item.ID, registry.ActRequeue, "")
	walks("a requeue", 1)
	c = f.Take(registry.Copy, "")
	fail()
	walks("another failure", 1)
	f.Preserve(open.Lease, f.Named(open.Lease, f.Unique("object")).ARK, 1, registrytest.File(registrytest.FilePath))
	f.Done(open.Lease)
	f.Finish(open.Item.ID)
	walks("a new object", 2)
	yes := true
	f.change(registry.StorageChange{Name: other, Act: registry.ActPlace, Offsite: &yes})
	walks("an act on a storage", 2)
	profile, err := f.Store.Collection(f.Context(), registrytest.Mnemonic)
	f.Must(err)
	one := 1
	profile.Profile.Copies = &one
	f.Must(f.Store.PutCollection(f.Context(), profile, "admin"))
	walks("a changed collection", 2)
	f.Clock.Pass(time.Hour)
	walks("an hour", 2)
}

// lacking lists the objects that lack copies, a page at a time.
func (f *fixture) lacking(storage, collection string) (all []registry.StorageObject) {
	f.Helper()
	f.Clock.Pass(time.Hour) // a count is used again for a while
	for after := ""; ; {
		page, err := f.Store.StorageObjects(f.Context(), registry.StorageObjectsQuery{Storage: storage, Collection: collection, After: after, Limit: 1})
		f.Must(err)
		if all = append(all, page.Rows...); page.Next == "" {
			return all
		}
		after = page.Next
	}
}

func lackingListed(f *fixture) {
	damaged, _ := f.damaged()
	whole := f.Object()
	if got := append(f.lacking("", ""), f.lacking(other, "")...); len(got) != 0 {
		f.Errorf("before anything is asked for: %+v", got)
	}
	f.change(registry.StorageChange{Name: registrytest.Storage, Act: registry.ActRetire, To: other})
	f.align(10)
	for _, storage := range []string{registrytest.Storage, other} {
		got := f.lacking(storage, registrytest.Mnemonic)
		if len(got) != 2 || got[0].ID >= got[1].ID || got[0].Status != registry.Pending || got[0].Item == "" || got[0].Has != 1 || got[0].Policy.Copies != 1 || got[0].Storages[0] != registrytest.Storage {
			f.Errorf("before they are copied, of %s: %+v", storage, got)
		}
		if got := f.lacking(storage, "none"); len(got) != 0 {
			f.Errorf("of another collection: %+v", got)
		}
	}
	copied := f.copyNext()
	if got := f.lacking(other, ""); len(got) != 1 || got[0].ID == copied {
		f.Errorf("when %s is copied, %s lacks %+v", copied, other, got)
	}
	f.copyNext()
	if got := f.lacking(registrytest.Storage, ""); len(got) != 1 || got[0].ID != damaged || !got[0].Damaged {
		f.Errorf("when all are copied: %+v, want only the damaged %s", got, damaged)
	}
	two := 2
	f.Must(f.Store.PutCollection(f.Context(), registry.Collection{
		Mnemonic: registrytest.Mnemonic, Profile: registry.Profile{Owner: registrytest.Owner, Storages: []string{other, "third"}, Copies: &two},
	}, "admin"))
	if got := f.lacking("", registrytest.Mnemonic); len(got) != 0 { // what is retiring counts until it is retired
		f.Errorf("with two copies of two: %+v", got)
	}
	o, err := f.Store.Object(f.Context(), whole)
	f.Must(err)
	has, err := f.Store.CopiesOf(f.Context(), o)
	f.Must(err)
	if want := (registry.ObjectCopies{Has: 2, Met: true, Policy: registry.CopyPolicy{Copies: 2}}); has != want {
		f.Errorf("copies %+v, want %+v", has, want)
	}
	if got := f.lacking("third", ""); len(got) != 2 {
		f.Errorf("the third storage lacks %+v", got)
	}
}
