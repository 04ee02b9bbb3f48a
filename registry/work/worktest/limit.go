package worktest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func limitTests() tests {
	return tests{
		"C6_a_stage_runs_no_more_than_its_limit":       limitOfStage,
		"C6_a_limit_below_what_runs_stops_nothing":     limitStopsNothing,
		"C6_a_limit_holds_for_those_who_claim_at_once": limitOfMany,
		"C6_a_pause_of_a_function_stops_nothing":       pauseStopsNothing,
		"C6_a_freed_slot_wakes_those_who_wait":         limitWakes,
		"C6_a_program_announces_a_limit":               limitAnnounced,
		"a_limit_holds_for_items_that_continue":        limitOfContinued,
		"a_limit_holds_for_express_items":              limitOfExpress,
		"a_limit_holds_for_direct_calls":               limitOfDirect,
		"a_limit_of_a_collection_counts_all_stages":    limitOfCollection,
		"a_full_collection_keeps_no_other_waiting":     limitLetsOthersBy,
		"a_collection_with_weight_has_several_turns":   weighted,
		"weights_count_when_many_are_claimed_at_once":  weightedTogether,
		"a_limit_is_replaced_and_removed":              limitChanges,
		"limits_without_effect_are_refused":            limitRefused,
	}
}

// limit sets the limit of a stage or collection.
func (f *fixture) limit(scope registry.HoldScope, key string, most int) {
	f.Helper()
	f.Must(f.Store.SetLimit(f.Context(), registry.Limit{Scope: scope, Key: key, Most: most, Actor: "admin"}))
}

// tasks adds n tasks of a function to a collection.
func (f *fixture) tasks(function, collection string, n int) (ids []string) {
	f.Helper()
	f.Must(f.Store.Announce(f.Context(), []registry.Function{{Name: function}}))
	for range n {
		it, err := f.Store.AddTask(f.Context(), registry.NewTask{Function: function, Collection: collection})
		f.Must(err)
		ids = append(ids, it.ID)
	}
	return ids
}

// whyLimit checks that why names the limit that keeps an item back.
func (f *fixture) whyLimit(id, sentence string) {
	f.Helper()
	w, err := f.Store.Why(f.Context(), id)
	f.Must(err)
	if w.Reason != registry.ReasonLimit || !strings.Contains(w.Sentence, sentence) {
		f.Errorf("why: %s: %s; want %q", w.Reason, w.Sentence, sentence)
	}
}

func limitOfStage(f *fixture) {
	stage := registry.Run.Of("work")
	ids := f.tasks("work", "", 4)
	f.limit(registry.HoldStage, string(stage), 2)
	running := []registry.Claim{f.Take(stage, ""), f.Take(stage, "")}
	if got := f.Refused(stage, ids[2]); got.Reason != registry.ReasonLimit || got.Again <= 0 {
		f.Errorf("refused for %+v, want the limit, and to come again", got)
	}
	f.whyLimit(ids[2], "the limit of 2 running items at run:work is reached")
	f.Done(running[0].Lease)
	if got := f.Take(stage, "").Item.ID; got != ids[2] {
		f.Errorf("got %s, want the next", got)
	}
	f.Refused(stage, ids[3])
	f.limit(registry.HoldStage, string(stage), 3)
	f.Take(stage, "")
	q, err := f.Store.QueueStatus(f.Context())
	f.Must(err)
	i := slices.IndexFunc(q.Stages, func(s registry.StageQueue) bool { return s.Stage == stage })
	if i < 0 || q.Stages[i].Limit != 3 || q.Stages[i].Running != 3 {
		f.Errorf("status %+v", q.Stages)
	}
}

// limitAnnounced: what a program announces holds until an admin sets another limit, and again when that
// is removed.
func limitAnnounced(f *fixture) {
	stage := registry.Run.Of("work")
	ids := f.tasks("work", "", 5)
	announce := func(most int) {
		f.Helper()
		f.Must(f.Store.Announce(f.Context(), []registry.Function{{Name: "work", Policy: registry.FunctionPolicy{AtOnce: most}}}))
	}
	is := func(most, announced int, actor string) {
		f.Helper()
		all, err := f.Store.Limits(f.Context())
		f.Must(err)
		if len(all) != 1 || all[0].Key != string(stage) || all[0].Most != most || all[0].Announced != announced || all[0].Actor != actor || all[0].At.IsZero() {
			f.Errorf("limits %+v", all)
		}
		q, err := f.Store.QueueStatus(f.Context())
		f.Must(err)
		if i := slices.IndexFunc(q.Stages, func(s registry.StageQueue) bool { return s.Stage == stage }); i < 0 || q.Stages[i].Limit != all[0].AtOnce() {
			f.Errorf("status %+v", q.Stages)
		}
	}
	announce(1)
	is(0, 1, "")
	f.Take(stage, "")
	f.Refused(stage, ids[1])
	f.whyLimit(ids[1], "the limit of 1 running item at run:work is reached")
	if err := f.Store.RemoveLimit(f.Context(), registry.HoldStage, string(stage), "admin"); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("a limit that nobody set was removed: %v", err)
	}
	f.limit(registry.HoldStage, string(stage), 3)
	announce(1) // the program starts again
	is(3, 1, "admin")
	f.Take(stage, "")
	f.Take(stage, "")
	f.Refused(stage, ids[3])
	f.Must(f.Store.RemoveLimit(f.Context(), registry.HoldStage, string(stage), "admin"))
	is(0, 1, "")
	f.Refused(stage, ids[3])
	announce(4)
	is(0, 4, "")
	f.Take(stage, "")
	f.Refused(stage, ids[4])
	announce(0)
	f.Take(stage, "")
	if all, err := f.Store.Limits(f.Context()); err != nil || len(all) > 0 {
		f.Errorf("limits %+v, %v", all, err)
	}
	f.Is(f.Store.Announce(f.Context(), []registry.Function{{Name: "work", Policy: registry.FunctionPolicy{AtOnce: -1}}}), registry.ErrInvalid)

	// So it is with the steps of processes.
	f.Must(f.Store.AnnounceNamespaces(f.Context(), []registry.Namespace{{Name: "curation", Policy: registry.NamespacePolicy{FunctionPolicy: registry.FunctionPolicy{AtOnce: 1}}}}))
	var last registry.Answer
	for _, id := range []string{"a", "b"} {
		var err error
		last, err = f.Store.InitProcess(f.Context(), registry.NewProcess{ProcessKey: registry.ProcessKey{Namespace: "curation", ProcessID: id}})
		f.Must(err)
	}
	f.Take(registry.ProcessStep.Of("curation"), "")
	if got := f.Refused(registry.ProcessStep.Of("curation"), last.ItemID); got.Reason != registry.ReasonLimit {
		f.Errorf("refused for %+v", got)
	}
}

func limitStopsNothing(f *fixture) {
	stage := registry.Run.Of("work")
	f.tasks("work", "", 4)
	running := []registry.Claim{f.Take(stage, ""), f.Take(stage, ""), f.Take(stage, "")}
	f.limit(registry.HoldStage, string(stage), 1)
	for i, c := range running {
		f.Refused(stage, "")
		f.Done(c.Lease)
		if i < len(running)-1 {
			f.Refused(stage, "")
		}
	}
	f.Take(stage, "")
}

// limitOfMany: of many claims at the same time, from many workers, as many get an item as the limits
// of the stage and of the collections say, while others settle.
func limitOfMany(f *fixture) {
	const workers, most, mostOfA = 8, 5, 3
	stage := registry.Run.Of("work")
	a, b := f.Unique("a"), f.Unique("b")
	f.Collections(a, b)
	f.tasks("work", a, 30)
	f.tasks("work", b, 30)
	f.limit(registry.HoldStage, string(stage), most)
	f.limit(registry.HoldCollection, a, mostOfA)
	var all sync.WaitGroup
	var settled, running, runningOfA, tooMany atomic.Int64
	for range workers {
		worker := f.Unique("worker")
		all.Go(func() {
			var mine []registry.Claim
			settle := func() {
				c := mine[0]
				mine = mine[1:]
				running.Add(-1)
				if c.Item.Collection == a {
					runningOfA.Add(-1)
				}
				if _, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone}); err != nil {
					f.Error(err)
				}
				settled.Add(1)
			}
			for settled.Load() < 60 {
				c, err := f.Store.Claim(f.Context(), registry.ClaimRequest{
					RequestID: f.Unique("request"), Stage: stage, Worker: worker, Lease: time.Minute, MaxAttempts: 5,
				})
				var refused *registry.NotClaimable
				switch {
				case errors.As(err, &refused):
					if len(mine) > 0 {
						settle()
					}
					continue
				case err != nil:
					f.Error(err)
					return
				}
				mine = append(mine, c)
				// The counts are of claims that are answered and not yet given back, so never above the truth.
				if running.Add(1) > most {
					tooMany.Add(1)
				}
				if c.Item.Collection == a && runningOfA.Add(1) > mostOfA {
					tooMany.Add(1)
				}
				if len(mine) > 1 {
					settle()
				}
			}
			for len(mine) > 0 {
				settle()
			}
		})
	}
	all.Wait()
	if settled.Load() != 60 || tooMany.Load() > 0 {
		f.Errorf("%d settled; %d claims went beyond a limit", settled.Load(), tooMany.Load())
	}
}

func pauseStopsNothing(f *fixture) {
	stage := registry.Run.Of("work")
	ids := f.tasks("work", "", 2)
	c := f.Take(stage, "")
	f.Hold(registry.HoldStage, string(stage))
	f.Refused(stage, ids[1])
	got, err := f.Store.Renew(f.Context(), registry.RenewRequest{Beats: []registry.Beat{{Lease: c.Lease}}, Lease: time.Minute})
	f.Must(err)
	if len(got.Lost) > 0 {
		f.Errorf("the pause took %v away", got.Lost)
	}
	f.Done(c.Lease)
	f.Refused(stage, ids[1])
	f.Release(registry.HoldStage, string(stage))
	f.Take(stage, "")
}

// limitWakes: whoever waits for work waits while the limit is reached, and is woken by the end of an
// item.
func limitWakes(f *fixture) {
	stage := registry.Run.Of("work")
	f.tasks("work", "", 2)
	f.limit(registry.HoldStage, string(stage), 1)
	c := f.Take(stage, "")
	brief, cancel := context.WithTimeout(f.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := f.Store.AwaitReady(brief, []registry.Stage{stage}); err != nil || got != "" {
		f.Fatalf("%q is ready, %v; want nothing while the limit is reached", got, err)
	}
	ready := make(chan registry.Stage)
	go func() {
		got, err := f.Store.AwaitReady(f.Context(), []registry.Stage{stage})
		if err != nil {
			f.Error(err)
		}
		ready <- got
	}()
	f.Done(c.Lease)
	if got := <-ready; got != stage {
		f.Errorf("%q is ready, want %s", got, stage)
	}
}

func limitOfContinued(f *fixture) {
	jobs := f.WaitingAt(registry.Estimate, registrytest.Mnemonic, 3, false)
	f.limit(registry.HoldStage, string(registry.Provision), 1)
	var continued int
	for range jobs {
		c := f.Take(registry.Estimate, "")
		_, next, err := f.settleAndClaim(c.Lease, f.Request(registry.Provision, c.Item.ID))
		f.Must(err)
		if next != nil {
			continued++
		}
	}
	if continued != 1 {
		f.Errorf("%d items continued, want 1", continued)
	}
	f.Refused(registry.Provision, "")
}

func limitOfExpress(f *fixture) {
	stage := registry.Run.Of("work")
	a, b := f.Unique("a"), f.Unique("b")
	f.Collections(a, b)
	ofA, ofB := f.tasks("work", a, 3), f.tasks("work", b, 1)
	f.limit(registry.HoldCollection, a, 1)
	for _, id := range append(slices.Clone(ofA), ofB...) {
		f.prioritise(id, -1)
	}
	if got := f.turns(stage, 2); !slices.Equal(got, []string{a, b}) {
		f.Errorf("started items of %v", got)
	}
	f.Refused(stage, ofA[1])
	f.whyLimit(ofA[1], "the limit of 1 running item of collection "+a+" is reached")
}

func limitOfDirect(f *fixture) {
	stage := registry.Run.Of("work")
	f.tasks("work", "", 1)
	f.limit(registry.HoldStage, string(stage), 1)
	f.Take(stage, "")
	_, err := f.Store.StartTask(f.Context(), registry.NewTask{Function: "work"}, registry.ClaimRequest{
		RequestID: f.Unique("request"), Worker: "w", Lease: time.Minute, MaxAttempts: 5,
	})
	var refused *registry.NotClaimable
	if !errors.As(err, &refused) || refused.Reason != registry.ReasonLimit {
		f.Errorf("a direct call beyond the limit: %v", err)
	}
}

func limitOfCollection(f *fixture) {
	a, b := f.Unique("a"), f.Unique("b")
	f.Collections(a, b)
	f.limit(registry.HoldCollection, a, 2)
	f.batchIn(a, 3, 5)
	f.batchIn(b, 1, 5)
	f.tasks("work", a, 2)
	f.Take(registry.Run.Of("work"), "")
	if got := f.turns(registry.Estimate, 2); !slices.Contains(got, a) || !slices.Contains(got, b) {
		f.Errorf("turns of %v", got)
	}
	f.Refused(registry.Estimate, "")
	f.Refused(registry.Run.Of("work"), "")
	f.limit(registry.HoldCollection, a, 4)
	f.Take(registry.Run.Of("work"), "")
	f.Take(registry.Estimate, "")
	f.Refused(registry.Estimate, "")
}

func limitLetsOthersBy(f *fixture) {
	stage := registry.Run.Of("work")
	full, other := f.Unique("a"), f.Unique("b")
	f.Collections(full, other)
	f.tasks("work", full, 20)
	f.limit(registry.HoldCollection, full, 1)
	f.Take(stage, "")
	f.tasks("work", other, 3)
	if got := f.turns(stage, 3); !slices.Equal(got, []string{other, other, other}) {
		f.Errorf("turns of %v, want the other collection's", got)
	}
	f.Refused(stage, "")
}

// weighted: of 40 claims, 30 are of the collection with weight 3, three in a row.
func weighted(f *fixture) {
	stage := registry.Run.Of("work")
	a, b := f.Unique("a"), f.Unique("b")
	f.Collections(a, b)
	f.tasks("work", a, 30)
	f.tasks("work", b, 20)
	f.Must(f.Store.SetLimit(f.Context(), registry.Limit{Scope: registry.HoldCollection, Key: a, Weight: 3, Actor: "admin"}))
	got := f.turns(stage, 40)
	for turn := range slices.Chunk(got, 4) {
		if slices.Sort(turn); !slices.Equal(turn, []string{a, a, a, b}) {
			f.Fatalf("turns %v, want three of %s and one of %s in every four", got, a, b)
		}
	}
	if got := f.turns(stage, 2); !slices.Equal(got, []string{b, b}) {
		f.Errorf("turns %v; one alone waits for nobody", got)
	}
}

// weightedTogether: claims that share a transaction get the same shares.
func weightedTogether(f *fixture) {
	const n = 64
	stage := registry.Run.Of("work")
	a, b := f.Unique("a"), f.Unique("b")
	f.Collections(a, b)
	f.tasks("work", a, n)
	f.tasks("work", b, n)
	f.Must(f.Store.SetLimit(f.Context(), registry.Limit{Scope: registry.HoldCollection, Key: a, Weight: 3, Actor: "admin"}))
	var all sync.WaitGroup
	var ofA atomic.Int64
	for range n {
		request := f.Unique("request")
		all.Go(func() {
			c, err := f.Store.Claim(f.Context(), registry.ClaimRequest{RequestID: request, Stage: stage, Worker: "w", Lease: time.Minute, MaxAttempts: 5})
			if err != nil {
				f.Error(err)
			} else if c.Item.Collection == a {
				ofA.Add(1)
			}
		})
	}
	all.Wait()
	// Where a group ends in the middle of a turn, the share is off by less than a turn.
	if got := ofA.Load(); got < n*3/4-8 || got > n*3/4+8 {
		f.Errorf("%d of %d claims are of the collection with weight 3, want about %d", got, n, n*3/4)
	}
}

func limitChanges(f *fixture) {
	stage := string(registry.Run.Of("work"))
	f.limit(registry.HoldStage, stage, 2)
	f.limit(registry.HoldStage, stage, 5)
	all, err := f.Store.Limits(f.Context())
	f.Must(err)
	if len(all) != 1 || all[0].Most != 5 || all[0].Actor != "admin" || all[0].At.IsZero() {
		f.Errorf("limits %+v", all)
	}
	f.Must(f.Store.RemoveLimit(f.Context(), registry.HoldStage, stage, "admin"))
	if err := f.Store.RemoveLimit(f.Context(), registry.HoldStage, stage, "admin"); !errors.Is(err, registry.ErrNotFound) {
		f.Errorf("removed twice: %v", err)
	}
	f.tasks("work", "", 1)
	f.Take(registry.Stage(stage), "")
}

func limitRefused(f *fixture) {
	for _, l := range []registry.Limit{
		{Scope: registry.HoldStage, Key: "nowhere", Most: 1},
		{Scope: registry.HoldStage, Key: "run:work"},
		{Scope: registry.HoldStage, Key: "run:work", Most: 1, Weight: 1},
		{Scope: registry.HoldStage, Key: "run:work", Most: -1},
		{Scope: registry.HoldCollection, Most: 1},
		{Scope: registry.HoldCollection, Key: "a", Weight: registry.MostWeight + 1},
		{Scope: registry.HoldCollection, Key: "a\x00", Most: 1},
		{Scope: registry.HoldItem, Key: "a", Most: 1},
	} {
		if err := f.Store.SetLimit(f.Context(), l); !errors.Is(err, registry.ErrInvalid) {
			f.Errorf("%+v: %v, want ErrInvalid", l, err)
		}
	}
}
