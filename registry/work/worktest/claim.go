package worktest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func claimTests() tests {
	return tests{
		"a_claim_starts_an_attempt":                         claimStarts,
		"batch_acquire":                                     batchAcquire,
		"acquire_lowest_priority_job":                       acquireLowestPriority,
		"R20_age_beats_priority_in_the_end":                 ageBeatsPriority,
		"R20_any_hint_gives_the_best_item":                  anyHintGivesBest,
		"reasons":                                           claimReasons,
		"R09_a_repeated_request_gets_the_same_attempt":      repeatedClaim,
		"R09_a_late_repeat_starts_nothing":                  lateRepeat,
		"a_request_needs_an_id":                             requestNeedsID,
		"R26_every_item_has_a_key_of_its_own_for_its_notes": noteKeys,
		"I3_racing_claims_get_each_item_once":               claimRace,
	}
}

func claimStarts(f *fixture) {
	id := f.Submit()
	f.Clock.Pass(time.Second)
	c := f.Take(registry.Expand, id)
	if c.Lease != (registry.Lease{ItemID: id, N: 1}) || c.Item.ID != id || c.Item.Status != registry.Running || c.Item.Attempt != 1 {
		f.Fatalf("claim %+v of %+v", c.Lease, c.Item)
	}
	if c.Item.State != registry.StateProcessing || len(c.Item.Spec) == 0 {
		f.Errorf("claimed item: state %s, spec %s", c.Item.State, c.Item.Spec)
	}
	as := f.AttemptsOf(id)
	if len(as) != 1 || as[0].Worker != "worker-1" || as[0].Stage != registry.Expand || as[0].FinishedAt != nil ||
		!as[0].StartedAt.Equal(f.Clock.Now()) || !as[0].LeaseUntil.Equal(f.Clock.Now().Add(registrytest.Lease)) {
		f.Errorf("attempts %+v", as)
	}
	if got := f.Events(id); len(got) != 2 || got[1] != string(registry.ActClaim) {
		f.Errorf("events=%v", got)
	}
}

func batchAcquire(f *fixture) {
	first, second := f.Submit(), f.Submit()
	for _, want := range []string{first, second} {
		if got := f.Take(registry.Expand, want).Item.ID; got != want {
			f.Errorf("got %s, want %s", got, want)
		}
	}
	if got := f.Refused(registry.Expand, first).Reason; got != registry.ReasonRunningElsewhere {
		f.Errorf("third claim: %s", got)
	}
}

func acquireLowestPriority(f *fixture) {
	five, two := 5, 2
	with := func(p *int) func(*registry.Submission) { return func(s *registry.Submission) { s.Priority = p } }
	a := f.Submit(with(&five))
	b := f.Submit(with(&five))
	urgent := f.Submit(with(&two))
	for i, want := range []string{urgent, a, b} {
		if got := f.Take(registry.Expand, a).Item.ID; got != want {
			f.Errorf("claim %d got %s, want %s", i, got, want)
		}
	}
}

func ageBeatsPriority(f *fixture) {
	large, small := 90, 0
	old := f.Submit(func(s *registry.Submission) { s.Priority = &large })
	f.Clock.Pass(24 * time.Hour)
	f.Submit(func(s *registry.Submission) { s.Priority = &small })
	if got := f.Take(registry.Expand, "").Item.ID; got != old {
		f.Error("an item that waited for a day was passed by a new one")
	}
}

func anyHintGivesBest(f *fixture) {
	best, settled := f.Submit(), f.Submit()
	f.FailItem(settled, registry.ContentFault)
	job := f.Job(registry.Download)
	for _, hint := range []string{settled, "unknown", job, ""} {
		c := f.Take(registry.Expand, hint)
		if c.Item.ID != best {
			f.Errorf("hint %q gave %s, want the best item", hint, c.Item.ID)
		}
		f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
	}
}

func claimReasons(f *fixture) {
	batch, jobs := f.Batch(1)
	check := func(stage registry.Stage, id string, want registry.Reason) {
		f.Helper()
		if got := f.Refused(stage, id); got.Reason != want {
			f.Errorf("claim of %s at %s: %s, want %s", id, stage, got.Reason, want)
		}
	}
	check(registry.Report, batch, registry.ReasonBlocked)
	check(registry.Download, jobs[0], registry.ReasonWrongStage)
	check(registry.Download, "unknown", registry.ReasonSettled)
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[0], Reason: "look", Actor: "admin"}))
	check(registry.Estimate, jobs[0], registry.ReasonHeld)
	f.Must(f.Store.RemoveHold(f.Context(), registry.HoldItem, jobs[0], "admin"))
	c := f.TakeItem(jobs[0])
	check(registry.Estimate, jobs[0], registry.ReasonRunningElsewhere)
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeRetry, Delay: time.Minute, Error: "no"})
	f.Clock.Pass(20 * time.Second)
	check(registry.Estimate, jobs[0], registry.ReasonNotDue)
	if got := f.Refused(registry.Estimate, jobs[0]).After; got != 40*time.Second {
		f.Errorf("after=%v, want 40s", got)
	}
	f.Clock.Pass(40 * time.Second)
	f.FailItem(jobs[0], registry.ContentFault)
	check(registry.Estimate, jobs[0], registry.ReasonSettled)
}

func repeatedClaim(f *fixture) {
	id := f.Submit()
	f.Submit()
	r := f.Request(registry.Expand, id)
	first, err := f.Store.Claim(f.Context(), r)
	f.Must(err)
	for range 3 {
		again, err := f.Store.Claim(f.Context(), r)
		f.Must(err)
		if again.Lease != first.Lease || again.Item.ID != first.Item.ID {
			f.Errorf("repeat got %+v, want %+v", again.Lease, first.Lease)
		}
	}
	if got := f.Item(id).Attempt; got != 1 {
		f.Errorf("attempt=%d, want 1", got)
	}
}

func lateRepeat(f *fixture) {
	id := f.Submit()
	r := f.Request(registry.Expand, id)
	c, err := f.Store.Claim(f.Context(), r)
	f.Must(err)
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
	_, err = f.Store.Claim(f.Context(), r)
	var refused *registry.NotClaimable
	if !errors.As(err, &refused) {
		f.Errorf("a request whose attempt is over: %v, want a refusal", err)
	}
	if it := f.Item(id); it.Status != registry.Pending || it.Attempt != 1 {
		f.Errorf("the late repeat left it %s with attempt %d", it.Status, it.Attempt)
	}
	if got := f.Take(registry.Expand, id).Lease.N; got != 2 {
		f.Errorf("the next request got attempt %d", got)
	}
}

func requestNeedsID(f *fixture) {
	id := f.Submit()
	r := f.Request(registry.Expand, id)
	r.RequestID = ""
	if _, err := f.Store.Claim(f.Context(), r); err == nil {
		f.Error("a claim that cannot be told from another one was granted")
	}
}

func claimRace(f *fixture) {
	const items, claimers = 20, 50
	f.Batch(items)
	var mu sync.Mutex
	got := map[string]int{}
	refusals := 0
	var all sync.WaitGroup
	for i := range claimers {
		all.Go(func() {
			r := f.Request(registry.Estimate, "")
			r.Worker = fmt.Sprintf("worker-%d", i)
			c, err := f.Store.Claim(f.Context(), r)
			var refused *registry.NotClaimable
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				got[c.Item.ID]++
			case errors.As(err, &refused):
				refusals++
			default:
				f.Error(err)
			}
		})
	}
	all.Wait()
	if len(got) != items || refusals != claimers-items {
		f.Errorf("%d items were claimed and %d claims refused", len(got), refusals)
	}
	for id, n := range got {
		if n != 1 {
			f.Errorf("item %s was claimed %d times", id, n)
		}
	}
}

// noteKeys: all attempts of an item get the same key, also when a claim is repeated. No two items
// share a key.
func noteKeys(f *fixture) {
	one, two := f.Submit(), f.Submit()
	r := f.Request(registry.Expand, one)
	first, err := f.Store.Claim(f.Context(), r)
	f.Must(err)
	again, err := f.Store.Claim(f.Context(), r)
	f.Must(err)
	other := f.Take(registry.Expand, two)
	f.Settle(registry.Settlement{Lease: first.Lease, Outcome: registry.OutcomeReleased})
	next := f.TakeItem(one)
	if len(first.NoteKey) < 32 || !bytes.Equal(first.NoteKey, again.NoteKey) || !bytes.Equal(first.NoteKey, next.NoteKey) {
		f.Errorf("keys of one item: %x, %x, %x", first.NoteKey, again.NoteKey, next.NoteKey)
	}
	if bytes.Equal(first.NoteKey, other.NoteKey) {
		f.Error("two items have one key")
	}
}
