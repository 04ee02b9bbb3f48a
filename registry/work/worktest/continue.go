package worktest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func continueTests() tests {
	return tests{
		"an_item_that_continues_is_as_one_that_was_claimed": continuesAsClaimed,
		"only_what_a_claim_would_get_continues":             continuesOnlyInTurn,
		"many_continue_together":                            continueTogether,
		"a_collection_continues_within_its_slots":           continueWithinShares,
		"a_collection_does_not_get_ahead_of_another":        continueBesideOthers,
		"an_item_that_is_locked_out_does_not_continue":      lockedDoesNotContinue,
		"R09_a_repeated_settlement_gets_the_same_claim":     repeatedContinuation,
		"R09_a_lost_attempt_does_not_continue":              lostDoesNotContinue,
	}
}

// settleAndClaim settles an attempt as done and asks for the item's next one. The test ends if the
// store is not in this process, since such a store cannot do that.
func (f *fixture) settleAndClaim(l registry.Lease, next registry.ClaimRequest) (registry.Verdict, *registry.Claim, error) {
	f.Helper()
	return f.continuing().SettleAndClaim(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeDone, MaxAttempts: registrytest.Attempts}, next)
}

func (f *fixture) continuing() registry.Continuing {
	f.Helper()
	s, ok := f.Store.(registry.Continuing)
	if !ok {
		f.Skip("the store is in another process")
	}
	return s
}

// goesOn settles an attempt, whose item must continue at a stage.
func (f *fixture) goesOn(l registry.Lease, stage registry.Stage) registry.Claim {
	f.Helper()
	v, c, err := f.settleAndClaim(l, f.Request(stage, l.ItemID))
	f.Must(err)
	if c == nil || v.Stage != stage || v.Status != registry.Pending || c.Lease != (registry.Lease{ItemID: l.ItemID, N: l.N + 1}) {
		f.Fatalf("verdict %+v, claim %+v; want that item %s continues at %s", v, c, l.ItemID, stage)
	}
	return *c
}

// stays settles an attempt, whose item must wait at a stage.
func (f *fixture) stays(l registry.Lease, r registry.ClaimRequest, stage registry.Stage) {
	f.Helper()
	v, c, err := f.settleAndClaim(l, r)
	f.Must(err)
	if c != nil || v.Stage != stage || v.Status != registry.Pending {
		f.Fatalf("verdict %+v, claim %+v; want that item %s waits at %s", v, c, l.ItemID, stage)
	}
	if it := f.Item(l.ItemID); it.Stage != stage || it.Status != registry.Pending || it.Attempt != l.N {
		f.Errorf("item %s at %s, attempt %d", it.Status, it.Stage, it.Attempt)
	}
}

func continuesAsClaimed(f *fixture) {
	f.continuing()
	_, jobs := f.Batch(2)
	ordinary, short := f.TakeItem(jobs[0]), f.TakeItem(jobs[1])
	key := short.NoteKey
	type history struct {
		Item     registry.WorkItem
		Events   []string
		Attempts []registry.Attempt
	}
	was := func(id string) (h history) {
		h = history{f.Item(id), f.Events(id), f.AttemptsOf(id)}
		h.Item.ID, h.Item.Row, h.Item.Line, h.Item.Name, h.Item.Spec = "", 0, 0, "", nil
		for i := range h.Attempts {
			h.Attempts[i].ItemID = ""
		}
		return h
	}
	for _, stage := range []registry.Stage{registry.Provision, registry.Download, registry.Process, registry.Record, registry.Notify} {
		f.Done(ordinary.Lease)
		ordinary = f.Take(stage, jobs[0])
		f.Offered(1) // answers nothing
		short = f.goesOn(short.Lease, stage)
		if diff := cmp.Diff(was(jobs[0]), was(jobs[1])); diff != "" {
			f.Errorf("at %s: (-claimed +continued)\n%s", stage, diff)
		}
		if diff := cmp.Diff(f.Item(jobs[1]), short.Item); diff != "" {
			f.Errorf("at %s: the claim differs from the item: (-item +claim)\n%s", stage, diff)
		}
		if !slices.Equal(short.NoteKey, key) {
			f.Errorf("at %s: another key for the item's notes", stage)
		}
		if got := f.Offered(10); len(got) > 0 {
			f.Errorf("%v have messages although they run", got)
		}
	}
	f.Done(ordinary.Lease)
	f.Done(short.Lease)
	for _, id := range jobs {
		f.State(id, registry.StateCompleted)
	}
	f.stays(f.TakeItem(f.Submit()).Lease, f.Request(registry.Report, ""), registry.Report)
}

func continuesOnlyInTurn(f *fixture) {
	f.continuing()
	hold := func(scope registry.HoldScope, key string) func(string) func() {
		return func(string) func() {
			f.Hold(scope, key)
			return func() { f.Release(scope, key) }
		}
	}
	nothing := func() {}
	for name, before := range map[string]func(id string) (after func()){
		"a hold on everything":     hold(registry.HoldAll, ""),
		"a hold on deposits":       hold(registry.HoldIngest, ""),
		"a hold on the stage":      hold(registry.HoldStage, string(registry.Provision)),
		"a hold on the collection": hold(registry.HoldCollection, registrytest.Mnemonic),
		"a hold on the volume":     hold(registry.HoldVolume, registry.DefaultStaging),
		"a hold on the worker":     hold(registry.HoldWorker, "worker-1"),
		"a hold on the item": func(id string) func() {
			f.Hold(registry.HoldItem, id)
			return func() { f.Release(registry.HoldItem, id) }
		},
		"a hold on its batch": func(id string) func() {
			f.Hold(registry.HoldBatch, f.Item(id).ParentID)
			return func() { f.Release(registry.HoldBatch, f.Item(id).ParentID) }
		},
		"another item that is ready": func(string) func() {
			f.Job(registry.Provision)
			return nothing
		},
		"another collection with a ready item": func(string) func() {
			other := f.Unique("other")
			f.Collections(other)
			f.Submit(func(s *registry.Submission) { s.Collection = other })
			return nothing
		},
		"another item that became due": func(string) func() {
			c := f.TakeItem(f.Job(registry.Provision))
			f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeRetry, Delay: time.Minute, Error: "no"})
			f.Clock.Pass(time.Minute)
			return nothing
		},
	} {
		c := f.TakeItem(f.Job(registry.Estimate))
		after := before(c.Item.ID)
		f.stays(c.Lease, f.Request(registry.Provision, c.Item.ID), registry.Provision)
		after()
		got := f.TakeItem(c.Item.ID)
		if got.Lease.N != c.Lease.N+1 {
			f.Errorf("%s: then attempt %d, want %d", name, got.Lease.N, c.Lease.N+1)
		}
		f.Settle(registry.Settlement{Lease: got.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "enough"})
		for _, it := range f.All(registry.ItemQuery{Stage: registry.Provision, Status: registry.Pending}) {
			f.Command(it.ID, registry.ActCancel, "") // out of the next case's way
		}
	}
	c := f.TakeItem(f.Job(registry.Estimate))
	f.stays(c.Lease, f.Request(registry.Download, c.Item.ID), registry.Provision) // a stage that is not its next
	c = f.TakeItem(c.Item.ID)
	v, got, err := f.continuing().SettleAndClaim(f.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased}, f.Request(registry.Download, c.Item.ID))
	f.Must(err)
	if got != nil || v.Stage != registry.Provision {
		f.Errorf("a released item: verdict %+v, claim %+v", v, got)
	}
	r := f.Request(registry.Download, c.Item.ID)
	r.RequestID = ""
	_, _, err = f.settleAndClaim(f.TakeItem(c.Item.ID).Lease, r)
	f.Is(err, registry.ErrInvalid)
}

func continueTogether(f *fixture) {
	f.continuing()
	_, jobs := f.Batch(30)
	var all sync.WaitGroup
	errs := make(chan error, len(jobs))
	for _, id := range jobs {
		c := f.TakeItem(id)
		all.Go(func() {
			for _, stage := range []registry.Stage{registry.Provision, registry.Download, registry.Process, registry.Record, registry.Notify} {
				_, got, err := f.settleAndClaim(c.Lease, f.Request(stage, c.Item.ID))
				if err == nil && got == nil {
					var other registry.Claim
					other, err = f.Store.Claim(f.Context(), f.Request(stage, c.Item.ID)) // perhaps another's item
					got = &other
				}
				if err != nil {
					errs <- fmt.Errorf("at %s: %w", stage, err)
					return
				}
				c = *got
			}
			_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
			errs <- err
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		f.Must(err)
	}
	for _, id := range jobs {
		f.State(id, registry.StateCompleted)
		if as := f.AttemptsOf(id); len(as) != 6 {
			f.Errorf("job %s had %d attempts, want 6", id, len(as))
		}
	}
}

func continueWithinShares(f *fixture) {
	f.continuing()
	a := f.Unique("a")
	f.Collections(a)
	many := f.WaitingAt(registry.Provision, a, 3, false)
	f.Announce(registry.Download, 4, 2)
	var claims []registry.Claim
	for _, id := range many {
		claims = append(claims, f.TakeItem(id))
	}
	f.goesOn(claims[0].Lease, registry.Download)
	running := f.goesOn(claims[1].Lease, registry.Download)
	f.stays(claims[2].Lease, f.Request(registry.Download, many[2]), registry.Download)
	f.crowded(registry.Download, many[2])
	f.Done(running.Lease)
	f.Take(registry.Download, many[2])
}

// continueBesideOthers: while two collections wait, the items of one continue unless the other has
// fewer running.
func continueBesideOthers(f *fixture) {
	f.continuing()
	c := f.Collections(f.Unique("a"), f.Unique("b"))
	a, b := f.WaitingAt(registry.Estimate, c[0], 3, false), f.WaitingAt(registry.Estimate, c[1], 3, false)
	stays := func(l registry.Lease) registry.Lease {
		f.stays(l, f.Request(registry.Provision, l.ItemID), registry.Provision)
		return f.TakeItem(l.ItemID).Lease
	}
	first, second := f.TakeItem(a[0]).Lease, f.TakeItem(a[1]).Lease
	first = stays(first)
	beside := f.TakeItem(b[0]).Lease
	stays(second)
	f.goesOn(beside, registry.Provision)
	f.TakeItem(b[1])
	f.goesOn(first, registry.Download)
}

func lockedDoesNotContinue(f *fixture) {
	f.continuing()
	named := func(s *registry.Submission) { s.Spec.LocalIDs = []string{"x"} }
	var claims []registry.Claim
	for range 2 {
		batch := f.Submit(named)
		c := f.TakeItem(batch)
		jobs := registrytest.NewJobs(1)
		jobs[0].Spec.LocalIDs = []string{"x"}
		_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
		f.Must(err)
		f.Done(c.Lease)
		id := f.Children(batch)[0]
		f.Bring(id, registry.Download)
		claims = append(claims, f.TakeItem(id))
	}
	second := f.Request(registry.Process, claims[1].Item.ID)
	f.stays(claims[1].Lease, second, registry.Process) // the first was submitted earlier
	if got := f.Refused(registry.Process, claims[1].Item.ID).Reason; got != registry.ReasonLocked {
		f.Errorf("refused for %s, want locked", got)
	}
	f.goesOn(claims[0].Lease, registry.Process)
}

func repeatedContinuation(f *fixture) {
	f.continuing()
	c := f.TakeItem(f.Job(registry.Estimate))
	r := f.Request(registry.Provision, c.Item.ID)
	v, first, err := f.settleAndClaim(c.Lease, r)
	f.Must(err)
	for range 2 {
		again, got, err := f.settleAndClaim(c.Lease, r)
		f.Must(err)
		if diff := cmp.Diff(first, got); diff != "" || again != v {
			f.Errorf("verdict %+v, want %+v; claim (-first +repeat)\n%s", again, v, diff)
		}
	}
	f.Done(first.Lease)
	again, got, err := f.settleAndClaim(c.Lease, r)
	f.Must(err)
	if got != nil || again != v {
		f.Errorf("after the attempt: verdict %+v, claim %+v", again, got)
	}
	if as := f.AttemptsOf(c.Item.ID); len(as) != int(first.Lease.N) {
		f.Errorf("%d attempts, want %d", len(as), first.Lease.N)
	}
}

func lostDoesNotContinue(f *fixture) {
	f.continuing()
	c := f.TakeItem(f.Job(registry.Estimate))
	f.Sweep(2 * registrytest.Lease)
	f.Clock.Pass(time.Hour)
	_, got, err := f.settleAndClaim(c.Lease, f.Request(registry.Provision, c.Item.ID))
	if !errors.Is(err, registry.ErrClaimLost) || got != nil {
		f.Errorf("claim %+v, %v; want that the first claim is lost", got, err)
	}
	if it := f.Item(c.Item.ID); it.Stage != registry.Estimate || it.Status != registry.Pending {
		f.Errorf("item %s at %s", it.Status, it.Stage)
	}
}
