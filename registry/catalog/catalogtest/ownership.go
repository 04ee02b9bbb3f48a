package catalogtest

import (
	"errors"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// thief is an owner who has none of the objects that tests make.
const thief = "ark:/99999/thief"

// ownTests check that an item cannot use what belongs to another owner or item, be it a depositor's
// item or that of a worker whose secret leaked.
func ownTests() tests {
	return tests{
		"a_folder_is_no_key_of_another_object":                                     folderIsNoKey,
		"a_settled_name_opens_no_other_owners_local_ids":                           settledName,
		"an_item_announces_versions_of_its_own_object_only":                        announcesItsOwn,
		"a_check_locks_no_other_object":                                            checkLocks,
		"a_deposit_locks_no_object_but_by_naming_it":                               depositLocks,
		"an_event_of_one_object_keeps_none_of_another_out":                         eventIDs,
		"R01_a_depositor_stands_in_no_line_for_another_owners_object":              lineOfAnother,
		"R01_whoever_names_an_object_first_keeps_those_of_other_owners_in_no_line": lineOfNobody,
		"R01_the_owners_deposits_stay_in_their_order_beside_anothers":              lineKeepsOrder,
	}
}

// thiefs returns a claimed item at process, in a collection of the thief.
func (f *fixture) thiefs() registry.Claim {
	f.Helper()
	f.Collection("thiefs", registry.Profile{Owner: thief})
	batch := f.Submit(func(s *registry.Submission) { s.Collection = "thiefs" })
	c := f.TakeItem(batch)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(1))
	f.Must(err)
	f.Done(c.Lease)
	job := f.Children(batch)[0]
	f.Bring(job, registry.Process)
	return f.TakeItem(job)
}

// invalid checks for ErrInvalid.
func (f *fixture) invalid(what string, err error) {
	f.Helper()
	if !errors.Is(err, registry.ErrInvalid) {
		f.Errorf("%s: %v, want that it is invalid", what, err)
	}
}

// free checks that the owner's deposit gets the object at once.
func (f *fixture) free(what, ark string) {
	f.Helper()
	c := f.Processing(1)[0]
	if _, err := f.Store.Identify(f.Context(), c.Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: ark}); err != nil {
		f.Errorf("%s: its owner's deposit does not get %s: %v", what, ark, err)
	}
	f.Done(c.Lease)
	f.Finish(c.Item.ID)
}

func folderIsNoKey(f *fixture) {
	victim := f.Object()
	c := f.thiefs()
	ask := registry.IdentifyRequest{Owner: thief, Proposed: "ark:/99999/mine"}
	for _, folders := range [][]string{
		{"ark:" + victim},
		{"localid:16:" + registrytest.Owner + ":x"},
		{"folder:" + registrytest.Storage + ":mine", "ark:" + victim},
		{"folder:elsewhere:mine"},
		{"folder:"},
	} {
		ask.Folders = folders
		_, err := f.Store.Identify(f.Context(), c.Lease, ask)
		f.invalid("a lock called "+folders[0], err)
	}
	ask.Folders = nil
	f.Identify(c.Lease, ask)
	ask.Folders = []string{"ark:" + victim} // by now its name is settled
	_, err := f.Store.Identify(f.Context(), c.Lease, ask)
	f.invalid("the lock of an object with a settled name", err)
	f.free("after it was asked for as a folder", victim)
}

// settledName: once its name is settled, an item gets that name whatever it requests, and no other
// lock.
func settledName(f *fixture) {
	c := f.thiefs()
	f.Identify(c.Lease, registry.IdentifyRequest{Owner: thief, Proposed: "ark:/99999/mine"})
	_, err := f.Store.Identify(f.Context(), c.Lease, registry.IdentifyRequest{Owner: registrytest.Owner, LocalIDs: []string{"x"}})
	f.invalid("local ids of another owner", err)
	f.Named(f.Processing(1)[0].Lease, "x")
	f.Identify(c.Lease, registry.IdentifyRequest{}) // as one does that abandons a version
}

// announcesItsOwn: a lock alone does not allow writes.
func announcesItsOwn(f *fixture) {
	other := f.Object()
	c := f.Processing(1)[0]
	own := f.Named(c.Lease, "mine").ARK
	_, err := f.Store.Intend(f.Context(), c.Lease, registry.Intent{ObjectID: other, Version: 2, Plan: []byte(`{}`)})
	if !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("a version of an object that the item does not have: %v", err)
	}
	f.Intend(c.Lease, own, 1, `{}`)
	files := []registry.File{registrytest.File(registrytest.FilePath)}
	for _, object := range []string{other, "ark:/99999/nothing"} {
		if err := f.Store.RecordFiles(f.Context(), c.Lease, object, 1, files); err == nil {
			f.Errorf("files of %s were recorded", object)
		}
		if err := f.Store.RecordVersion(f.Context(), c.Lease, registrytest.VersionRecord(f.Fixture, c.Lease, object, 1, files)); err == nil {
			f.Errorf("a version of %s was recorded", object)
		}
	}
	f.Record(c.Lease, own, 1, files...)
}

func checkLocks(f *fixture) {
	mine, theirs := f.Object(), f.Object()
	for action, stage := range map[registry.Action]registry.Stage{
		registry.FixityCheck: registry.Fixity, registry.RestoreObject: registry.Restore, registry.DeleteObject: registry.Delete,
	} {
		l := f.Take(stage, f.ItemAbout(action, mine).ID).Lease
		_, err := f.Store.LockObject(f.Context(), l, theirs)
		f.invalid(string(stage)+" of another object", err)
		_, err = f.Store.LockObject(f.Context(), l, mine, "ark:"+theirs)
		f.invalid(string(stage)+" with another object as a folder", err)
		if _, err = f.Store.LockObject(f.Context(), l, mine, "folder:some:where"); stage != registry.Delete {
			f.invalid(string(stage)+" with a folder of a storage that it does not write to", err)
		} else if err != nil {
			f.Errorf("a deletion with a folder of any storage: %v", err)
		}
		f.free("while it is at "+string(stage), theirs)
		f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	}
}

func depositLocks(f *fixture) {
	theirs := f.Object()
	c := f.thiefs()
	_, err := f.Store.LockObject(f.Context(), c.Lease, theirs)
	f.invalid("a job's lock of an object", err)
	f.free("after a job asked for its lock", theirs)
}

// eventIDs: workers choose the ids of events. Using the id of another item's event first does not
// block that event.
func eventIDs(f *fixture) {
	mine, theirs := f.Object(), f.Object()
	check := func(ark, outcome string) {
		f.Helper()
		it := f.ItemAbout(registry.FixityCheck, ark).ID
		l := f.Take(registry.Fixity, it).Lease
		r := registry.CheckRecord{
			Replicas: []registry.ReplicaCheck{{Storage: registrytest.Storage, Outcome: registry.CheckGood}},
			Events: []registry.Premis{{
				ID: "an id that the true event will have", ObjectID: ark, Version: 1, ItemID: it, Type: "fixity check", Agent: registrytest.Agent, Outcome: outcome, At: f.Clock.Now(),
			}},
		}
		for range 2 { // an answer was lost
			f.Must(f.Store.RecordCheck(f.Context(), l, r))
		}
		f.Done(l)
	}
	check(mine, "success")
	check(theirs, "success")
	check(theirs, "failure")
	for ark, want := range map[string]int{mine: 2, theirs: 3} { // the first is its ingestion
		page, err := f.Store.PremisEvents(f.Context(), ark, "", 10)
		f.Must(err)
		if len(page.Rows) != want {
			f.Errorf("%s has %d events, want %d: %+v", ark, len(page.Rows), want, page.Rows)
		}
	}
}

// naming makes a job that names an object by its ARK and is still downloading.
func (f *fixture) naming(collection, ark string) (job string) {
	f.Helper()
	f.Clock.Pass(time.Second)
	batch := f.Submit(func(s *registry.Submission) { s.Collection, s.Spec.PrimaryID = collection, ark })
	c := f.TakeItem(batch)
	jobs := registrytest.NewJobs(1)
	jobs[0].Spec.PrimaryID = ark
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	return f.Children(batch)[0]
}

// mismatched checks that a job is refused an object of another owner.
func (f *fixture) mismatched(job, ark string) {
	f.Helper()
	f.Bring(job, registry.Process)
	_, err := f.Store.Identify(f.Context(), f.TakeItem(job).Lease, registry.IdentifyRequest{Owner: thief, Supplied: ark})
	if !errors.As(err, new(*registry.OwnerMismatch)) {
		f.Errorf("another owner's deposit: %v, want that the object is not its owner's", err)
	}
}

// lineOfAnother: a deposit that names another owner's object delays neither that owner's deposits
// nor the object's deletion, whether its batch is not expanded yet or its job is downloading.
func lineOfAnother(f *fixture) {
	victim := f.Object()
	f.Collection("thiefs", registry.Profile{Owner: thief})
	f.Submit(func(s *registry.Submission) { s.Collection, s.Spec.PrimaryID = "thiefs", victim })
	job := f.naming("thiefs", victim)
	f.Clock.Pass(time.Minute)
	f.free("while another's job downloads", victim)
	l := f.Take(registry.Delete, f.ApprovedDeletion(victim).ID).Lease
	f.LockObject(l, victim)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	f.mismatched(job, victim)
}

// lineOfNobody: an object that does not exist yet belongs to the first deposit. From then on other
// owners do not wait for it.
func lineOfNobody(f *fixture) {
	const ark = "ark:/99999/fresh"
	f.Collection("thiefs", registry.Profile{Owner: thief})
	first, second := f.naming(registrytest.Mnemonic, ark), f.naming("thiefs", ark)
	f.Submit(func(s *registry.Submission) { s.Collection, s.Spec.PrimaryID = "thiefs", ark }) // and one that is never expanded
	third := f.naming(registrytest.Mnemonic, ark)
	f.Bring(second, registry.Process)
	f.Bring(third, registry.Process)
	for _, job := range []string{second, third} {
		if got := f.Refused(registry.Process, job).Reason; got != registry.ReasonLocked {
			f.Errorf("before the first deposit: %s, want locked", got)
		}
	}
	f.Bring(first, registry.Process)
	l := f.TakeItem(first).Lease
	f.Identify(l, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: ark})
	f.Preserve(l, ark, 1)
	f.mismatched(second, ark) // which need not wait for the first to end
	f.Done(l)
	f.Finish(first)
	l = f.TakeItem(third).Lease
	if id := f.Identify(l, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: ark}); id.Head != 1 {
		f.Errorf("the owner's next deposit: %+v", id)
	}
}

// lineKeepsOrder: removing other owners' items from the line keeps the order of the owner's own
// deposits.
func lineKeepsOrder(f *fixture) {
	victim := f.Object()
	f.Collection("thiefs", registry.Profile{Owner: thief})
	first := f.naming(registrytest.Mnemonic, victim)
	f.naming("thiefs", victim)
	second := f.naming(registrytest.Mnemonic, victim)
	f.Bring(second, registry.Process)
	if got := f.Refused(registry.Process, second).Reason; got != registry.ReasonLocked {
		f.Errorf("the second deposit of the owner: %s, want locked", got)
	}
	f.Bring(first, registry.Process)
	for _, job := range []string{first, second} {
		l := f.TakeItem(job).Lease
		f.Identify(l, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: victim})
		f.Done(l)
		f.Finish(job)
	}
}
