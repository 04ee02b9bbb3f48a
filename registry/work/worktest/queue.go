package worktest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func queueTests() tests {
	return tests{
		"status_counts_every_waiting_item_once":  queueCounts,
		"status_of_an_empty_queue":               queueEmpty,
		"backlog_is_what_more_workers_can_start": queueBacklog,
		"stages_wake_for_what_may_start":         queueWakes,
		"status_tells_messages_from_items":       queueRung,
		"pause_lets_steps_end_and_nothing_start": queuePause,
		"drain_tells_when_the_last_step_ends":    queueDrain,
		"not_accepting_refuses_what_is_new":      notAccepting,
		"accepting_is_told_with_its_first_time":  acceptingTold,
		"collections_with_one_copy_are_counted":  oneCopyCounted,
	}
}

func (f *fixture) stageQueue(stage registry.Stage) registry.StageQueue {
	f.Helper()
	q := f.Queue()
	i := slices.IndexFunc(q.Stages, func(s registry.StageQueue) bool { return s.Stage == stage })
	if i < 0 {
		f.Fatalf("stage %s is not in %+v", stage, q.Stages)
	}
	return q.Stages[i]
}

func queueEmpty(f *fixture) {
	q := f.Queue()
	if !q.Accepting.On || q.Paused != nil || q.Running != 0 || q.Holds != 0 {
		f.Errorf("queue %+v, want it open and empty", q)
	}
	var stages []registry.Stage
	for _, s := range q.Stages {
		stages = append(stages, s.Stage)
		if diff := cmp.Diff(registry.StageQueue{Stage: s.Stage}, s); diff != "" {
			f.Errorf("a stage with nothing in it (-want +got):\n%s", diff)
		}
	}
	if !slices.Equal(stages, registry.Stages()) {
		f.Errorf("stages %v, want %v", stages, registry.Stages())
	}
}

func queueCounts(f *fixture) {
	_, jobs := f.Batch(6)
	begun := f.Item(jobs[0]).RunAt
	f.Clock.Pass(time.Minute)
	f.Hold(registry.HoldItem, jobs[5])
	f.Hold(registry.HoldWorker, "held")
	running := f.TakeItem(jobs[0])
	retried := f.TakeItem(jobs[1])
	f.Settle(registry.Settlement{Lease: retried.Lease, Outcome: registry.OutcomeRetry, Delay: time.Hour, Error: "timeout"})
	f.Renewal("worker-1", registry.Estimate, 3)
	f.Renewal("held", registry.Estimate, 5)
	_, err := f.Store.Renew(f.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{
		ID: "stopping", Capacity: map[registry.Stage]int{registry.Estimate: 7}, Draining: true,
	}})
	f.Must(err)
	got := f.stageQueue(registry.Estimate)
	if got.OldestReady == nil || !got.OldestReady.Equal(begun) {
		f.Errorf("oldest ready %v, want %v", got.OldestReady, begun)
	}
	got.OldestReady = nil
	want := registry.StageQueue{
		Stage: registry.Estimate, Ready: 3, Waiting: 1, WaitsFor: map[registry.Reason]int64{registry.ReasonNotDue: 1}, Held: 1, Running: 1, Capacity: 3, Free: 2, Workers: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("estimate (-want +got):\n%s", diff)
	}
	if got := f.stageQueue(registry.Report); got.Waiting != 1 || got.Ready != 0 || got.OldestReady != nil {
		f.Errorf("report %+v, want the batch that waits for its jobs", got)
	}
	if q := f.Queue(); q.Running != 1 || q.Holds != 2 {
		f.Errorf("queue %+v, want 1 running and 2 holds", q)
	}
	f.Settle(registry.Settlement{Lease: f.TakeItem(jobs[2]).Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "404"})
	if got := f.stageQueue(registry.Estimate); got.Failed != 1 || got.Ready != 2 {
		f.Errorf("estimate %+v, want 1 failed", got)
	}
	f.Done(running.Lease)
	if got := f.stageQueue(registry.Provision); got.Ready != 1 {
		f.Errorf("provision %+v, want 1 ready", got)
	}
	f.Clock.Pass(2 * time.Minute) // the workers are gone
	if got := f.stageQueue(registry.Estimate); got.Capacity != 0 || got.Free != 0 {
		f.Errorf("estimate %+v, want no live slots", got)
	}
}

// queueBacklog: the backlog counts what more workers could start, and nothing that waits for something
// else. While a step runs, its worker is used.
func queueBacklog(f *fixture) {
	stage := registry.Estimate
	_, jobs := f.Batch(6)
	is := func(when string, startable int64, slots int, used float64) {
		f.Helper()
		got := f.stageQueue(stage)
		want := time.Duration(float64(startable) / float64(slots) * float64(time.Second)) // no step was done, so a step counts as 1 s
		if got.Startable() != startable || got.Backlog() != want || got.Utilization() != used {
			f.Errorf("%s: %+v: %d startable, backlog %v, utilization %v; want %d, %v, %v", when, got, got.Startable(), got.Backlog(), got.Utilization(), startable, want, used)
		}
	}
	needs := func(when string, want, others bool) {
		f.Helper()
		q := f.Queue()
		for stage, want := range map[registry.Stage]bool{
			stage: want, registry.Process: others, registry.Report: others, // stages of each deposit go together
			registry.Scan: false, registry.Fixity: false, registry.Deliver: false, // nothing of their own waits
		} {
			if got := q.Needed(stage); got != want {
				f.Errorf("%s: %s is needed: %t, want %t", when, stage, got, want)
			}
		}
	}
	is("no workers", 6, registry.DefaultSlots, 0)
	needs("no workers", true, true)
	f.Renewal("worker-1", stage, 4)
	is("four slots", 6, 4, 0)
	running := f.TakeItem(jobs[0])
	is("one runs", 5, 4, 0.25)
	f.Hold(registry.HoldItem, jobs[1])
	is("one is held", 4, 4, 0.25)
	f.Settle(registry.Settlement{Lease: f.TakeItem(jobs[2]).Lease, Outcome: registry.OutcomeRetry, Delay: time.Hour, Error: "timeout"})
	is("one is tried again later", 3, 4, 0.25)
	f.Settle(registry.Settlement{Lease: f.TakeItem(jobs[3]).Lease, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: "full", Delay: time.Minute})
	is("one waits for room", 2, 4, 0.25)
	f.limit(registry.HoldStage, string(stage), 2)
	is("two may run", 1, 4, 0.25)
	f.limit(registry.HoldStage, string(stage), 1)
	is("one may run", 0, 4, 0.25)
	f.Must(f.Store.RemoveLimit(f.Context(), registry.HoldStage, string(stage), "admin"))
	f.limit(registry.HoldCollection, registrytest.Mnemonic, 2)
	is("two of the collection may run", 1, 4, 0.25)
	f.limit(registry.HoldCollection, "another", 1)
	f.limit(registry.HoldCollection, registrytest.Mnemonic, 1)
	is("one of the collection may run", 0, 4, 0.25)
	f.Must(f.Store.RemoveLimit(f.Context(), registry.HoldCollection, registrytest.Mnemonic, "admin"))
	is("without limits", 2, 4, 0.25)
	if got := f.stageQueue(registry.Report); got.Waiting != 1 || got.Backlog() != 0 {
		f.Errorf("report %+v, backlog %v; want none while the batch waits for its jobs", got, got.Backlog())
	}
	f.Must(f.Store.Drain(f.Context(), registry.Drain{Until: f.Clock.Now().Add(time.Hour), Reason: "update", Actor: "admin"}))
	is("drained", 0, 4, 0.25)
	needs("drained, and one runs", true, false) // the others have no worker to keep
	f.Done(running.Lease)
	is("nothing runs", 0, 4, 0)
	needs("nothing runs", false, false)
	f.Clock.Pass(2 * time.Minute)
	is("the worker is gone", 0, 4, 0)
	f.Release(registry.HoldAll, "")
	is("work and no worker", 3, registry.DefaultSlots, 0) // with the item that waited for room
	needs("work and no worker", true, true)
}

// queueWakes: stages that are needed and have no worker wake, those of a deposit together. What is paused or
// held as a whole wakes nobody, also while a step still runs; neither do items that are held.
func queueWakes(f *fixture) {
	wakes := func(when string, want ...registry.Stage) {
		f.Helper()
		q := f.Queue()
		for _, stage := range []registry.Stage{registry.Expand, registry.Estimate, registry.Process, registry.Scan, registry.Fixity} {
			if got := q.Wakes(stage); got != slices.Contains(want, stage) {
				f.Errorf("%s: %s wakes: %t", when, stage, got)
			}
		}
	}
	wakes("nothing waits")
	_, jobs := f.Batch(2)
	wakes("jobs wait", registry.Expand, registry.Estimate, registry.Process)
	for _, h := range []struct {
		scope registry.HoldScope
		key   string
		left  []registry.Stage
	}{
		{registry.HoldAll, "", nil},
		{registry.HoldIngest, "", nil},
		{registry.HoldCollection, registrytest.Mnemonic, nil},
		{registry.HoldStage, string(registry.Estimate), nil},
		{registry.HoldStage, string(registry.Process), []registry.Stage{registry.Expand, registry.Estimate}},
		{registry.HoldItem, jobs[0], []registry.Stage{registry.Expand, registry.Estimate, registry.Process}},
	} {
		f.Hold(h.scope, h.key)
		wakes(fmt.Sprintf("a hold of scope %s %s", h.scope, h.key), h.left...)
		f.Release(h.scope, h.key)
	}
	f.Renewal("worker-1", registry.Estimate, 4)
	wakes("one has a worker", registry.Expand, registry.Process)
	running := f.TakeItem(jobs[0])
	f.Hold(registry.HoldAll, "")
	wakes("paused, and a step runs")
	f.Release(registry.HoldAll, "")
	f.Hold(registry.HoldItem, jobs[1])
	wakes("a step runs, and the other job is held", registry.Expand, registry.Process)
	f.Done(running.Lease)
	f.Clock.Pass(2 * time.Minute)
	wakes("the next stage has work, and the worker is gone", registry.Expand, registry.Estimate, registry.Process)
}

// queueDrain: while everything is held, with or without a stop of what runs, the queue says how many
// steps still run and when the last one ends. It says nothing about the end that it does not know.
func queueDrain(f *fixture) {
	is := func(when string, left int64, in time.Duration) {
		f.Helper()
		d := f.Queue().Drain
		if d == nil || d.Left != left || (d.Done == nil) != (in == 0) || d.Done != nil && d.Done.Sub(f.Clock.Now()).Round(time.Second) != in {
			f.Errorf("%s: %+v; want %d left, the last one for %v", when, d, left, in)
		}
	}
	_, jobs := f.Batch(2)
	steady, silent := f.TakeItem(jobs[0]), f.TakeItem(jobs[1])
	f.Clock.Pass(time.Minute)
	if d := f.Queue().Drain; d != nil {
		f.Errorf("without a hold on everything there is a drain: %+v", d)
	}
	f.Hold(registry.HoldAll, "")
	is("nothing is known", 2, 0)
	f.Renew(registry.Beat{Lease: steady.Lease, Progress: []registry.Progress{{Title: "bytes", End: 100, Position: 25}}, Advanced: true, DoneBytes: -1, DoneFiles: -1},
		registry.Beat{Lease: silent.Lease, DoneBytes: -1, DoneFiles: -1})
	is("one is silent", 2, 0)
	f.Must(f.Store.Drain(f.Context(), registry.Drain{Until: f.Clock.Now().Add(time.Hour), Reason: "update", Actor: "admin"}))
	is("the silent one is stopped", 2, time.Hour)
	f.Done(silent.Lease)
	is("a quarter took a minute", 1, 3*time.Minute)
	f.Release(registry.HoldAll, "")
	f.Hold(registry.HoldAll, "")
	is("paused only", 1, 3*time.Minute)
	f.Done(steady.Lease)
	is("nothing runs", 0, 0)
}

// queueRung: while a stage has no workers, all items wait in the Registry, and a few messages in
// NSQ.
func queueRung(f *fixture) {
	f.Batch(6)
	if got := f.stageQueue(registry.Estimate); got.Ready != 6 || got.Rung != 0 {
		f.Errorf("estimate %+v, want 6 ready and nothing rung for", got)
	}
	const window = 2
	if got := f.Offered(window); len(got) != window {
		f.Fatalf("%d messages are due, want %d", len(got), window)
	}
	if got := f.stageQueue(registry.Estimate); got.Ready != 6 || got.Rung != window || got.Capacity != 0 {
		f.Errorf("estimate %+v, want 6 ready, %d messages and no slot", got, window)
	}
	f.Take(registry.Estimate, "")
	if got := f.stageQueue(registry.Estimate); got.Ready != 5 || got.Rung != window-1 {
		f.Errorf("estimate %+v, want 5 ready and %d message: the other one was answered", got, window-1)
	}
	f.Clock.Pass(time.Hour)
	if got := f.stageQueue(registry.Estimate); got.Rung != 0 {
		f.Errorf("estimate %+v, want no message that is still waited for", got)
	}
}

func queuePause(f *fixture) {
	waits, runs := f.Submit(), f.Submit()
	c := f.TakeItem(runs)
	f.Hold(registry.HoldAll, "")
	q := f.Queue()
	if q.Paused == nil || q.Paused.Actor != "admin" || q.Paused.Reason != "look at it" || q.Running != 1 || q.Stages[0].Held != 1 {
		f.Errorf("queue %+v, want it paused with one running and one held", q)
	}
	if lost := f.Renew(registrytest.Beat(c.Lease)); len(lost) != 0 {
		f.Errorf("pausing took %v away", lost)
	}
	f.Done(c.Lease)
	if q := f.Queue(); q.Running != 0 {
		f.Errorf("running %d, want 0: drained", q.Running)
	}
	for _, tt := range []struct {
		stage registry.Stage
		id    string
	}{{registry.Expand, waits}, {registry.Report, runs}} {
		if got := f.Refused(tt.stage, tt.id).Reason; got != registry.ReasonHeld {
			f.Errorf("claim: %s, want held", got)
		}
	}
	f.Release(registry.HoldAll, "")
	if q := f.Queue(); q.Paused != nil || q.Stages[0].Ready != 1 {
		f.Errorf("queue %+v, want it to go on", q)
	}
}

func (f *fixture) accept(on bool, reason string) {
	f.Helper()
	f.Must(f.Store.SetAccepting(f.Context(), registry.Accepting{On: on, Reason: reason, Actor: "admin"}))
}

func notAccepting(f *fixture) {
	known := registrytest.Submission()
	known.IdempotencyKey = "k"
	first, err := f.Store.Submit(f.Context(), known)
	f.Must(err)
	f.accept(false, "storage moves")
	_, err = f.Store.Submit(f.Context(), registrytest.Submission())
	var refused *registry.NotAccepting
	if !errors.As(err, &refused) {
		f.Fatalf("submit: %v, want that none are accepted", err)
	}
	want := registry.Accepting{Reason: "storage moves", Actor: "admin", Since: f.Clock.Now()}
	if got := refused.Accepting; got.On || got.Reason != want.Reason || got.Actor != want.Actor || !got.Since.Equal(want.Since) {
		f.Errorf("refused because %+v, want %+v", got, want)
	}
	_, err = f.Store.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{{Key: "a", Submission: registrytest.Submission()}}, Actor: "depositor"})
	if refused = nil; !errors.As(err, &refused) {
		f.Errorf("prepare: %v, want that none are accepted", err)
	}
	if got := f.All(registry.ItemQuery{}); len(got) != 1 {
		f.Errorf("%d items, want that the refused one left nothing", len(got))
	}
	again, err := f.Store.Submit(f.Context(), known) // its answer was lost
	f.Must(err)
	if again.BatchID != first.BatchID {
		f.Errorf("receipt %+v, want that of %s", again, first.BatchID)
	}
	c := f.Take(registry.Expand, first.BatchID) // what is in goes on
	_, err = f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(1))
	f.Must(err)
	f.accept(true, "moved")
	f.Submit()
}

func acceptingTold(f *fixture) {
	told := func() registry.Accepting {
		f.Helper()
		a, err := f.Store.Accepting(f.Context())
		f.Must(err)
		if q := f.Queue().Accepting; q != a {
			f.Errorf("the queue says %+v, want %+v", q, a)
		}
		return a
	}
	if a := told(); !a.On {
		f.Errorf("accepting %+v before anybody said so", a)
	}
	f.accept(false, "one")
	since := f.Clock.Now()
	f.Clock.Pass(time.Hour)
	f.Must(f.Store.SetAccepting(f.Context(), registry.Accepting{Reason: "two", Actor: "boss"}))
	if a := told(); a.On || a.Reason != "two" || a.Actor != "boss" || !a.Since.Equal(since) {
		f.Errorf("accepting %+v, want off since %v because of two", a, since)
	}
	f.accept(true, "three")
	if a := told(); !a.On || a.Reason != "three" || !a.Since.Equal(f.Clock.Now()) {
		f.Errorf("accepting %+v, want on since now", a)
	}
	var types []string
	all, err := f.Store.Events(f.Context(), "", 0, 500)
	f.Must(err)
	for _, e := range all {
		if e.Type == "accepting" {
			types = append(types, e.Actor)
		}
	}
	if !slices.Equal(types, []string{"admin", "boss", "admin"}) {
		f.Errorf("events by %v, want one for each act", types)
	}
}

// oneCopyCounted: a collection with only one storage is counted, since its objects have no second
// copy.
func oneCopyCounted(f *fixture) {
	before := f.Queue().OneCopy
	for name, storages := range map[string][]string{"none-named": nil, "one": {"second"}, "two": {registry.DefaultStorage, "second"}} {
		f.Must(f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: name, Profile: registry.Profile{Owner: registrytest.Owner, Storages: storages}}, "tester"))
	}
	if got := f.Queue().OneCopy - before; got != 2 {
		f.Errorf("%d more collections with one copy, want 2", got)
	}
}
