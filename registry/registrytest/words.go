package registrytest

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func (f *fixture) request(stage registry.Stage, hint string) registry.ClaimRequest {
	return registry.ClaimRequest{
		RequestID: f.unique("request-"), Stage: stage, Hint: hint, Worker: "worker-1", Version: "v1",
		Lease: lease, MaxAttempts: attempts,
	}
}

// take claims the stage's best item.
func (f *fixture) take(stage registry.Stage, hint string) registry.Claim {
	f.Helper()
	c, err := f.Claim(f.Context(), f.request(stage, hint))
	f.must(err)
	return c
}

// refused says why the hinted item cannot be claimed.
func (f *fixture) refused(stage registry.Stage, hint string) *registry.NotClaimable {
	f.Helper()
	c, err := f.Claim(f.Context(), f.request(stage, hint))
	var refused *registry.NotClaimable
	if !errors.As(err, &refused) {
		f.Fatalf("claim of %s: %+v, %v; want a refusal", hint, c.Lease, err)
	}
	if refused.ItemID != hint {
		f.Errorf("refused item %q, want %q", refused.ItemID, hint)
	}
	return refused
}

// reasonOf is the reason of a refused claim.
func (f *fixture) reasonOf(err error) registry.Reason {
	f.Helper()
	var refused *registry.NotClaimable
	if !errors.As(err, &refused) {
		f.Fatalf("claim: %v, want a refusal", err)
	}
	return refused.Reason
}

// lockedBy is the holder that a refused identification names.
func (f *fixture) lockedBy(err error) string {
	f.Helper()
	var locked *registry.LockedError
	if !errors.As(err, &locked) {
		f.Fatalf("identify: %v, want that it is locked", err)
	}
	return locked.ItemID
}

// takeItem claims this very item, releasing those that come before it.
func (f *fixture) takeItem(id string) registry.Claim {
	f.Helper()
	stage := f.item(id).Stage
	var others []registry.Lease
	for {
		c := f.take(stage, id)
		if c.Item.ID == id {
			for _, o := range others {
				f.settle(registry.Settlement{Lease: o, Outcome: registry.OutcomeReleased})
			}
			return c
		}
		others = append(others, c.Lease)
	}
}

func (f *fixture) settle(s registry.Settlement) registry.Verdict {
	f.Helper()
	if s.MaxAttempts == 0 {
		s.MaxAttempts = attempts
	}
	v, err := f.Settle(f.Context(), s)
	f.must(err)
	return v
}

func (f *fixture) done(l registry.Lease) registry.Verdict {
	f.Helper()
	return f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
}

func (f *fixture) item(id string) registry.WorkItem {
	f.Helper()
	it, err := f.Item(f.Context(), id)
	f.must(err)
	return it
}

// state checks what people see.
func (f *fixture) state(id string, want registry.State) {
	f.Helper()
	if got := f.item(id).State; got != want {
		f.Errorf("state=%s, want %s", got, want)
	}
}

func newJobs(n int) []registry.NewJob {
	jobs := make([]registry.NewJob, n)
	for i := range jobs {
		jobs[i] = registry.NewJob{
			Line: int64(i + 1), Row: int64(i + 1), Name: fmt.Sprintf("job-%d", i+1), Priority: 5,
			Spec: registry.Spec{Type: registry.FileType, URL: fmt.Sprintf("https://example.org/%d", i+1)},
		}
	}
	return jobs
}

// children are the ids of a batch's jobs in row order.
func (f *fixture) children(batch string) []string {
	f.Helper()
	var ids []string
	for _, it := range f.all(registry.ItemQuery{ParentID: batch}) {
		ids = append(ids, it.ID)
	}
	return ids
}

// all reads a list to its end.
func (f *fixture) all(q registry.ItemQuery) []registry.WorkItem {
	f.Helper()
	return list(f, f, q)
}

// batch submits a batch, expands it into n jobs and returns it with them.
func (f *fixture) batch(n int, change ...func(*registry.Submission)) (id string, jobs []string) {
	f.Helper()
	id = f.submit(change...)
	c := f.takeItem(id)
	_, err := f.AddJobs(f.Context(), c.Lease, newJobs(n))
	f.must(err)
	f.done(c.Lease)
	return id, f.children(id)
}

// job makes a batch of one job and brings the job to a stage.
func (f *fixture) job(at registry.Stage) string {
	f.Helper()
	_, jobs := f.batch(1, func(s *registry.Submission) {
		route, _ := registry.RouteOf(registry.Ingest)
		if step, _ := route.Step(at); step.Optional {
			s.Collection = f.everyStep()
		}
	})
	f.bring(jobs[0], at)
	return jobs[0]
}

// everyStep makes a collection whose jobs take every optional step.
func (f *fixture) everyStep() (name string) {
	f.Helper()
	name = "every_step"
	f.collection(name, registry.Profile{
		Name: "Every step", Owner: owner, Scan: true, Storages: []string{registry.DefaultStorage, "second", "third"},
	})
	return name
}

// bring lets an item do its steps until it stands at a stage.
func (f *fixture) bring(id string, at registry.Stage) {
	f.Helper()
	for it := f.item(id); it.Stage != at; it = f.item(id) {
		if it.Status.Settled() {
			f.Fatalf("item is %s at %s before it got to %s", it.Status, it.Stage, at)
		}
		f.done(f.takeItem(id).Lease)
	}
}

// finish completes an item.
func (f *fixture) finish(id string) {
	f.Helper()
	for !f.item(id).Status.Settled() {
		f.done(f.takeItem(id).Lease)
	}
	if got := f.item(id).Status; got != registry.Completed {
		f.Fatalf("status=%s, want completed", got)
	}
}

// fail fails an item where it stands.
func (f *fixture) fail(id string, class registry.ErrorClass) {
	f.Helper()
	f.settle(registry.Settlement{Lease: f.takeItem(id).Lease, Outcome: registry.OutcomeFailed, Class: class, Error: "it is broken"})
}

// command asks for an act that must be allowed.
func (f *fixture) command(id string, act registry.Act, from registry.Stage) registry.WorkItem {
	f.Helper()
	it, err := f.Command(f.Context(), registry.Command{ItemID: id, Act: act, From: from, Reason: "because", Actor: "admin"})
	f.must(err)
	return it
}

// attemptsOf lists an item's attempts.
func (f *fixture) attemptsOf(id string) []registry.Attempt {
	f.Helper()
	as, err := f.Attempts(f.Context(), id)
	f.must(err)
	return as
}

// invariants checks what holds at all times.
func (f *fixture) invariants() {
	f.Helper()
	CheckInvariants(f, f)
}

// events are the types of an item's events, oldest first.
func (f *fixture) events(id string) []string {
	f.Helper()
	es, err := f.Events(f.Context(), id, 0, 500)
	f.must(err)
	types := make([]string, len(es))
	for i, e := range es {
		types[i] = e.Type
	}
	return types
}

// sweep beats the sweep's own heart for d, so that no gap keeps it quiet, and returns what was lost.
func (f *fixture) sweep(d time.Duration) []registry.Lease {
	f.Helper()
	var all []registry.Lease
	for left := d; ; left -= lease / 8 {
		lost, err := f.Sweep(f.Context(), lease)
		f.must(err)
		all = append(all, lost...)
		if left <= 0 {
			return all
		}
		f.clock.pass(min(left, lease/8))
	}
}

// has tells whether ids hold an id.
func has[T comparable](all []T, one T) bool {
	for _, x := range all {
		if x == one {
			return true
		}
	}
	return false
}
