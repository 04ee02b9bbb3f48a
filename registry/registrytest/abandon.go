package registrytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func abandonTests() []test {
	return []test{
		{"R01_two_people_abandon_a_version", abandoned},
		{"R01_nobody_abandons_alone", abandonTwoPeople},
		{"R01_nobody_agrees_to_what_was_not_shown", abandonShown},
		{"R01_nobody_abandons_in_bulk", abandonBulk},
		{"R01_a_requeue_takes_it_back", abandonWithdrawn},
		{"R01_only_what_two_people_decided_is_abandoned", abandonUndecided},
	}
}

// stuck is a job that has announced a version and failed.
func (f *fixture) stuck() (id, ark string) {
	f.Helper()
	c := f.processing(1)[0]
	ark = f.locks(c.Lease, f.unique("object")).ARK
	f.intend(c.Lease, ark, 1, `{"files":1}`)
	_, err := f.SaveResult(f.Context(), c.Lease, "plan", json.RawMessage(`{"files":1}`))
	f.must(err)
	f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	return c.Item.ID, ark
}

// wantsAbandoned has a person ask for a version to be abandoned, or agree, knowing the consequences.
func (f *fixture) wantsAbandoned(person, id string) (registry.WorkItem, error) {
	f.Helper()
	return f.saysAbandon(person, id, f.asking(id))
}

// saysAbandon has a person confirm that a version is abandoned, who agrees to a request, or asks for it.
func (f *fixture) saysAbandon(person, id, agreesTo string) (registry.WorkItem, error) {
	f.Helper()
	return f.by(person).Command(f.Context(), registry.Command{
		ItemID: id, Act: registry.ActAbandon, Reason: "staging is lost", Actor: person, Confirmed: true, AgreesTo: agreesTo,
	})
}

// asking is what somebody else has asked for an item and still waits; "" for nothing.
func (f *fixture) asking(id string) string {
	f.Helper()
	a, ok := f.item(id).Abandonment()
	if !ok || !a.Waits(f.clock.now()) {
		return ""
	}
	return a.Request()
}

// agreed has two people abandon the version of a stuck job, and a worker take the job.
func (f *fixture) agreed(id string) registry.Lease {
	f.Helper()
	_, err := f.wantsAbandoned(asker, id)
	f.must(err)
	_, err = f.wantsAbandoned(approver, id)
	f.must(err)
	return f.takeItem(id).Lease
}

func (f *fixture) abandonIntent(l registry.Lease, ark string) error {
	_, err := f.Intend(f.Context(), l, registry.Intent{ObjectID: ark, Version: 1, Abandon: true, Forget: []string{"plan"}})
	return err
}

// abandoned: what was announced is forgotten whole, and the job and its object are as if it never had been.
func abandoned(f *fixture) {
	id, ark := f.stuck()
	l := f.agreed(id)
	it := f.item(id)
	if a, ok := it.Abandonment(); !ok || a.AskedBy != asker || a.ApprovedBy != approver || a.Reason != "staging is lost" || it.Stage != registry.Process {
		f.Errorf("%+v at %s", a, it.Stage)
	}
	f.must(f.RecordFiles(f.Context(), l, ark, 1, []registry.File{file(aFile)}))
	f.must(f.abandonIntent(l, ark))
	f.must(f.abandonIntent(l, ark)) // a repeat
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "abandoned"})
	it = f.item(id)
	if _, left := it.Results["plan"]; left || it.Commitment != registry.Uncommitted || slices.Contains(it.AllowedActs, registry.ActAbandon) {
		f.Errorf("%q, allows %v, results %s", it.Commitment, it.AllowedActs, it.Results)
	}
	if a, _ := it.Abandonment(); a.DoneAt == nil {
		f.Errorf("%+v", a)
	}
	for _, kind := range []string{string(registry.ActAbandon), "abandon-approved", "abandoned"} {
		if es := f.events(id); !slices.Contains(es, kind) {
			f.Errorf("no event %s: %v", kind, es)
		}
	}
	f.command(id, registry.ActRequeue, "")
	if _, ok := f.item(id).Abandonment(); ok {
		f.Error("the requeued job has it abandoned still")
	}
	l = f.takeItem(id).Lease
	f.locks(l, "y") // its name stays
	if got := f.intend(l, ark, 1, `{"files":2}`); string(got.Plan) != `{"files":2}` {
		f.Errorf("announced %s, want the new plan", got.Plan)
	}
	f.record(l, ark, 1, file(aFile))
	o, err := f.Object(f.Context(), ark)
	f.must(err)
	if o.Head != 1 || o.Versions[0].ItemID != id {
		f.Errorf("%+v", o)
	}
}

// abandonTwoPeople: neither the one who asked agrees, nor somebody whose token that one has made; asking needs a reason, and expires.
func abandonTwoPeople(f *fixture) {
	id, _ := f.stuck()
	_, err := f.by(asker).Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActAbandon, Actor: asker, Confirmed: true})
	f.is(err, registry.ErrInvalid)
	f.says(f.unconfirmed(id, registry.ActAbandon), "another admin must agree")
	_, err = f.wantsAbandoned(asker, id)
	f.must(err)
	_, err = f.wantsAbandoned(asker, id)
	f.is(err, registry.ErrSamePerson)
	f.must(f.AddToken(f.Context(), registry.Token{ID: "2", Hash: "2", Name: maker, Role: registry.RoleAdmin, CreatedBy: asker}))
	_, err = f.wantsAbandoned(maker, id)
	f.is(err, registry.ErrSamePerson)
	if it := f.item(id); it.Status != registry.Failed || it.Commitment != registry.Announced {
		f.Errorf("one person alone made it %s, %q", it.Status, it.Commitment)
	}
	f.says(f.unconfirmed(id, registry.ActAbandon), asker, "staging is lost", "is given up")
	f.clock.pass(registry.AskingLasts)
	it, err := f.wantsAbandoned(approver, id)
	f.must(err)
	if a, _ := it.Abandonment(); it.Status != registry.Failed || a.AskedBy != approver || a.ApprovedBy != "" {
		f.Errorf("after it expired: %s, %+v", it.Status, a)
	}
}

// abandonShown: two who ask at once have not agreed, and a consent is to one asking: that of before is none to the next.
func abandonShown(f *fixture) {
	id, _ := f.stuck()
	unsure := func(_ registry.WorkItem, err error) {
		f.Helper()
		f.says(fmt.Sprint(err), "needs a confirmation")
		if it := f.item(id); it.Status != registry.Failed {
			f.Errorf("it is %s", it.Status)
		}
	}
	_, err := f.wantsAbandoned(asker, id)
	f.must(err)
	first := f.asking(id)
	unsure(f.saysAbandon(approver, id, ""))
	f.command(id, registry.ActRequeue, "")
	f.fail(id, registry.SystemFault)
	unsure(f.saysAbandon(approver, id, first)) // nobody asks any more
	f.clock.pass(time.Second)
	_, err = f.wantsAbandoned(asker, id)
	f.must(err)
	unsure(f.saysAbandon(approver, id, first))
	it, err := f.saysAbandon(approver, id, f.asking(id))
	f.must(err)
	if it.Status != registry.Pending {
		f.Errorf("it is %s", it.Status)
	}
}

// abandonBulk: who agrees must have seen to what.
func abandonBulk(f *fixture) {
	id, _ := f.stuck()
	_, err := f.wantsAbandoned(asker, id)
	f.must(err)
	_, err = f.Bulk(f.Context(), registry.BulkRequest{
		Match: match("state:failed"), Act: registry.ActAbandon, Reason: "all", Actor: approver, Confirmed: true,
	})
	f.is(err, registry.ErrInvalid)
	f.says(fmt.Sprint(err), "by itself")
}

// abandonWithdrawn: who has the version rolled forward takes back what was asked, or agreed and not done.
func abandonWithdrawn(f *fixture) {
	id, ark := f.stuck()
	_, err := f.wantsAbandoned(asker, id)
	f.must(err)
	f.command(id, registry.ActRequeue, "")
	if _, ok := f.item(id).Abandonment(); ok || !slices.Contains(f.events(id), "abandon-withdrawn") {
		f.Errorf("asked for still, or no event: %v", f.events(id))
	}
	f.fail(id, registry.SystemFault)
	l := f.agreed(id)
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "visible"})
	_, err = f.wantsAbandoned(asker, id)
	f.must(err) // what was agreed is over: it is asked for anew
	f.command(id, registry.ActRequeue, "")
	l = f.takeItem(id).Lease
	f.is(f.abandonIntent(l, ark), registry.ErrInvalid)
	if got := f.intend(l, ark, 1, `{}`); string(got.Plan) != `{"files":1}` {
		f.Errorf("plan %s, want the one announced", got.Plan)
	}
}

// abandonUndecided: no worker takes an announcement back by itself, nor that of a recorded version, nor after its claim was lost.
func abandonUndecided(f *fixture) {
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	f.intend(c.Lease, ark, 1, `{}`)
	f.is(f.abandonIntent(c.Lease, ark), registry.ErrInvalid)
	f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	l := f.agreed(c.Item.ID)
	f.is(f.abandonIntent(c.Lease, ark), registry.ErrClaimLost)
	f.record(l, ark, 1, file(aFile))
	f.is(f.abandonIntent(l, ark), registry.ErrIntentOpen)
	if o, err := f.Object(f.Context(), ark); err != nil || o.Head != 1 {
		f.Errorf("%+v, %v", o, err)
	}
}
