package registrytest

import (
	"context"

	"github.com/holdfast/holdfast/registry"
)

// T is what a check needs of a test. *testing.T and *rapid.T implement it.
type T interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Readable is the part of a store that is checked.
type Readable interface {
	registry.ItemReader
	registry.AttemptReader
	registry.Graphs
}

// CheckInvariants checks what always holds for every item of a store:
//
// - blocker_count equals a recount (I9)
// - a running item has one live attempt, any other item none (I3)
// - attempt numbers only grow, and tries are bounded (I11, for workers with at most 5 attempts)
func CheckInvariants(t T, s Readable) {
	t.Helper()
	open := map[string]int64{}
	statuses := map[string]registry.Status{}
	items := list(t, s, registry.ItemQuery{})
	for _, it := range items {
		statuses[it.ID] = it.Status
		if it.ParentID != "" && !it.Status.Settled() {
			open[it.ParentID]++
		}
	}
	for _, it := range items {
		if it.Action == registry.Batch || it.Action == registry.Task || it.Action == registry.StepProcess || len(registry.StepsIn(it.Spec)) > 0 {
			open[it.ID] += openEdges(t, s, it.ID, statuses)
		}
		if it.BlockerCount != open[it.ID] {
			t.Errorf("I9: item %s has blocker_count %d, a recount gives %d", it.ID, it.BlockerCount, open[it.ID])
		}
		if (it.FinishedAt != nil) != it.Status.Settled() {
			t.Errorf("item %s is %s, finished at %v", it.ID, it.Status, it.FinishedAt)
		}
		checkAttempts(t, s, it)
	}
	checkFailures(t, s, items)
}

// checkFailures checks that each failed item is in one group, which has the fingerprint of its
// cause. Failed steps may be in none: their processes may have gone on.
func checkFailures(t T, s Readable, items []registry.WorkItem) {
	t.Helper()
	failed, steps, grouped := int64(0), int64(0), int64(0)
	for _, it := range items {
		if it.Status == registry.Failed {
			failed++
			if it.Action == registry.StepProcess {
				steps++
			}
		}
	}
	for q := (registry.ItemQuery{}); ; {
		page, err := s.Failures(t.Context(), q)
		if err != nil {
			t.Fatalf("%v", err)
		}
		for _, g := range page.Rows {
			grouped += g.Count
			if want := g.Cause.Fingerprint(); g.Fingerprint != want {
				t.Errorf("failures like that of item %s are under %q, their cause is %q", g.ItemID, g.Fingerprint, want)
			}
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if grouped > failed || grouped < failed-steps {
		t.Errorf("%d items have failed, %d of them steps; %d are in groups", failed, steps, grouped)
	}
}

// openEdges checks the edges of an item against the items that it requires. It returns the number
// of open edges.
func openEdges(t T, s Readable, id string, statuses map[string]registry.Status) (open int64) {
	t.Helper()
	requires, _, err := s.Edges(t.Context(), id)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, e := range requires {
		if _, known := statuses[e.RequiresID]; !known && e.SatisfiedAt != nil {
			continue // it was purged
		}
		satisfied := e.WaitFor.SatisfiedBy(statuses[e.RequiresID])
		if satisfied != (e.SatisfiedAt != nil) {
			t.Errorf("I9: item %s waits for %s until %s, which is %s; satisfied at %v", id, e.RequiresID, e.WaitFor, statuses[e.RequiresID], e.SatisfiedAt)
		}
		if !satisfied {
			open++
		}
	}
	return open
}

// checkAttempts checks an item against its attempts.
func checkAttempts(t T, s Readable, it registry.WorkItem) {
	t.Helper()
	all, err := s.Attempts(t.Context(), it.ID)
	if err != nil {
		t.Fatalf("%v", err)
	}
	live, newest := 0, int64(0)
	for _, a := range all {
		if a.FinishedAt == nil {
			live++
		}
		if a.N <= newest {
			t.Errorf("I11: attempt %d of item %s came after %d", a.N, it.ID, newest)
		}
		newest = a.N
	}
	if running := it.Status == registry.Running; live > 1 || running != (live == 1) {
		t.Errorf("I3: item %s is %s with %d live attempts", it.ID, it.Status, live)
	}
	if newest != it.Attempt {
		t.Errorf("I11: item %s has attempt %d, its newest is %d", it.ID, it.Attempt, newest)
	}
	if it.Tries > Attempts {
		t.Errorf("I11: item %s has %d tries", it.ID, it.Tries)
	}
}

// list returns all pages of a list.
func list(t T, s Readable, q registry.ItemQuery) (all []registry.WorkItem) {
	t.Helper()
	for {
		page, err := s.Items(t.Context(), q)
		if err != nil {
			t.Fatalf("%v", err)
		}
		all = append(all, page.Rows...)
		if page.Next == "" {
			return all
		}
		q.After = page.Next
	}
}
