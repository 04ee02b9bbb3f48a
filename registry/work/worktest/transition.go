package worktest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// transitionTests bring an item to every place and request every act there.
func transitionTests() tests {
	all := tests{}
	for _, p := range places() {
		name := string(p.stage) + "_" + string(p.status)
		if p.variant != "" {
			name += "_" + strings.ReplaceAll(p.variant, " ", "_")
		}
		all[name] = func(f *fixture) { f.everyAct(p) }
	}
	return all
}

// place is a position of an item and the facts on which acts depend.
type place struct {
	action  registry.Action
	stage   registry.Stage
	status  registry.Status
	variant string
	put     func(f *fixture) (id string)
}

// places lists every (action, stage, status) that an item can reach, with the facts on which acts
// depend: holds, announced or recorded versions, callbacks, whether its graph is sealed, and the
// state of its jobs.
func places() (all []place) {
	all = append(committedPlaces(), otherPlaces()...)
	for _, r := range registry.Routes() {
		for _, step := range r.Steps {
			stage := step.Stage
			if r.Functions {
				stage = stage.Of(registrytest.TaskFunction.Name)
			}
			put := func(f *fixture) string { return f.standing(r.Action, stage) }
			add := func(st registry.Status, variant string, then func(f *fixture, id string)) {
				all = append(all, place{r.Action, stage, st, variant, func(f *fixture) string {
					id := put(f)
					if then != nil {
						then(f, id)
					}
					return id
				}})
			}
			act := func(a registry.Act) func(*fixture, string) {
				return func(f *fixture, id string) { f.Confirm(id, a) }
			}
			fail := func(f *fixture, id string) { f.FailItem(id, registry.SystemFault) }
			add(registry.Pending, "", nil)
			add(registry.Pending, "held", act(registry.ActHold))
			all = append(all, place{r.Action, stage, registry.Pending, "held by its stage", func(f *fixture) string {
				if err := f.Store.RemoveHold(f.Context(), registry.HoldStage, string(stage), "admin"); !errors.Is(err, registry.ErrNotFound) {
					f.Must(err) // of the item before
				}
				id := put(f)
				f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldStage, Key: string(stage), Reason: "because", Actor: "admin"}))
				return id
			}})
			if r.Action != registry.Tidy {
				add(registry.Pending, "delayed", (*fixture).delay)
			}
			add(registry.Running, "", func(f *fixture, id string) { f.TakeItem(id) })
			add(registry.Running, "held", func(f *fixture, id string) {
				f.TakeItem(id)
				f.Confirm(id, registry.ActHold)
			})
			add(registry.Failed, "", fail)
			if r.Action == registry.Ingest && stage == r.First() {
				all = append(all, place{r.Action, stage, registry.Failed, "refused", (*fixture).refusedRow})
			}
			add(registry.Failed, "held", func(f *fixture, id string) {
				fail(f, id)
				f.Confirm(id, registry.ActHold)
			})
			if _, more := r.Next(stage); !more {
				add(registry.Completed, "", func(f *fixture, id string) { f.Finish(id) })
			}
			if stage == registry.Report {
				all = append(all, place{r.Action, stage, registry.Pending, "open", func(f *fixture) string {
					id, _ := f.Batch(1)
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
				f.Confirm(id, registry.ActDelete)
			})
		}
	}
	return all
}

// refusedRow makes a job of a refused row.
func (f *fixture) refusedRow() string {
	f.Helper()
	id := f.Submit()
	c := f.TakeItem(id)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, []registry.NewJob{{Line: 1, Name: "bad", Fault: "a bad row", Code: "digest"}})
	f.Must(err)
	f.Done(c.Lease)
	return f.Children(id)[0]
}

// committedPlaces are the places of jobs and deletions with an announced or recorded version.
func committedPlaces() (all []place) {
	route, _ := registry.RouteOf(registry.Ingest)
	route = route.With(nil) // its optional steps are as the others
	for _, step := range route.Steps {
		for _, c := range []registry.Commitment{registry.Announced, registry.Preserved} {
			for _, st := range []registry.Status{registry.Pending, registry.Running, registry.Failed} {
				for _, held := range []bool{false, true} {
					if held && st == registry.Running {
						continue
					}
					variant := string(c)
					if held {
						variant += " held"
					}
					all = append(all, place{registry.Ingest, step.Stage, st, variant, func(f *fixture) string {
						id := f.Committed(step.Stage, c)
						f.stands(id, st)
						if held {
							f.Confirm(id, registry.ActHold)
						}
						return id
					}})
				}
			}
			if c == registry.Announced {
				all = append(all, place{registry.Ingest, step.Stage, registry.Failed, "announced and to be abandoned", func(f *fixture) string {
					id := f.Committed(step.Stage, c)
					f.stands(id, registry.Failed)
					_, err := f.Abandon(registrytest.Asker, id)
					f.Must(err)
					return id
				}})
			}
		}
	}
	for _, st := range []registry.Status{registry.Pending, registry.Running, registry.Failed} {
		all = append(all, place{registry.DeleteObject, registry.Delete, st, "begun", func(f *fixture) string {
			id := f.deleting()
			f.stands(id, st)
			return id
		}})
	}
	return all
}

// otherPlaces are places that other items cause.
func otherPlaces() []place {
	prepared := func(f *fixture) string {
		_, items := f.Prepare("", registrytest.Node("a"))
		return items["a"]
	}
	return []place{
		{registry.Batch, registry.Expand, registry.Prepare, "", prepared},
		{registry.Batch, registry.Expand, registry.Prepare, "held", func(f *fixture) string {
			id := prepared(f)
			f.Confirm(id, registry.ActHold)
			return id
		}},
		{registry.Batch, registry.Expand, registry.Cancelled, "unsealed", func(f *fixture) string {
			id := prepared(f)
			f.Confirm(id, registry.ActCancel)
			return id
		}},
		{registry.Batch, registry.Report, registry.Deleted, "jobs left", func(f *fixture) string {
			id, _ := f.Batch(1)
			f.Confirm(id, registry.ActAbort)
			f.Confirm(id, registry.ActDelete)
			return id
		}},
		{registry.Batch, registry.Report, registry.Failed, "by its jobs", func(f *fixture) string {
			id, _ := f.Reportable()
			l := f.TakeItem(id).Lease
			f.CloseReport(l)
			f.Done(l)
			return id
		}},
		{registry.Ingest, registry.Download, registry.Pending, "held with its batch", func(f *fixture) string {
			id := f.Job(registry.Download)
			f.Confirm(f.Item(id).ParentID, registry.ActHold)
			return id
		}},
		{registry.Ingest, registry.Notify, registry.Failed, "given up", func(f *fixture) string {
			id := f.Committed(registry.Notify, registry.Preserved)
			f.Confirm(id, registry.ActGiveUp)
			f.FailItem(id, registry.SystemFault)
			return id
		}},
		{registry.Ingest, registry.Notify, registry.Failed, "with nobody to tell", func(f *fixture) string {
			id := f.Job(registry.Notify)
			f.FailItem(id, registry.SystemFault)
			return id
		}},
	}
}

// stands brings a pending item to a status.
func (f *fixture) stands(id string, st registry.Status) {
	f.Helper()
	switch st {
	case registry.Running:
		f.TakeItem(id)
	case registry.Failed:
		f.FailItem(id, registry.SystemFault)
	case registry.Prepare, registry.Pending, registry.Completed, registry.Cancelled, registry.Aborted, registry.Deleted:
	}
}

// deleting makes a pending item that has begun to delete its object.
func (f *fixture) deleting() string {
	f.Helper()
	ark := f.Object()
	id := f.ApprovedDeletion(ark).ID
	l := f.TakeItem(id).Lease
	_, err := f.Store.LockObject(f.Context(), l, ark)
	f.Must(err)
	_, err = f.Store.MarkDeleting(f.Context(), l, ark, registry.Remains{Version: 1})
	f.Must(err)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	return id
}

// standing makes an item that is pending at a stage and can be claimed.
func (f *fixture) standing(a registry.Action, at registry.Stage) string {
	f.Helper()
	switch a {
	case registry.Batch:
		if at == registry.Expand {
			return f.Submit()
		}
		id, jobs := f.Batch(1)
		f.Finish(jobs[0])
		return id
	case registry.Bulk:
		return f.Bulk(registry.ActRequeue, "state:failed").ID
	case registry.Tidy:
		job := f.Job(registry.Download)
		f.Confirm(job, registry.ActAbort)
		f.Clock.Pass(time.Hour)
		return f.TidyOf(job).ID
	case registry.DeliverMessage:
		job := f.JobWithCallback(registrytest.Receiver(), registry.Download)
		f.FailItem(job, registry.SystemFault)
		return f.DeliveryItems()[0].ID
	case registry.Task:
		return f.Task()
	case registry.StepProcess:
		return f.Step()
	case registry.Ingest:
	}
	if a.AboutObject() {
		return f.ItemAbout(a, f.Object()).ID
	}
	return f.Job(at)
}

// everyAct requests all acts at a place. It compares the results with the acts that the item
// allows, and those with the state machine.
func (f *fixture) everyAct(p place) {
	id := p.put(f)
	it := f.Item(id)
	if it.Action != p.action || it.Stage != p.stage || it.Status != p.status {
		f.Fatalf("item is %s at %s, want %s at %s", it.Status, it.Stage, p.status, p.stage)
	}
	for _, act := range registry.AdminActs() {
		if !slices.Contains(it.AllowedActs, act) {
			f.refusedAct(it, act)
		}
	}
	for _, act := range it.AllowedActs {
		f.allowedAct(p.put(f), act)
	}
	f.workersActs(p)
}

// refusedAct requests an act that an item does not allow. The refusal lists the allowed acts and
// changes nothing.
func (f *fixture) refusedAct(it registry.WorkItem, act registry.Act) {
	f.Helper()
	_, err := f.Store.Command(f.Context(), registry.Command{
		ItemID: it.ID, Act: act, Priority: new(int), Reason: "because", Actor: "admin", Confirmed: true,
	})
	var te *registry.TransitionError
	var late *registry.PastNoReturn
	switch {
	case errors.As(err, &te):
		if te.From != it.State || !slices.Equal(te.Allowed, it.AllowedActs) {
			f.Errorf("%s of what is %s: %v, want the acts %v", act, it.State, err, it.AllowedActs)
		}
	case errors.As(err, &late):
		if it.Commitment == registry.Uncommitted || late.Preserved != (it.Commitment == registry.Preserved) || !slices.Equal(late.Allowed, it.AllowedActs) {
			f.Errorf("%s of what is %s and %q: %v, want the acts %v", act, it.State, it.Commitment, err, it.AllowedActs)
		}
	default:
		f.Errorf("%s of what is %s: %v, want a refusal", act, it.State, err)
	}
	if diff := cmp.Diff(it, f.Item(it.ID)); diff != "" {
		f.Errorf("the refused %s changed the item:\n%s", act, diff)
	}
}

// allowedAct requests an act that an item allows, and checks that the state machine has the result.
func (f *fixture) allowedAct(id string, act registry.Act) {
	f.Helper()
	was, before := f.Item(id), len(f.Events(id))
	_, err := f.Store.Command(f.Context(), registry.Command{
		ItemID: id, Act: act, Priority: new(int), Reason: "because", Actor: "admin", Confirmed: true, AgreesTo: f.AbandonmentAsked(id),
	})
	if err != nil {
		f.Errorf("%s of what was %s at %s is allowed (%v), but: %v", act, was.Status, was.Stage, was.AllowedActs, err)
		return
	}
	var to registry.Status
	if it, err := f.Store.Item(f.Context(), id); err == nil {
		to = it.Status
		if consent := act == registry.ActAbandon && to == registry.Pending; it.Stage != was.Stage && (!consent || it.Stage != registry.Process) {
			f.Errorf("%s of what was %s at %s led to %s", act, was.Status, was.Stage, it.Stage)
		}
		if es := f.Events(id); !slices.Contains(es[before:], string(act)) {
			f.Errorf("%s left the events %v", act, es)
		}
	} else {
		f.Is(err, registry.ErrNotFound)
	}
	if !slices.ContainsFunc(registry.Transitions(), func(t registry.Transition) bool {
		return t.Act == act && t.By == "admin" && t.From == was.Status && t.To == to && (t.Actions == nil || slices.Contains(t.Actions, was.Action))
	}) {
		f.Errorf("%s of what was %s led to %q, which is not in the table", act, was.Status, to)
	}
}

// workersActs claims and settles an item at a place.
func (f *fixture) workersActs(p place) {
	f.Helper()
	if p.status != registry.Running {
		id := p.put(f)
		was := f.Item(id)
		_, err := f.Store.Claim(f.Context(), f.Request(p.stage, id)) // it may give another item
		if ready := p.status == registry.Pending && p.variant == ""; ready {
			f.Must(err)
		} else if got := f.Item(id).Status; got != p.status {
			f.Errorf("a claim made %s of what was %s", got, was.State)
		}
		return
	}
	for _, o := range []registry.Outcome{
		registry.OutcomeDone, registry.OutcomeRetry, registry.OutcomeSnooze, registry.OutcomeReleased, registry.OutcomeFailed,
	} {
		id := p.put(f)
		was := f.Item(id)
		v := f.Settle(registry.Settlement{Lease: registry.Lease{ItemID: id, N: was.Attempt}, Outcome: o, Class: registry.SystemFault})
		if !slices.ContainsFunc(registry.Transitions(), func(t registry.Transition) bool {
			return t.By == "worker" && t.To == v.Status && t.Concerns(was.Position())
		}) {
			f.Errorf("%s led from %s at %s to %+v", o, was.Status, was.Stage, v)
		}
	}
}
