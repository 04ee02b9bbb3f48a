package registrytest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// transitionTests walk every way in which an item can stand, and ask every act there.
func transitionTests() []test {
	var tests []test
	for _, p := range places() {
		name := string(p.stage) + "_" + string(p.status)
		if p.variant != "" {
			name += "_" + p.variant
		}
		tests = append(tests, test{name, func(f *fixture) { f.everyAct(p) }})
	}
	return tests
}

// place is a way in which an item can stand.
type place struct {
	action  registry.Action
	stage   registry.Stage
	status  registry.Status
	variant string
	put     func(f *fixture) (id string)
}

// places lists every (action, stage, status) that an item can get to; a pending one held and not, a batch at its report
// with and without open jobs.
func places() (all []place) {
	for _, r := range registry.Routes() {
		for _, step := range r.Steps {
			put := func(f *fixture) string { return f.standing(r.Action, step.Stage) }
			add := func(st registry.Status, variant string, then func(f *fixture, id string)) {
				all = append(all, place{r.Action, step.Stage, st, variant, func(f *fixture) string {
					id := put(f)
					if then != nil {
						then(f, id)
					}
					return id
				}})
			}
			act := func(a registry.Act) func(*fixture, string) {
				return func(f *fixture, id string) { f.sure(id, a) }
			}
			fail := func(f *fixture, id string) { f.fail(id, registry.SystemFault) }
			add(registry.Pending, "", nil)
			add(registry.Pending, "held", act(registry.ActHold))
			add(registry.Running, "", func(f *fixture, id string) { f.takeItem(id) })
			add(registry.Failed, "", fail)
			if r.Action == registry.Ingest && step.Stage == r.First() {
				all = append(all, place{r.Action, step.Stage, registry.Failed, "refused", (*fixture).refusedRow})
			}
			if _, more := r.Next(step.Stage); !more {
				add(registry.Completed, "", func(f *fixture, id string) { f.finish(id) })
			}
			if step.Stage == registry.Report {
				all = append(all, place{r.Action, step.Stage, registry.Pending, "open", func(f *fixture) string {
					id, _ := f.batch(1)
					return id
				}})
			} else if r.Action != registry.Tidy {
				add(registry.Cancelled, "", act(registry.ActCancel))
			}
			if r.Action == registry.Tidy {
				continue
			}
			add(registry.Aborted, "", act(registry.ActAbort))
			add(registry.Deleted, "", func(f *fixture, id string) {
				fail(f, id)
				f.sure(id, registry.ActDelete)
			})
		}
	}
	return all
}

// refusedRow makes a job of a row that was refused.
func (f *fixture) refusedRow() string {
	f.Helper()
	id := f.submit()
	c := f.takeItem(id)
	_, err := f.AddJobs(f.Context(), c.Lease, []registry.NewJob{{Row: 1, Name: "bad", Fault: "a bad row", Code: "digest"}})
	f.must(err)
	f.done(c.Lease)
	return f.children(id)[0]
}

// standing makes an item that is pending at a stage and could be claimed.
func (f *fixture) standing(a registry.Action, at registry.Stage) string {
	f.Helper()
	switch a {
	case registry.Batch:
		if at == registry.Expand {
			return f.submit()
		}
		id, jobs := f.batch(1)
		f.finish(jobs[0])
		return id
	case registry.Bulk:
		return f.bulk(registry.ActRequeue, "state:failed").ID
	case registry.Tidy:
		job := f.job(registry.Download)
		f.sure(job, registry.ActAbort)
		f.clock.pass(time.Hour)
		return f.tidyOf(job).ID
	case registry.DeliverMessage:
		job := f.toldJob(receiver(), registry.Download)
		f.fail(job, registry.SystemFault)
		return f.carriers()[0].ID
	case registry.Ingest:
	}
	if a.AboutObject() {
		return f.about(a, f.object()).ID
	}
	return f.job(at)
}

// everyAct asks all acts of items that stand at a place, and compares what becomes of them with the state machine.
func (f *fixture) everyAct(p place) {
	id := p.put(f)
	it := f.item(id)
	if it.Action != p.action || it.Stage != p.stage || it.Status != p.status {
		f.Fatalf("item is %s at %s, want %s at %s", it.Status, it.Stage, p.status, p.stage)
	}
	if want := registry.AllowedActs(it.Position()); !slices.Equal(it.AllowedActs, want) {
		f.Errorf("allowed acts %v, the table says %v", it.AllowedActs, want)
	}
	var allowed []registry.Transition
	for _, t := range registry.Transitions() {
		if t.By == "admin" && t.Concerns(it.Position()) {
			allowed = append(allowed, t)
		}
	}
	for _, act := range registry.AdminActs() {
		if !slices.ContainsFunc(allowed, func(t registry.Transition) bool { return t.Act == act }) {
			f.refusedAct(it, act)
		}
	}
	for _, t := range allowed {
		f.allowedAct(p.put(f), t)
	}
	f.workersActs(p)
}

// refusedAct asks for what the state machine does not have.
func (f *fixture) refusedAct(it registry.WorkItem, act registry.Act) {
	f.Helper()
	_, err := f.Command(f.Context(), registry.Command{
		ItemID: it.ID, Act: act, Priority: new(int), Reason: "because", Actor: "admin", Confirmed: true,
	})
	var te *registry.TransitionError
	if !errors.As(err, &te) || te.From != it.State || !slices.Equal(te.Allowed, it.AllowedActs) {
		f.Errorf("%s of what is %s: %v, want a refusal", act, it.State, err)
	}
	if diff := cmp.Diff(it, f.item(it.ID)); diff != "" {
		f.Errorf("the refused %s changed the item:\n%s", act, diff)
	}
}

// allowedAct asks for what it has, and looks where it led.
func (f *fixture) allowedAct(id string, t registry.Transition) {
	f.Helper()
	was := f.item(id)
	f.sure(id, t.Act)
	if t.To == "" {
		_, err := f.Item(f.Context(), id)
		f.is(err, registry.ErrNotFound)
		return
	}
	it := f.item(id)
	if it.Status != t.To || it.Stage != was.Stage {
		f.Errorf("%s of what was %s at %s: it is %s at %s, want %s", t.Act, was.Status, was.Stage, it.Status, it.Stage, t.To)
	}
	if es := f.events(id); es[len(es)-1] != string(t.Act) {
		f.Errorf("%s left the events %v", t.Act, es)
	}
}

// workersActs lets workers claim and settle what stands at a place.
func (f *fixture) workersActs(p place) {
	f.Helper()
	if p.status != registry.Running {
		id := p.put(f)
		was := f.item(id)
		_, err := f.Claim(f.Context(), f.request(p.stage, id)) // it may give another item
		if ready := p.status == registry.Pending && p.variant == ""; ready {
			f.must(err)
		} else if got := f.item(id).Status; got != p.status {
			f.Errorf("a claim made %s of what was %s", got, was.State)
		}
		return
	}
	for _, o := range []registry.Outcome{
		registry.OutcomeDone, registry.OutcomeRetry, registry.OutcomeSnooze, registry.OutcomeReleased, registry.OutcomeFailed,
	} {
		id := p.put(f)
		was := f.item(id)
		v := f.settle(registry.Settlement{Lease: registry.Lease{ItemID: id, N: was.Attempt}, Outcome: o, Class: registry.SystemFault})
		if !slices.ContainsFunc(registry.Transitions(), func(t registry.Transition) bool {
			return t.By == "worker" && t.To == v.Status && t.Concerns(was.Position())
		}) {
			f.Errorf("%s led from %s at %s to %+v", o, was.Status, was.Stage, v)
		}
	}
}

// sure asks for an act that must be allowed, knowing its consequences.
func (f *fixture) sure(id string, act registry.Act) registry.WorkItem {
	f.Helper()
	it, err := f.Command(f.Context(), registry.Command{
		ItemID: id, Act: act, Priority: new(int), Reason: "because", Actor: "admin", Confirmed: true,
	})
	f.must(err)
	return it
}
