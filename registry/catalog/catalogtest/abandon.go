package catalogtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func abandonTests() tests {
	return tests{
		"R01_two_people_abandon_a_version":              abandoned,
		"R01_nobody_abandons_alone":                     abandonTwoPeople,
		"R01_nobody_agrees_to_what_was_not_shown":       abandonShown,
		"R01_nobody_abandons_in_bulk":                   abandonBulk,
		"R01_a_requeue_takes_it_back":                   abandonWithdrawn,
		"R01_only_what_two_people_decided_is_abandoned": abandonUndecided,
	}
}

// stuck returns a failed job with an announced version.
func (f *fixture) stuck() (id, ark string) {
	f.Helper()
	c := f.Processing(1)[0]
	ark = f.Named(c.Lease, f.Unique("object")).ARK
	f.Intend(c.Lease, ark, 1, `{"files":1}`)
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	return c.Item.ID, ark
}

// agreed makes two people abandon the version of a stuck job, and a worker claim the job.
func (f *fixture) agreed(id string) registry.Lease {
	f.Helper()
	_, err := f.Abandon(registrytest.Asker, id)
	f.Must(err)
	_, err = f.Abandon(registrytest.Approver, id)
	f.Must(err)
	return f.TakeItem(id).Lease
}

func (f *fixture) abandonIntent(l registry.Lease, ark string) error {
	_, err := f.Store.Intend(f.Context(), l, registry.Intent{ObjectID: ark, Version: 1, Abandon: true, Forget: []string{registry.ResultPlan}})
	return err
}

// abandoned: an abandoned version is deleted completely. Job and object are as they were before it.
func abandoned(f *fixture) {
	id, ark := f.stuck()
	l := f.agreed(id)
	it := f.Item(id)
	if a, ok := it.Abandonment(); !ok || a.AskedBy != registrytest.Asker || a.ApprovedBy != registrytest.Approver || a.Reason != "staging is lost" || it.Stage != registry.Process {
		f.Errorf("%+v at %s", a, it.Stage)
	}
	f.Must(f.Store.RecordFiles(f.Context(), l, ark, 1, []registry.File{registrytest.File(registrytest.FilePath)}))
	f.Must(f.abandonIntent(l, ark))
	f.Must(f.abandonIntent(l, ark)) // a repeat
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "abandoned"})
	it = f.Item(id)
	if _, left := it.Results[registry.ResultPlan]; left || it.Commitment != registry.Uncommitted || slices.Contains(it.AllowedActs, registry.ActAbandon) {
		f.Errorf("%q, allows %v, results %s", it.Commitment, it.AllowedActs, it.Results)
	}
	if a, _ := it.Abandonment(); a.DoneAt == nil {
		f.Errorf("%+v", a)
	}
	for _, kind := range []string{string(registry.ActAbandon), "abandon-approved", "abandoned"} {
		if es := f.Events(id); !slices.Contains(es, kind) {
			f.Errorf("no event %s: %v", kind, es)
		}
	}
	f.Command(id, registry.ActRequeue, "")
	if _, ok := f.Item(id).Abandonment(); ok {
		f.Error("the requeued job has it abandoned still")
	}
	l = f.TakeItem(id).Lease
	f.Named(l, "y") // its name stays
	if got := f.Intend(l, ark, 1, `{"files":2}`); string(got.Plan) != `{"files":2}` {
		f.Errorf("announced %s, want the new plan", got.Plan)
	}
	f.Record(l, ark, 1, registrytest.File(registrytest.FilePath))
	o, err := f.Store.Object(f.Context(), ark)
	f.Must(err)
	if o.Head != 1 || o.Versions[0].ItemID != id {
		f.Errorf("%+v", o)
	}
}

// abandonTwoPeople: neither the requester nor the holder of a token that the requester made can
// approve. A request needs a reason and expires.
func abandonTwoPeople(f *fixture) {
	id, _ := f.stuck()
	_, err := f.By(registrytest.Asker).Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActAbandon, Actor: registrytest.Asker, Confirmed: true})
	f.Is(err, registry.ErrInvalid)
	f.Says(f.Unconfirmed(id, registry.ActAbandon), "another admin must agree")
	_, err = f.Abandon(registrytest.Asker, id)
	f.Must(err)
	_, err = f.Abandon(registrytest.Asker, id)
	f.Is(err, registry.ErrSamePerson)
	f.Must(f.Store.AddToken(f.Context(), registry.Token{ID: "2", Hash: "2", Name: registrytest.Maker, Role: registry.RoleAdmin, CreatedBy: registrytest.Asker}))
	_, err = f.Abandon(registrytest.Maker, id)
	f.Is(err, registry.ErrSamePerson)
	if it := f.Item(id); it.Status != registry.Failed || it.Commitment != registry.Announced {
		f.Errorf("one person alone made it %s, %q", it.Status, it.Commitment)
	}
	f.Says(f.Unconfirmed(id, registry.ActAbandon), registrytest.Asker, "staging is lost", "is abandoned")
	f.Clock.Pass(registry.AskingLasts)
	it, err := f.Abandon(registrytest.Approver, id)
	f.Must(err)
	if a, _ := it.Abandonment(); it.Status != registry.Failed || a.AskedBy != registrytest.Approver || a.ApprovedBy != "" {
		f.Errorf("after it expired: %s, %+v", it.Status, a)
	}
}

// abandonShown: two requests at once are no approval. An approval names one request, and is void
// for a later one.
func abandonShown(f *fixture) {
	id, _ := f.stuck()
	unsure := func(_ registry.WorkItem, err error) {
		f.Helper()
		f.Says(fmt.Sprint(err), "needs a confirmation")
		if it := f.Item(id); it.Status != registry.Failed {
			f.Errorf("it is %s", it.Status)
		}
	}
	_, err := f.Abandon(registrytest.Asker, id)
	f.Must(err)
	first := f.AbandonmentAsked(id)
	unsure(f.ConfirmAbandon(registrytest.Approver, id, ""))
	f.Command(id, registry.ActRequeue, "")
	f.FailItem(id, registry.SystemFault)
	unsure(f.ConfirmAbandon(registrytest.Approver, id, first)) // nobody asks any more
	f.Clock.Pass(time.Second)
	_, err = f.Abandon(registrytest.Asker, id)
	f.Must(err)
	unsure(f.ConfirmAbandon(registrytest.Approver, id, first))
	it, err := f.ConfirmAbandon(registrytest.Approver, id, f.AbandonmentAsked(id))
	f.Must(err)
	if it.Status != registry.Pending {
		f.Errorf("it is %s", it.Status)
	}
}

// abandonBulk: an approval must name the request that its author saw.
func abandonBulk(f *fixture) {
	id, _ := f.stuck()
	_, err := f.Abandon(registrytest.Asker, id)
	f.Must(err)
	_, err = f.Store.Bulk(f.Context(), registry.BulkRequest{
		Match: registrytest.Match("state:failed"), Act: registry.ActAbandon, Reason: "all", Actor: registrytest.Approver, Confirmed: true,
	})
	f.Is(err, registry.ErrInvalid)
	f.Says(fmt.Sprint(err), "by itself")
}

// abandonWithdrawn: a requeue withdraws the request or the approval, and the version is rolled
// forward.
func abandonWithdrawn(f *fixture) {
	id, ark := f.stuck()
	_, err := f.Abandon(registrytest.Asker, id)
	f.Must(err)
	f.Command(id, registry.ActRequeue, "")
	if _, ok := f.Item(id).Abandonment(); ok || !slices.Contains(f.Events(id), "abandon-withdrawn") {
		f.Errorf("asked for still, or no event: %v", f.Events(id))
	}
	f.FailItem(id, registry.SystemFault)
	l := f.agreed(id)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "visible"})
	_, err = f.Abandon(registrytest.Asker, id)
	f.Must(err) // what was agreed is over: it is asked for anew
	f.Command(id, registry.ActRequeue, "")
	l = f.TakeItem(id).Lease
	f.Is(f.abandonIntent(l, ark), registry.ErrInvalid)
	if got := f.Intend(l, ark, 1, `{}`); string(got.Plan) != `{"files":1}` {
		f.Errorf("plan %s, want the one announced", got.Plan)
	}
}

// abandonUndecided: a worker cannot abandon a version without the approval, nor a recorded version,
// nor after it lost its claim.
func abandonUndecided(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	f.Intend(c.Lease, ark, 1, `{}`)
	f.Is(f.abandonIntent(c.Lease, ark), registry.ErrInvalid)
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	l := f.agreed(c.Item.ID)
	f.Is(f.abandonIntent(c.Lease, ark), registry.ErrClaimLost)
	f.Record(l, ark, 1, registrytest.File(registrytest.FilePath))
	f.Is(f.abandonIntent(l, ark), registry.ErrIntentOpen)
	if o, err := f.Store.Object(f.Context(), ark); err != nil || o.Head != 1 {
		f.Errorf("%+v, %v", o, err)
	}
}
