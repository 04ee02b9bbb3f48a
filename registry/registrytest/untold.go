package registrytest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// outcome checks what is said of a job beside its state.
func (f *fixture) outcome(id, want string) registry.WorkItem {
	f.Helper()
	it := f.item(id)
	if got := it.OutcomeText(); got != want {
		f.Errorf("outcome %q, want %q", got, want)
	}
	return it
}

// untold is a job whose object is preserved and whose receiver does not answer: it failed at its last step.
func (f *fixture) untold() (id string) {
	f.Helper()
	id = f.committed(registry.Notify, registry.Preserved)
	c := f.takeItem(id)
	f.noted(c.Lease, completedMessage(id), 503, "not now")
	f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "receiver.test does not answer"})
	return id
}

// objectOfJob is the object that a job has preserved.
func (f *fixture) objectOfJob(id string) string {
	f.Helper()
	var identity registry.Identity
	f.must(json.Unmarshal(f.item(id).Results[registry.ResultARK], &identity))
	return identity.ARK
}

// givenUp: an admin ends the tries; the job completes with that recorded, and nothing of it waits for the receiver any more.
func givenUp(f *fixture) {
	id := f.untold()
	it := f.outcome(id, "preserved; callback not delivered")
	if it.Commitment != registry.Preserved || !slices.Contains(it.AllowedActs, registry.ActGiveUp) {
		f.Fatalf("%q allows %v", it.Commitment, it.AllowedActs)
	}
	f.sure(id, registry.ActGiveUp)
	f.state(id, registry.StateNotify)
	c := f.takeItem(id)
	if to, err := c.Item.Receiver(); to != nil || err != nil {
		f.Errorf("it tells %+v, %v, want nobody", to, err)
	}
	f.done(c.Lease)
	f.state(id, registry.StateCompleted)
	it = f.outcome(id, "preserved; callback given up")
	u, ok := it.Untold()
	if !ok || u.Actor != "admin" || u.Reason != "because" || u.Target != "https://receiver.test" || u.At.IsZero() {
		f.Errorf("%+v", u)
	}
	if es := f.events(id); !slices.Contains(es, string(registry.ActGiveUp)) {
		f.Errorf("events %v", es)
	}
	f.finish(it.ParentID)
	f.state(it.ParentID, registry.StateCompleted)
}

// toldAfterAll: a try that was under way may succeed, and then nothing was given up; nor when somebody has it told later.
func toldAfterAll(f *fixture) {
	id := f.committed(registry.Notify, registry.Preserved)
	c := f.takeItem(id)
	f.sure(id, registry.ActGiveUp)
	if it := f.item(id); it.Status != registry.Running || slices.Contains(it.AllowedActs, registry.ActGiveUp) {
		f.Errorf("it is %s and allows %v", it.Status, it.AllowedActs)
	}
	f.noted(c.Lease, completedMessage(id), 200, "")
	f.done(c.Lease)
	f.state(id, registry.StateCompleted)
	if _, ok := f.outcome(id, "").Untold(); ok {
		f.Error("it was told, and says that it was not")
	}

	late := f.untold()
	f.sure(late, registry.ActGiveUp)
	f.finish(late)
	f.collection(mnemonic, registry.Profile{Owner: owner, Callback: receiver()})
	_, err := f.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: late, Actor: "admin"})
	f.must(err)
	carrier := f.take(registry.Deliver, "")
	spec, _ := registry.DeliverySpecIn(carrier.Item.Spec)
	f.noted(carrier.Lease, spec, 200, "")
	f.done(carrier.Lease)
	f.outcome(late, "")
}

// aimedAnew: whoever sends a job back to tell its receiver means the one that the collection has now.
func aimedAnew(f *fixture) {
	id := f.untold()
	aim := func(profile registry.Profile, want string) {
		f.Helper()
		profile.Owner = owner
		f.collection(mnemonic, profile)
		f.command(id, registry.ActRequeue, "")
		c := f.takeItem(id)
		to, err := c.Item.Receiver()
		f.must(err)
		if to == nil || to.URL != want {
			f.Errorf("it tells %+v, want %s", to, want)
		}
		f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	}
	aim(registry.Profile{}, receiver().URL) // the collection has none any more: the job's stays
	aim(registry.Profile{Callback: &registry.Callback{URL: "https://moved.test/"}}, "https://moved.test/")
	aim(registry.Profile{}, "https://moved.test/")
	n := 0
	for _, e := range f.events(id) {
		if e == "callback-changed" {
			n++
		}
	}
	if n != 1 {
		f.Errorf("%d events of a changed callback, want 1", n)
	}
}

// remainsDeleted: what is left of a job whose object is preserved can be deleted; the object stays, and the batch can be cleaned up.
func remainsDeleted(f *fixture) {
	id := f.untold()
	ark := f.objectOfJob(id)
	f.says(f.unconfirmed(id, registry.ActDelete), "version 1 of "+ark+" is preserved and stays", "https://receiver.test is not told")
	f.sure(id, registry.ActDelete)
	f.outcome(id, "preserved; callback not delivered")
	if o, err := f.Object(f.Context(), ark); err != nil || len(o.Versions) != 1 {
		f.Errorf("object %+v, %v", o, err)
	}
	batch := f.item(id).ParentID
	for it := f.item(batch); !it.Status.Settled(); it = f.item(batch) {
		c := f.takeItem(batch)
		_, err := f.CloseReport(f.Context(), c.Lease)
		f.must(err)
		f.done(c.Lease)
	}
	f.sure(batch, registry.ActDelete)
	f.sure(batch, registry.ActPurge)
	_, err := f.Item(f.Context(), id)
	f.is(err, registry.ErrNotFound)
	if o, err := f.Object(f.Context(), ark); err != nil || len(o.Versions) != 1 {
		f.Errorf("after the purge: object %+v, %v", o, err)
	}
}

// untoldBatchDeleted: a delete of a batch says what becomes of jobs whose objects are preserved or announced, and does that; a purge names
// the jobs that it waits for.
func untoldBatchDeleted(f *fixture) {
	batch := f.submitTold(receiver())
	c := f.takeItem(batch)
	jobs := newJobs(4)
	_, err := f.AddJobs(f.Context(), c.Lease, jobs)
	f.must(err)
	f.done(c.Lease)
	ids := f.children(batch)
	for i, id := range ids[:3] {
		f.bring(id, registry.Process)
		l := f.takeItem(id).Lease
		ark := f.locks(l, f.unique("object")).ARK
		if i == 2 { // it has announced its version, and fails
			f.intend(l, ark, 1, `{}`)
			f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
			continue
		}
		f.store(l, ark, 1, file(aFile))
		f.done(l)
		f.bring(id, registry.Notify)
	}
	f.fail(ids[0], registry.SystemFault) // its receiver does not answer; that of the second one is being tried
	f.sure(batch, registry.ActHold)      // what is at work cannot be deleted
	f.says(f.unconfirmed(batch, registry.ActDelete), "2 jobs are deleted, 1 of them stopped first", "the object of 1 job that did not complete is preserved and stays",
		"1 job whose object is preserved already completes; its receiver is not told", "1 job is past the point of no return")
	f.sure(batch, registry.ActDelete)
	f.carriedOut()
	f.state(ids[0], registry.StateDeleted)
	f.finish(ids[1])
	f.outcome(ids[1], "preserved; callback given up")
	f.state(ids[2], registry.StateFailed)
	f.state(ids[3], registry.StateDeleted)
	_, err = f.Command(f.Context(), registry.Command{ItemID: batch, Act: registry.ActPurge, Actor: "admin"})
	if refused := (*registry.TransitionError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), ids[2]) || strings.Contains(err.Error(), ids[0]) {
		f.Errorf("purge beside a job that is left: %v", err)
	}
}

// reportPreserved: a job whose object is preserved is no failed preservation, in progress, report and lists; its batch says so.
func reportPreserved(f *fixture) {
	batch := f.submitTold(receiver())
	c := f.takeItem(batch)
	jobs := newJobs(3)
	_, err := f.AddJobs(f.Context(), c.Lease, jobs)
	f.must(err)
	f.done(c.Lease)
	ids := f.children(batch)
	f.finish(ids[0])
	f.fail(ids[2], registry.ContentFault)
	f.bring(ids[1], registry.Process)
	l := f.takeItem(ids[1]).Lease
	f.store(l, f.locks(l, f.unique("object")).ARK, 1, file(aFile))
	f.done(l)
	f.bring(ids[1], registry.Notify)
	f.fail(ids[1], registry.SystemFault)
	if p := f.progress(batch); p.Jobs != 3 || p.Completed != 1 || p.Preserved != 1 || p.Failed != 1 || p.Content != 1 || p.Open != 0 {
		f.Errorf("progress %+v", p)
	}
	l = f.takeItem(batch).Lease
	if r := f.closeReport(l); r.Jobs != 3 || r.Completed != 1 || r.Preserved != 1 || r.Failed != 1 || r.Content != 1 || r.Stopped != 0 {
		f.Errorf("report %+v", r)
	}
	f.done(l)
	it := f.item(batch)
	if it.Status != registry.Failed || !strings.Contains(it.Note, "2 of 3 jobs did not complete") || !strings.Contains(it.Note, "1 of them is preserved") {
		f.Errorf("the batch is %s: %s", it.Status, it.Note)
	}
	for list, want := range map[registry.ReportList]string{registry.ListCompleted: ids[0], registry.ListPreserved: ids[1], registry.ListFailed: ids[2]} {
		rows, err := f.ReportJobs(f.Context(), registry.ReportQuery{BatchID: batch, List: list})
		f.must(err)
		if len(rows) != 1 || rows[0].ItemID != want || rows[0].Preserved != (list == registry.ListPreserved) {
			f.Errorf("list %s: %+v, want %s", list, rows, want)
		}
	}
	// What is left of it is deleted: it is preserved all the same.
	f.sure(ids[1], registry.ActDelete)
	f.command(batch, registry.ActUpdateReport, "")
	l = f.takeItem(batch).Lease
	if r := f.closeReport(l); r.Preserved != 1 || r.Failed != 1 || r.Stopped != 0 {
		f.Errorf("report after the delete %+v", r)
	}
	f.done(l)
}
