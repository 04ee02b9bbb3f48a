package worktest

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func turnTests() tests {
	return tests{
		"ten_jobs_do_not_wait_for_two_thousand":           fewBesideMany,
		"three_collections_take_turns":                    takeTurns,
		"who_comes_and_goes_gains_nothing":                comeAndGo,
		"a_held_collection_takes_no_turn":                 heldTakesNoTurn,
		"a_large_held_batch_keeps_nobody_waiting":         heldBatchAside,
		"a_new_priority_counts_at_the_very_next_claim":    priorityAtOnce,
		"a_priority_changes_at_any_stage":                 priorityAtAnyStage,
		"express_goes_before_everything":                  expressFirst,
		"express_stays_express":                           expressStays,
		"only_operators_make_express":                     expressOnlyByCommand,
		"R20_after_a_hundred_minutes_the_last_goes_first": ageing,
		"priorities_of_100_and_more":                      largePriorities,
		"R20_nothing_starves":                             nothingStarves,
	}
}

// batchIn submits a batch to a collection, expands it into n jobs with a priority, and returns them
// in row order.
func (f *fixture) batchIn(collection string, n, priority int) []string {
	f.Helper()
	id := f.Submit(func(s *registry.Submission) { s.Collection = collection })
	c := f.TakeItem(id)
	jobs := registrytest.NewJobs(n)
	for i := range jobs {
		jobs[i].Priority = priority
	}
	for part := range slices.Chunk(jobs, 500) {
		_, err := f.Store.AddJobs(f.Context(), c.Lease, part)
		f.Must(err)
	}
	f.Done(c.Lease)
	return f.Children(id)
}

func (f *fixture) prioritise(id string, p int) registry.WorkItem {
	f.Helper()
	it, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActPriority, Priority: &p, Actor: "admin"})
	f.Must(err)
	return it
}

// turns claims n items of a stage and returns their collections.
func (f *fixture) turns(stage registry.Stage, n int) []string {
	f.Helper()
	var got []string
	for range n {
		got = append(got, f.Take(stage, "").Item.Collection)
	}
	return got
}

func fewBesideMany(f *fixture) {
	const window, most = 2, 2000
	f.Collections("few")
	f.batchIn(registrytest.Mnemonic, most, 5)
	// The relay and one worker: a claim for each message.
	messages := f.Offered(window)
	if len(messages) != window {
		f.Fatalf("%d messages, want a window of %d", len(messages), window)
	}
	few := f.batchIn("few", 10, 99)
	claims := 0
	for served := 0; served < len(few); claims++ {
		if messages = append(messages, f.Offered(window)...); len(messages) == 0 {
			f.Fatalf("no message is on its way after %d claims", claims)
		}
		c := f.Take(registry.Estimate, messages[0])
		messages = messages[1:]
		if c.Item.Collection == "few" {
			served++
		}
		f.Done(c.Lease)
	}
	if claims > 2*len(few)+window {
		f.Errorf("ten jobs beside %d took %d claims", most, claims)
	}
}

func takeTurns(f *fixture) {
	names := append(f.Collections("b", "c"), registrytest.Mnemonic)
	for _, name := range names {
		f.batchIn(name, 4, 5)
	}
	got := f.turns(registry.Estimate, 12)
	for round := range slices.Chunk(got, 3) {
		if slices.Sort(round); !slices.Equal(round, names) {
			f.Errorf("turns %v, want each collection once in three", got)
		}
	}
	f.Refused(registry.Estimate, "")
}

func comeAndGo(f *fixture) {
	f.Collections("steady")
	f.batchIn("steady", 20, 5)
	served := 0
	for range 20 {
		f.batchIn(registrytest.Mnemonic, 1, 0) // always just one, which is there again as soon as it was taken
		if f.Take(registry.Estimate, "").Item.Collection == "steady" {
			served++
		}
	}
	if served < 9 {
		f.Errorf("the steady collection had %d turns of 20", served)
	}
}

func heldTakesNoTurn(f *fixture) {
	f.Collections("b", "c")
	for _, name := range []string{registrytest.Mnemonic, "b", "c"} {
		f.batchIn(name, 6, 5)
	}
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldCollection, Key: "b", Reason: "look", Actor: "admin"}))
	got := f.turns(registry.Estimate, 6)
	if slices.Contains(got, "b") || got[0] == got[1] || !slices.Equal(got[:2], got[2:4]) || !slices.Equal(got[:2], got[4:]) {
		f.Errorf("turns %v, want the two others in turn", got)
	}
	f.Must(f.Store.RemoveHold(f.Context(), registry.HoldCollection, "b", "admin"))
	if got := f.turns(registry.Estimate, 3); got[0] != "b" || slices.Contains(got[1:], "b") {
		f.Errorf("turns %v after the release, want b once and first", got)
	}
}

func heldBatchAside(f *fixture) {
	const many = 1200
	large := f.batchIn(registrytest.Mnemonic, many, 0)
	batch := f.Item(large[0]).ParentID
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldBatch, Key: batch, Reason: "look", Actor: "admin"}))
	small := f.batchIn(registrytest.Mnemonic, 3, 99)
	for range small {
		// What has to be set aside to get at it may take a second message.
		if got := f.takeOffered(registry.Estimate).Item.ID; !slices.Contains(small, got) {
			f.Fatalf("claimed %s of the held batch", got)
		}
	}
	if got := f.Refused(registry.Estimate, large[0]).Reason; got != registry.ReasonHeld {
		f.Errorf("reason=%s, want held", got)
	}
	f.Must(f.Store.RemoveHold(f.Context(), registry.HoldBatch, batch, "admin"))
	taken := map[string]bool{}
	for range many {
		taken[f.takeOffered(registry.Estimate).Item.ID] = true
	}
	for _, id := range large {
		if !taken[id] {
			f.Fatalf("item %s was not let go with its batch", id)
		}
	}
}

// takeOffered claims as workers do: again after each message of the relay.
func (f *fixture) takeOffered(stage registry.Stage) registry.Claim {
	f.Helper()
	c, err := f.Store.Claim(f.Context(), f.Request(stage, ""))
	for tries := 0; err != nil && tries < 10; tries++ {
		if hints := f.Offered(2); len(hints) > 0 {
			c, err = f.Store.Claim(f.Context(), f.Request(stage, hints[0]))
		}
	}
	f.Must(err)
	return c
}

func priorityAtOnce(f *fixture) {
	jobs := f.batchIn(registrytest.Mnemonic, 10, 5)
	on := f.Offered(5) // on their way: the five in front
	last := jobs[9]
	if slices.Contains(on, last) {
		f.Fatalf("offered %v", on)
	}
	if it := f.prioritise(last, 0); it.Priority != 0 || it.Status != registry.Pending {
		f.Errorf("item %+v, want priority 0", it)
	}
	if got := f.Take(registry.Estimate, on[0]).Item.ID; got != last {
		f.Errorf("claimed %s, want %s, which was put in front", got, last)
	}
	if got := f.Take(registry.Estimate, on[1]).Item.ID; got != jobs[0] {
		f.Errorf("claimed %s, want %s", got, jobs[0])
	}
	f.prioritise(jobs[1], 6)
	if got := f.Take(registry.Estimate, jobs[1]).Item.ID; got != jobs[2] {
		f.Errorf("claimed %s, want %s: the hinted one was put back", got, jobs[2])
	}
	if got := f.Events(jobs[1]); got[len(got)-1] != string(registry.ActPriority) {
		f.Errorf("events %v, want the change of priority", got)
	}
}

func priorityAtAnyStage(f *fixture) {
	id := f.Job(registry.Provision)
	before := f.TakeItem(id)
	if it := f.prioritise(id, 7); it.Status != registry.Running || it.Priority != 7 || it.Attempt != before.Lease.N {
		f.Errorf("a running item: %+v", it)
	}
	f.Settle(registry.Settlement{Lease: before.Lease, Outcome: registry.OutcomeRetry, Delay: time.Hour, Error: "no"})
	due := f.Item(id).RunAt
	f.prioritise(id, 3)
	if got := f.Refused(registry.Provision, id); got.Reason != registry.ReasonNotDue || !f.Item(id).RunAt.Equal(due) {
		f.Errorf("an item that is not due: %+v, run at %v, want %v as before", got, f.Item(id).RunAt, due)
	}
	f.Clock.Pass(time.Hour)
	f.Finish(id)
	p := 1
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActPriority, Priority: &p, Actor: "admin"})
	var refused *registry.TransitionError
	if !errors.As(err, &refused) || f.Item(id).Priority != 3 {
		f.Errorf("of a completed item: %v, priority %d", err, f.Item(id).Priority)
	}
}

func expressFirst(f *fixture) {
	f.Collections("b", "c")
	a, b, c := f.batchIn(registrytest.Mnemonic, 3, 0), f.batchIn("b", 3, 0), f.batchIn("c", 3, 99)
	f.Clock.Pass(24 * time.Hour) // what is old goes no sooner
	f.prioritise(c[2], -1)
	f.prioritise(c[1], -5)
	f.prioritise(b[2], -5)
	var got []string
	for range 4 {
		got = append(got, f.Take(registry.Estimate, a[0]).Item.ID)
	}
	// c[1] and b[2] are equal but for their turn; neither collection had one.
	first := []string{b[2], c[1]}
	slices.Sort(first)
	front := slices.Sorted(slices.Values(got[:2]))
	if !slices.Equal(front, first) || got[2] != c[2] || slices.Contains([]string{b[2], c[1], c[2]}, got[3]) {
		f.Errorf("claimed %v, want %v, then %s, then the others", got, first, c[2])
	}
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: a[2], Reason: "look", Actor: "admin"}))
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldCollection, Key: "c", Reason: "look", Actor: "admin"}))
	f.prioritise(a[2], -9)
	f.prioritise(c[0], -9)
	if got := f.Take(registry.Estimate, a[2]).Item.ID; got == a[2] || got == c[0] {
		f.Error("express does not go past a hold")
	}
	f.Must(f.Store.RemoveHold(f.Context(), registry.HoldItem, a[2], "admin"))
	if got := f.Take(registry.Estimate, "").Item.ID; got != a[2] {
		f.Errorf("claimed %s, want %s, which is express and free", got, a[2])
	}
}

func expressStays(f *fixture) {
	jobs := f.batchIn(registrytest.Mnemonic, 2, 0)
	f.prioritise(jobs[1], -1)
	c := f.Take(registry.Estimate, "")
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone, PriorityAdd: 10})
	f.Done(f.Take(registry.Estimate, "").Lease)
	if it := f.Take(registry.Provision, jobs[0]).Item; it.ID != jobs[1] || it.Priority != -1 {
		f.Errorf("item %s of priority %d came first, want %s, which an operator put in front", it.ID, it.Priority, jobs[1])
	}
}

func expressOnlyByCommand(f *fixture) {
	id := f.Submit()
	out := func(what string, err error) {
		f.Helper()
		var pe *registry.PriorityError
		if !errors.As(err, &pe) {
			f.Errorf("%s: %v, want that the priority is refused", what, err)
		}
	}
	for _, p := range []int{-1, registry.MostPriority + 1} {
		s := registrytest.Submission()
		s.Priority = &p
		_, err := f.Store.Submit(f.Context(), s)
		out("a submission", err)
		out("a profile", f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: "p", Profile: registry.Profile{Priority: &p}}, "admin"))
	}
	for _, p := range []int{registry.LeastPriority - 1, registry.MostPriority + 1} {
		_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActPriority, Priority: &p, Actor: "admin"})
		out("a command", err)
	}
	if all := f.All(registry.ItemQuery{}); len(all) != 1 || all[0].Priority != registry.DefaultPriority {
		f.Errorf("a refusal left %+v", all)
	}
	if _, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActPriority, Actor: "admin"}); err == nil {
		f.Error("a change of priority that names none was carried out")
	}
}

func ageing(f *fixture) {
	last := f.batchIn(registrytest.Mnemonic, 2, 99)
	f.Clock.Pass(98 * time.Minute)
	young := f.batchIn(registrytest.Mnemonic, 1, 0)[0]
	if got := f.Take(registry.Estimate, last[0]).Item.ID; got != young {
		f.Errorf("after 98 minutes %s goes first, want the new one", got)
	}
	f.Clock.Pass(2 * time.Minute)
	f.batchIn(registrytest.Mnemonic, 5, 0)
	for _, want := range last {
		if got := f.Take(registry.Estimate, "").Item.ID; got != want {
			f.Errorf("after 100 minutes %s goes first, want %s", got, want)
		}
	}
}

func largePriorities(f *fixture) {
	var want []string
	for _, p := range []int{99, 100, 101, 1000, registry.MostPriority} {
		want = append(want, f.Submit(func(s *registry.Submission) { s.Priority = &p }))
	}
	for _, id := range want {
		c := f.Take(registry.Expand, "")
		if c.Item.ID != id {
			f.Errorf("claimed priority %d, want %d", c.Item.Priority, f.Item(id).Priority)
		}
		f.Done(c.Lease)
	}
	// Merritt's bug: every pass through Estimating adds 10.
	job := f.batchIn(registrytest.Mnemonic, 1, 95)[0]
	f.Settle(registry.Settlement{Lease: f.TakeItem(job).Lease, Outcome: registry.OutcomeDone, PriorityAdd: 10})
	f.Finish(job)
	if got := f.Item(job).Priority; got != 105 {
		f.Errorf("priority=%d, want 105", got)
	}
}

// nothingStarves: items that come before an old one keep arriving, in its collection and in others.
func nothingStarves(f *fixture) {
	f.Collections("b", "c")
	old := map[string]bool{}
	for _, name := range []string{registrytest.Mnemonic, "b", "c"} {
		old[f.batchIn(name, 1, 30)[0]] = true
	}
	for minute := 0; len(old) > 0; minute++ {
		if minute > 3*32 {
			f.Fatalf("after %d minutes %d old items have not had their turn", minute, len(old))
		}
		for _, name := range []string{registrytest.Mnemonic, "b", "c"} {
			if minute%3 == 0 {
				f.batchIn(name, 1, 0)
			}
		}
		delete(old, f.Take(registry.Estimate, "").Item.ID)
		f.Clock.Pass(time.Minute)
	}
}
