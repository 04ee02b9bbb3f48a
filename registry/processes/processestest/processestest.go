// Package processestest is the conformance kit of processes. It drives their steps by hand, on a
// clock that only the tests move. P numbers are those of the requirements about progressor; package
// process has the others.
package processestest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		registrytest.NewTopic("process", processTests()),
		registrytest.NewTopic("process_key", keyTests()),
		registrytest.NewTopic("process_fault", faultTests()),
	}
}

// fixture adds this kit's helpers.
type fixture struct{ *registrytest.Fixture }

// tests are the tests of a topic by their names.
type tests = map[string]func(*fixture)

const namespace = "curation"

var stage = registry.ProcessStep.Of(namespace)

func key(id string) registry.ProcessKey {
	return registry.ProcessKey{Namespace: namespace, ProcessID: id}
}

func (f *fixture) announced() {
	f.Helper()
	f.Must(f.Store.AnnounceNamespaces(f.Context(), []registry.Namespace{{Name: namespace, Title: "Curation"}}))
}

// begun starts process "a", whose first step ends as r says.
func (f *fixture) begun(r registry.StepResult) {
	f.Helper()
	f.announced()
	_, err := f.Store.InitProcess(f.Context(), registry.NewProcess{ProcessKey: key("a"), Actor: "curator"})
	f.Must(err)
	f.ends(f.next(registry.StepInit), r)
}

// next claims the step that may start now, which must be of a kind.
func (f *fixture) next(kind registry.StepKind) registry.Claim {
	f.Helper()
	c := f.Take(stage, "")
	var spec registry.StepSpec
	f.Must(json.Unmarshal(c.Item.Spec, &spec))
	if spec.Kind != kind {
		f.Fatalf("the next step is a %s, want a %s", spec.Kind, kind)
	}
	return c
}

// idle expects that no step may start now.
func (f *fixture) idle() {
	f.Helper()
	f.Refused(stage, "")
}

// ends settles a step as done.
func (f *fixture) ends(c registry.Claim, r registry.StepResult) {
	f.Helper()
	f.Must(f.settle(c, r))
}

func (f *fixture) settle(c registry.Claim, r registry.StepResult) error {
	f.Helper()
	text, err := json.Marshal(r)
	f.Must(err)
	_, err = f.Store.Settle(f.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{registry.ResultStep: text}})
	return err
}

func (f *fixture) fails(c registry.Claim, text string) {
	f.Helper()
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Error: text, Class: registry.SystemFault})
}

func (f *fixture) call(args string, change ...func(*registry.NewCall)) registry.Answer {
	f.Helper()
	a, err := f.Store.CallProcess(f.Context(), newCall(args, change...))
	f.Must(err)
	return a
}

func newCall(args string, change ...func(*registry.NewCall)) registry.NewCall {
	n := registry.NewCall{ProcessKey: key("a"), Args: json.RawMessage(args), Actor: "curator"}
	for _, c := range change {
		c(&n)
	}
	return n
}

func keyed(k string) func(*registry.NewCall) {
	return func(n *registry.NewCall) { n.IdempotencyKey = k }
}

func (f *fixture) process() registry.ProcessInfo {
	f.Helper()
	p, err := f.Store.Process(f.Context(), key("a"), registry.HistoryRange{})
	f.Must(err)
	return p
}

// is expects a status of process "a".
func (f *fixture) is(want registry.ProcessStatus) registry.ProcessInfo {
	f.Helper()
	p := f.process()
	if p.Status != want {
		f.Fatalf("process %+v, want it %s", p, want)
	}
	return p
}

func (f *fixture) answer(a registry.Answer) registry.Answer {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	cancel() // it looks and does not wait
	got, err := f.Store.AwaitAnswer(ctx, a.ItemID)
	f.Must(err)
	return got
}

func (f *fixture) trace() (steps []string) {
	f.Helper()
	page, err := f.Store.TraceProcess(f.Context(), registry.TraceQuery{ProcessKey: key("a")})
	f.Must(err)
	for _, s := range page.Rows {
		steps = append(steps, string(s.Kind)+" "+string(s.Status))
	}
	return steps
}

func (f *fixture) traces(want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.trace()); diff != "" {
		f.Errorf("steps (-want +got):\n%s", diff)
	}
}

func events(payloads ...string) (out []registry.NewProcessEvent) {
	for _, p := range payloads {
		out = append(out, registry.NewProcessEvent{Payload: json.RawMessage(p)})
	}
	return out
}

// at is the result of a step that sets a timer.
func (f *fixture) at(d time.Duration) registry.StepResult {
	return registry.StepResult{Then: registry.StepThen{Do: registry.ThenContinue, At: f.Clock.Now().Add(d)}}
}

func do(d registry.ThenDo) registry.StepResult {
	return registry.StepResult{Then: registry.StepThen{Do: d}}
}

func processTests() tests {
	return tests{
		"P1_timers_fire_at_their_time_and_at_once":          timers,
		"P2_a_call_goes_before_an_overdue_timer":            overdue,
		"P3_a_short_call_leaves_the_timer_its_time":         keepsTime,
		"P4_ranges_of_the_history":                          ranges,
		"P5_a_call_replaces_the_timer":                      replaces,
		"P6_a_call_unsets_the_timer":                        unsets,
		"P7_P8_a_call_during_a_step_goes_before_its_timer":  postponed,
		"P9_calls_run_one_at_a_time_in_their_order":         oneByOne,
		"P10_a_repair_starts_the_failed_timer_again":        repairs,
		"P11_a_timer_is_retried_up_to_its_attempts":         retried,
		"P12_a_call_is_not_retried_and_a_repair_may_fail":   repairFails,
		"P13_P14_processes_are_removed":                     removed,
		"P15_P20_P21_imports":                               imports,
		"P17_P18_a_repair_without_a_step":                   retries,
		"P19_a_lost_step_runs_again":                        lost,
		"a_call_overtakes_a_timer_that_waits_for_its_retry": overtakes,
		"a_cancelled_call_leaves_the_order":                 cancelledCall,
		"a_cancelled_timer_puts_its_process_into_error":     cancelledTimer,
		"a_process_that_is_done_takes_no_calls":             done,
		"a_person_removes_a_process_that_runs":              removedByPerson,
		"the_list_finds_states_and_errors":                  lists,
		"what_does_not_exist_is_said":                       unknown,
		"a_bad_result_changes_nothing":                      badResult,
		"a_step_s_result_is_not_kept_beside_others":         resultBesideOthers,
		"every_namespace_is_in_the_queue":                   inQueue,
	}
}

func timers(f *fixture) {
	f.begun(registry.StepResult{
		Events: events(`"one"`), State: json.RawMessage(`{"n":1}`), Metadata: json.RawMessage(`{"k":"v"}`),
		Then: registry.StepThen{Do: registry.ThenContinue, At: f.Clock.Now().Add(2 * time.Second)},
	})
	p := f.is(registry.ProcessRunning)
	if p.Timer == nil || p.Timer.Kind != registry.StepTimeout || p.Timer.At.Sub(f.Clock.Now()) != 2*time.Second || p.PreviousStatus != registry.ProcessInit {
		f.Errorf("process %+v", p)
	}
	f.idle()
	f.Clock.Pass(2 * time.Second)
	c := f.next(registry.StepTimeout)
	seen, err := f.Store.ProcessOf(f.Context(), c.Lease, registry.HistoryRange{})
	f.Must(err)
	if string(seen.State) != `{"n":1}` || string(seen.Metadata) != `{"k":"v"}` || len(seen.History) != 1 {
		f.Errorf("the step sees %+v", seen)
	}
	second := f.at(0)
	second.Events = events(`"two"`)
	f.ends(c, second)
	f.ends(f.next(registry.StepTimeout), registry.StepResult{})
	p = f.process()
	var got []string
	for _, e := range p.History {
		got = append(got, string(e.Payload))
	}
	if !slices.Equal(got, []string{`"one"`, `"two"`}) || p.LastEventID != 2 || p.History[1].ItemID != c.Item.ID || p.Timer != nil || string(p.State) != `{"n":1}` {
		f.Errorf("process %+v", p)
	}
	f.traces("init completed", "timeout completed", "timeout completed")
}

func overdue(f *fixture) {
	f.begun(f.at(2 * time.Second))
	a := f.call(`1`)
	c := f.next(registry.StepCall)
	f.Clock.Pass(3 * time.Second)
	f.idle() // the timer is overdue, and waits for the call
	f.ends(c, registry.StepResult{Events: events(`"called"`), Response: json.RawMessage(`"yes"`)})
	if got := f.answer(a); string(got.Response) != `"yes"` || got.Status != registry.Completed || got.Kind != registry.StepCall {
		f.Errorf("answer %+v", got)
	}
	seen, err := f.Store.ProcessOf(f.Context(), f.next(registry.StepTimeout).Lease, registry.HistoryRange{})
	f.Must(err)
	if len(seen.History) != 1 || string(seen.History[0].Payload) != `"called"` {
		f.Errorf("the timer sees %+v", seen.History)
	}
}

func keepsTime(f *fixture) {
	f.begun(f.at(2 * time.Second))
	f.call(`1`)
	c := f.next(registry.StepCall)
	f.Clock.Pass(500 * time.Millisecond)
	f.ends(c, registry.StepResult{})
	f.idle()
	f.Clock.Pass(1499 * time.Millisecond)
	f.idle()
	f.Clock.Pass(time.Millisecond)
	f.next(registry.StepTimeout)
}

func ranges(f *fixture) {
	f.begun(registry.StepResult{Events: events(`1`, `2`, `3`, `4`)})
	want := registry.HistoryRange{Offset: 1, Limit: 2}
	f.call(`1`, func(n *registry.NewCall) { n.Range = want })
	c := f.next(registry.StepCall)
	var spec registry.StepSpec
	f.Must(json.Unmarshal(c.Item.Spec, &spec))
	if spec.Range != want {
		f.Errorf("range %+v", spec.Range)
	}
	for _, one := range []struct {
		of   registry.HistoryRange
		want []int64
	}{
		{want, []int64{2, 3}},
		{registry.HistoryRange{}, []int64{1, 2, 3, 4}},
		{registry.HistoryRange{Offset: 5, Limit: 2, Backward: true}, []int64{4, 3}},
		{registry.HistoryRange{Limit: 1, Backward: true}, []int64{4}},
		{registry.HistoryRange{None: true}, nil},
		{registry.HistoryRange{Offset: 4}, nil},
	} {
		seen, err := f.Store.ProcessOf(f.Context(), c.Lease, one.of)
		f.Must(err)
		p, err := f.Store.Process(f.Context(), key("a"), one.of)
		f.Must(err)
		var got, read []int64
		for _, e := range seen.History {
			got = append(got, e.ID)
		}
		for _, e := range p.History {
			read = append(read, e.ID)
		}
		if !slices.Equal(got, one.want) || !slices.Equal(read, one.want) || seen.LastEventID != 4 {
			f.Errorf("range %+v: %v and %v, want %v", one.of, got, read, one.want)
		}
	}
}

func replaces(f *fixture) {
	f.begun(registry.StepResult{Then: registry.StepThen{Do: registry.ThenRemove, At: f.Clock.Now().Add(2 * time.Second)}})
	f.call(`1`)
	f.ends(f.next(registry.StepCall), f.at(0))
	f.ends(f.next(registry.StepTimeout), registry.StepResult{})
	f.traces("init completed", "remove cancelled", "call completed", "timeout completed")
	f.Clock.Pass(time.Minute)
	f.idle()
	f.is(registry.ProcessRunning)
}

func unsets(f *fixture) {
	f.begun(f.at(2 * time.Second))
	f.call(`1`)
	f.ends(f.next(registry.StepCall), do(registry.ThenSuspend))
	f.Clock.Pass(time.Hour)
	f.idle()
	if p := f.is(registry.ProcessRunning); p.Timer != nil {
		f.Errorf("process %+v", p)
	}
}

func postponed(f *fixture) {
	f.begun(f.at(0))
	timer := f.next(registry.StepTimeout)
	f.call(`1`)
	f.idle()
	f.ends(timer, f.at(0))
	call := f.next(registry.StepCall)
	f.idle()
	f.ends(call, registry.StepResult{})
	timer = f.next(registry.StepTimeout)
	f.call(`2`)
	f.ends(timer, registry.StepResult{}) // it sets no timer
	f.ends(f.next(registry.StepCall), registry.StepResult{})
	f.idle()
	f.traces("init completed", "timeout completed", "call completed", "timeout completed", "call completed")
}

func oneByOne(f *fixture) {
	f.begun(f.at(0))
	timer := f.next(registry.StepTimeout)
	const n = 10
	var all []registry.Answer
	for i := range n {
		all = append(all, f.call(string(rune('0'+i))))
	}
	f.idle()
	f.ends(timer, f.at(0))
	for i := range n {
		c := f.next(registry.StepCall)
		if c.Item.ID != all[i].ItemID {
			f.Errorf("call %d is item %s, want %s", i, c.Item.ID, all[i].ItemID)
		}
		f.idle()
		f.ends(c, registry.StepResult{Events: events(string(rune('0' + i)))})
	}
	f.next(registry.StepTimeout)
	if p := f.process(); p.LastEventID != n || len(p.History) != n {
		f.Errorf("process %+v", p)
	}
}

func repairs(f *fixture) {
	r := f.at(0)
	f.begun(r)
	f.fails(f.next(registry.StepTimeout), "the tape is gone")
	p := f.is(registry.ProcessFailed)
	if p.Detail != "the tape is gone" || p.CorruptedBy == "" || p.PreviousStatus != registry.ProcessRunning {
		f.Errorf("process %+v", p)
	}
	_, err := f.Store.CallProcess(f.Context(), newCall(`1`))
	if wrong := new(registry.ProcessStateError); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "holdfast process repair curation a") {
		f.Errorf("call: %v", err)
	}
	_, err = f.Store.Command(f.Context(), registry.Command{ItemID: p.CorruptedBy, Act: registry.ActRequeue, Actor: "admin"})
	if !errors.As(err, new(*registry.TransitionError)) || !strings.Contains(err.Error(), "process repair") {
		f.Errorf("requeue: %v", err)
	}
	_, err = f.Store.RepairProcess(f.Context(), newCall(`"tape found"`))
	f.Must(err)
	_, err = f.Store.RepairProcess(f.Context(), newCall(`"again"`))
	if wrong := new(registry.ProcessStateError); !errors.As(err, &wrong) || wrong.Repairing == "" {
		f.Errorf("a second repair: %v", err)
	}
	f.ends(f.next(registry.StepRepair), registry.StepResult{})
	if p := f.is(registry.ProcessRunning); p.Detail != "" || p.CorruptedBy != "" || p.PreviousStatus != registry.ProcessFailed {
		f.Errorf("process %+v", p)
	}
	c := f.next(registry.StepTimeout)
	if c.Item.Tries != 0 {
		f.Errorf("the timer has %d tries", c.Item.Tries)
	}
	f.ends(c, registry.StepResult{})
	_, err = f.Store.RepairProcess(f.Context(), newCall(`1`))
	if wrong := new(registry.ProcessStateError); !errors.As(err, &wrong) {
		f.Errorf("a repair of what is not broken: %v", err)
	}
}

func retried(f *fixture) {
	f.begun(f.at(0))
	for range 2 {
		c := f.next(registry.StepTimeout)
		f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeRetry, Delay: time.Second, Error: "no route", Class: registry.SystemFault, MaxAttempts: 3})
		f.is(registry.ProcessRunning)
		f.idle()
		f.Clock.Pass(time.Second)
	}
	c := f.next(registry.StepTimeout)
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeRetry, Error: "no route", Class: registry.SystemFault, MaxAttempts: 3})
	if p := f.is(registry.ProcessFailed); p.Detail != "no route" || len(f.AttemptsOf(c.Item.ID)) != 3 {
		f.Errorf("process %+v", p)
	}
}

func repairFails(f *fixture) {
	f.begun(registry.StepResult{Metadata: json.RawMessage(`{"k":"v"}`)})
	a := f.call(`1`)
	waits := f.call(`2`)
	f.fails(f.next(registry.StepCall), "the first fault")
	f.is(registry.ProcessFailed)
	if got := f.answer(a); got.Status != registry.Failed || got.Error != "the first fault" {
		f.Errorf("answer %+v", got)
	}
	if got := f.answer(waits); got.Status != registry.Cancelled || !strings.Contains(got.Error, "its process is in error") {
		f.Errorf("the answer of the call behind it: %+v", got)
	}
	_, err := f.Store.RepairProcess(f.Context(), newCall(`1`))
	f.Must(err)
	f.fails(f.next(registry.StepRepair), "the second fault")
	if p := f.is(registry.ProcessFailed); p.Detail != "the first fault" || string(p.Metadata) != `{"k":"v"}` || p.CorruptedBy != a.ItemID {
		f.Errorf("process %+v", p)
	}
	_, err = f.Store.RepairProcess(f.Context(), newCall(`2`))
	f.Must(err)
	f.ends(f.next(registry.StepRepair), registry.StepResult{})
	f.is(registry.ProcessRunning)
	f.idle()
}

func removed(f *fixture) {
	f.begun(registry.StepResult{Events: events(`1`), Then: registry.StepThen{Do: registry.ThenRemove, At: f.Clock.Now().Add(2 * time.Second)}})
	f.is(registry.ProcessRunning)
	f.Clock.Pass(2 * time.Second)
	f.ends(f.next(registry.StepRemove), registry.StepResult{})
	gone := func() {
		f.Helper()
		_, err := f.Store.Process(f.Context(), key("a"), registry.HistoryRange{})
		f.Is(err, registry.ErrNotFound)
		_, err = f.Store.TraceProcess(f.Context(), registry.TraceQuery{ProcessKey: key("a")})
		f.Is(err, registry.ErrNotFound)
	}
	gone()
	f.begun(registry.StepResult{}) // the id is free
	if p := f.process(); len(p.History) != 0 || p.LastEventID != 0 {
		f.Errorf("process %+v", p)
	}
	a, waits := f.call(`1`), f.call(`2`)
	r := do(registry.ThenRemove)
	r.Response = json.RawMessage(`"bye"`)
	f.ends(f.next(registry.StepCall), r)
	gone()
	if got := f.answer(a); string(got.Response) != `"bye"` {
		f.Errorf("answer %+v", got)
	}
	if got := f.answer(waits); got.Status != registry.Cancelled {
		f.Errorf("answer %+v", got)
	}
	f.idle()
}

func imports(f *fixture) {
	f.announced()
	n := registry.PutProcess{
		ProcessKey: key("a"), State: json.RawMessage(`1`), Metadata: json.RawMessage(`{}`), Actor: "admin",
		History: []registry.ProcessEvent{{ID: 1, Payload: json.RawMessage(`1`)}, {ID: 2, Payload: json.RawMessage(`2`)}, {ID: 40000, Payload: json.RawMessage(`3`)}},
		Timer:   &registry.ProcessTimer{Kind: registry.StepTimeout, At: f.Clock.Now().Add(time.Second)},
	}
	p, err := f.Store.PutProcess(f.Context(), n)
	f.Must(err)
	if p.Status != registry.ProcessRunning || p.LastEventID != 40000 || p.Timer == nil {
		f.Errorf("process %+v", p)
	}
	_, err = f.Store.PutProcess(f.Context(), n)
	f.Is(err, registry.ErrProcessExists)
	_, err = f.Store.InitProcess(f.Context(), registry.NewProcess{ProcessKey: key("a")})
	f.Is(err, registry.ErrProcessExists)
	f.idle()
	f.Clock.Pass(time.Second)
	f.ends(f.next(registry.StepTimeout), registry.StepResult{Events: events(`4`)})
	if p := f.process(); len(p.History) != 4 || p.History[3].ID != 40001 || string(p.State) != `1` {
		f.Errorf("process %+v", p)
	}
	n.ProcessKey, n.Timer = key("b"), &registry.ProcessTimer{Kind: registry.StepRemove}
	_, err = f.Store.PutProcess(f.Context(), n)
	f.Must(err)
	f.ends(f.next(registry.StepRemove), registry.StepResult{})
	_, err = f.Store.Process(f.Context(), key("b"), registry.HistoryRange{})
	f.Is(err, registry.ErrNotFound)
	n.ProcessKey, n.Timer, n.History = key("c"), nil, []registry.ProcessEvent{{ID: 2, Payload: json.RawMessage(`1`)}, {ID: 2, Payload: json.RawMessage(`1`)}}
	_, err = f.Store.PutProcess(f.Context(), n)
	f.Is(err, registry.ErrInvalid)
}

func retries(f *fixture) {
	f.begun(f.at(0))
	f.fails(f.next(registry.StepTimeout), "no")
	p, err := f.Store.RetryProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a"), Context: json.RawMessage(`"new"`), Actor: "admin"})
	f.Must(err)
	if p.Status != registry.ProcessFailed || p.Timer == nil {
		f.Errorf("process %+v", p)
	}
	_, err = f.Store.RetryProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a")})
	if wrong := new(registry.ProcessStateError); !errors.As(err, &wrong) || wrong.Repairing != p.Timer.ItemID {
		f.Errorf("a second repair: %v", err)
	}
	c := f.next(registry.StepTimeout)
	if !strings.Contains(string(c.Item.Spec), `"context":"new"`) {
		f.Errorf("spec %s", c.Item.Spec)
	}
	f.ends(c, registry.StepResult{Events: events(`1`)})
	if p := f.is(registry.ProcessRunning); p.PreviousStatus != registry.ProcessFailed || p.Detail != "" {
		f.Errorf("process %+v", p)
	}
	f.call(`1`)
	f.fails(f.next(registry.StepCall), "no")
	p, err = f.Store.RetryProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a"), Actor: "admin"})
	f.Must(err)
	if p.Status != registry.ProcessRunning || p.LastEventID != 1 || p.Detail != "" {
		f.Errorf("process %+v", p)
	}
	f.idle()
}

func lost(f *fixture) {
	f.begun(registry.StepResult{})
	a := f.call(`1`)
	dead := f.next(registry.StepCall)
	for f.Clock.Pass(registrytest.Lease / 3); len(f.Sweep(registrytest.Lease)) == 0; {
		f.Clock.Pass(registrytest.Lease / 3)
	}
	f.is(registry.ProcessRunning)
	again := f.next(registry.StepCall)
	f.Is(f.settle(dead, registry.StepResult{Events: events(`"late"`)}), registry.ErrClaimLost)
	f.ends(again, registry.StepResult{Events: events(`"once"`), Response: json.RawMessage(`1`)})
	f.Is(f.settle(dead, registry.StepResult{Events: events(`"later"`)}), registry.ErrClaimLost)
	if p := f.process(); len(p.History) != 1 || string(p.History[0].Payload) != `"once"` || f.answer(a).Status != registry.Completed {
		f.Errorf("process %+v", p)
	}
}

func overtakes(f *fixture) {
	f.begun(f.at(0))
	timer := f.next(registry.StepTimeout)
	f.call(`1`)
	f.call(`2`)
	f.Settle(registry.Settlement{Lease: timer.Lease, Outcome: registry.OutcomeRetry, Delay: time.Hour, Error: "no", Class: registry.SystemFault, MaxAttempts: 3})
	f.ends(f.next(registry.StepCall), registry.StepResult{})
	f.Clock.Pass(time.Hour)
	c := f.next(registry.StepCall)
	f.idle()
	f.ends(c, registry.StepResult{})
	if again := f.next(registry.StepTimeout); again.Item.ID != timer.Item.ID || again.Item.Tries != 1 {
		f.Errorf("timer %+v", again.Item)
	}
}

func cancelledCall(f *fixture) {
	f.begun(f.at(time.Second))
	first, second, third := f.call(`1`), f.call(`2`), f.call(`3`)
	c := f.next(registry.StepCall)
	f.Command(second.ItemID, registry.ActCancel, "")
	f.idle() // the third waits for the first now
	f.Command(third.ItemID, registry.ActCancel, "")
	fourth := f.call(`4`)
	f.idle()
	f.is(registry.ProcessRunning)
	f.Clock.Pass(time.Second)
	f.idle()
	f.ends(c, registry.StepResult{})
	c = f.next(registry.StepCall)
	if c.Item.ID != fourth.ItemID || f.answer(first).Status != registry.Completed || f.answer(second).Status != registry.Cancelled {
		f.Errorf("item %+v", c.Item)
	}
	f.idle()
	f.ends(c, registry.StepResult{})
	f.next(registry.StepTimeout)
}

func cancelledTimer(f *fixture) {
	f.begun(f.at(time.Hour))
	f.Command(f.process().Timer.ItemID, registry.ActCancel, "")
	if p := f.is(registry.ProcessFailed); !strings.Contains(p.Detail, "cancelled by") {
		f.Errorf("process %+v", p)
	}
	_, err := f.Store.RetryProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a")})
	f.Must(err)
	c := f.next(registry.StepTimeout)
	f.Confirm(c.Item.ID, registry.ActAbort) // while it runs
	f.is(registry.ProcessFailed)
	f.Is(f.settle(c, registry.StepResult{Events: events(`1`)}), registry.ErrClaimLost)
}

func done(f *fixture) {
	f.begun(f.at(time.Hour))
	f.call(`1`)
	waits := f.call(`2`)
	f.ends(f.next(registry.StepCall), do(registry.ThenDone))
	if p := f.is(registry.ProcessDone); p.Timer != nil || f.answer(waits).Status != registry.Cancelled {
		f.Errorf("process %+v", p)
	}
	_, err := f.Store.CallProcess(f.Context(), newCall(`3`))
	if wrong := new(registry.ProcessStateError); !errors.As(err, &wrong) || wrong.Status != registry.ProcessDone {
		f.Errorf("%v", err)
	}
	f.Clock.Pass(time.Hour)
	f.idle()
}

func removedByPerson(f *fixture) {
	f.begun(f.at(time.Hour))
	a := f.call(`1`)
	c := f.next(registry.StepCall)
	f.Must(f.Store.RemoveProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a"), Actor: "admin", Reason: "by mistake"}))
	f.Is(f.settle(c, registry.StepResult{Events: events(`1`)}), registry.ErrClaimLost)
	_, err := f.Store.Process(f.Context(), key("a"), registry.HistoryRange{})
	f.Is(err, registry.ErrNotFound)
	if got := f.answer(a); got.Status != registry.Cancelled || !strings.Contains(got.Error, "by mistake") {
		f.Errorf("answer %+v", got)
	}
	f.Is(f.Store.RemoveProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a")}), registry.ErrNotFound)
}

func lists(f *fixture) {
	f.announced()
	for _, id := range []string{"a", "b", "c"} {
		_, err := f.Store.InitProcess(f.Context(), registry.NewProcess{ProcessKey: key(id), Collection: registrytest.Mnemonic})
		f.Must(err)
	}
	f.fails(f.next(registry.StepInit), "100 % Wrong")
	f.ends(f.next(registry.StepInit), registry.StepResult{})
	for _, one := range []struct {
		q    registry.ProcessQuery
		want string
	}{
		{registry.ProcessQuery{}, "c b a"},
		{registry.ProcessQuery{Namespace: namespace, Status: registry.ProcessFailed}, "a"},
		{registry.ProcessQuery{Namespace: "other"}, ""},
		{registry.ProcessQuery{Status: registry.ProcessInit}, "c"},
		{registry.ProcessQuery{Text: "100 % wrong"}, "a"},
		{registry.ProcessQuery{Text: "1%g"}, ""},
		{registry.ProcessQuery{Within: []string{}}, ""},
		{registry.ProcessQuery{Within: []string{registrytest.Mnemonic}, Limit: 2}, "c b a"},
	} {
		var got []string
		for {
			page, err := f.Store.Processes(f.Context(), one.q)
			f.Must(err)
			for _, p := range page.Rows {
				got = append(got, p.ProcessID)
			}
			if one.q.After = page.Next; page.Next == "" {
				break
			}
		}
		if strings.Join(got, " ") != one.want {
			f.Errorf("%+v: %v, want %s", one.q, got, one.want)
		}
	}
}

func unknown(f *fixture) {
	_, err := f.Store.InitProcess(f.Context(), registry.NewProcess{ProcessKey: key("a")})
	if wrong := new(registry.UnknownNamespaceError); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "start the program that serves it") {
		f.Errorf("%v", err)
	}
	f.announced()
	_, err = f.Store.CallProcess(f.Context(), newCall(`1`))
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.Process(f.Context(), key("a"), registry.HistoryRange{})
	f.Is(err, registry.ErrNotFound)
	for _, bad := range []registry.ProcessKey{{}, {Namespace: namespace}, {Namespace: "A b", ProcessID: "a"}, {Namespace: namespace, ProcessID: "a\n"}, key(strings.Repeat("a", 257))} {
		_, err := f.Store.InitProcess(f.Context(), registry.NewProcess{ProcessKey: bad})
		f.Is(err, registry.ErrInvalid)
	}
	f.Is(f.Store.AnnounceNamespaces(f.Context(), []registry.Namespace{{Name: "A b"}}), registry.ErrInvalid)
	_, err = f.Store.AwaitAnswer(f.Context(), f.Task())
	f.Is(err, registry.ErrNotFound)
}

func badResult(f *fixture) {
	f.begun(registry.StepResult{})
	f.call(`1`)
	c := f.next(registry.StepCall)
	f.Is(f.settle(c, registry.StepResult{Then: registry.StepThen{Do: "dance"}}), registry.ErrInvalid)
	f.Is(f.settle(c, registry.StepResult{Events: make([]registry.NewProcessEvent, registry.MostProcessEvents+1)}), registry.ErrInvalid)
	_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{registry.ResultStep: json.RawMessage(`5`)}})
	f.Is(err, registry.ErrInvalid)
	f.ends(c, registry.StepResult{Events: events(`1`)})
	if p := f.is(registry.ProcessRunning); p.LastEventID != 1 {
		f.Errorf("process %+v", p)
	}
}

// resultBesideOthers: whether a step succeeds or not, what it makes of its process is no result that
// the item keeps. Other items may have a result of that name.
func resultBesideOthers(f *fixture) {
	f.begun(registry.StepResult{})
	results := func() map[string]json.RawMessage {
		return map[string]json.RawMessage{registry.ResultStep: json.RawMessage(`{"response":1}`), "own": json.RawMessage(`2`)}
	}
	for _, o := range []registry.Outcome{registry.OutcomeDone, registry.OutcomeFailed} {
		f.call(`1`)
		c := f.next(registry.StepCall)
		f.Settle(registry.Settlement{Lease: c.Lease, Outcome: o, Error: "no", Class: registry.SystemFault, Results: results()})
		got := f.Item(c.Item.ID).Results
		if _, kept := got[registry.ResultStep]; kept || string(got["own"]) != `2` {
			f.Errorf("results of a step that is %s: %s", o, got)
		}
	}
	id := f.Task()
	c := f.Take(registry.Run.Of(registrytest.TaskFunction.Name), "")
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone, Results: results()})
	if got := f.Item(id).Results; len(got) != 2 {
		f.Errorf("results of a task: %s", got)
	}
}

func inQueue(f *fixture) {
	f.announced()
	_, err := f.Store.InitProcess(f.Context(), registry.NewProcess{ProcessKey: key("a")})
	f.Must(err)
	for _, s := range f.Queue().Stages {
		if s.Stage == stage && s.Ready == 1 {
			return
		}
	}
	f.Errorf("stages %+v", f.Queue().Stages)
}

func keyTests() tests {
	return tests{
		"a_repeat_gets_the_stored_answer":           repeats,
		"a_repeat_joins_a_call_in_flight":           joins,
		"two_simultaneous_first_calls_are_one_call": simultaneous,
		"a_key_is_bound_to_its_arguments":           bound,
		"a_cancelled_call_answers_so":               cancelledAnswer,
		"start_import_repair_and_remove_repeat":     others,
	}
}

func repeats(f *fixture) {
	f.begun(registry.StepResult{})
	a := f.call(`1`, keyed("k"))
	f.ends(f.next(registry.StepCall), registry.StepResult{Response: json.RawMessage(`"yes"`)})
	if again := f.call(`1`, keyed("k")); again.ItemID != a.ItemID || string(again.Response) != `"yes"` {
		f.Errorf("answer %+v", again)
	}
	f.idle()
	failing := f.call(`2`, keyed("l"))
	f.fails(f.next(registry.StepCall), "no")
	if again := f.call(`2`, keyed("l")); again.ItemID != failing.ItemID || again.Error != "no" { // although the process is in error
		f.Errorf("answer %+v", again)
	}
}

func joins(f *fixture) {
	f.begun(registry.StepResult{})
	a := f.call(`1`, keyed("k"))
	c := f.next(registry.StepCall)
	if again := f.call(`1`, keyed("k")); again.ItemID != a.ItemID || again.Status != registry.Running {
		f.Errorf("answer %+v", again)
	}
	got := make(chan registry.Answer, 2)
	for range cap(got) {
		go func() {
			a, _ := f.Store.AwaitAnswer(f.Context(), a.ItemID)
			got <- a
		}()
	}
	f.ends(c, registry.StepResult{Response: json.RawMessage(`"yes"`)})
	for range cap(got) {
		if a := <-got; string(a.Response) != `"yes"` {
			f.Errorf("answer %+v", a)
		}
	}
}

func simultaneous(f *fixture) {
	f.begun(registry.StepResult{})
	var all sync.WaitGroup
	ids := make(chan string, 8)
	for range cap(ids) {
		all.Go(func() {
			a, err := f.Store.CallProcess(f.Context(), newCall(`1`, keyed("k")))
			if err != nil {
				f.Error(err)
			}
			ids <- a.ItemID
		})
	}
	all.Wait()
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			f.Errorf("items %s and %s", first, id)
		}
	}
	f.traces("init completed", "call pending")
}

func bound(f *fixture) {
	f.begun(registry.StepResult{})
	f.call(`1`, keyed("k"))
	for _, other := range []registry.NewCall{
		newCall(`2`, keyed("k")),
		newCall(`1`, keyed("k"), func(n *registry.NewCall) { n.ProcessID = "b" }),
		newCall(`1`, keyed("k"), func(n *registry.NewCall) { n.Range.Limit = 1 }),
	} {
		_, err := f.Store.CallProcess(f.Context(), other)
		f.Is(err, registry.ErrIdempotencyConflict)
	}
	_, err := f.Store.RepairProcess(f.Context(), newCall(`1`, keyed("k")))
	f.Is(err, registry.ErrIdempotencyConflict)
	f.traces("init completed", "call pending")
}

func cancelledAnswer(f *fixture) {
	f.begun(registry.StepResult{})
	a := f.call(`1`, keyed("k"))
	f.Command(a.ItemID, registry.ActCancel, "")
	again := f.call(`1`, keyed("k"))
	if again.Status != registry.Cancelled || !strings.Contains(again.Error, "cancelled by") {
		f.Errorf("answer %+v", again)
	}
	if got, err := f.Store.AwaitAnswer(f.Context(), a.ItemID); err != nil || got.Status != registry.Cancelled {
		f.Errorf("answer %+v, %v", got, err)
	}
	f.is(registry.ProcessRunning)
}

func others(f *fixture) {
	f.announced()
	n := registry.NewProcess{ProcessKey: key("a"), Args: json.RawMessage(`1`), IdempotencyKey: "init"}
	a, err := f.Store.InitProcess(f.Context(), n)
	f.Must(err)
	f.fails(f.next(registry.StepInit), "no")
	if again, err := f.Store.InitProcess(f.Context(), n); err != nil || again.ItemID != a.ItemID || again.Error != "no" {
		f.Errorf("answer %+v, %v", again, err)
	}
	act := registry.ProcessAct{ProcessKey: key("a"), IdempotencyKey: "retry"}
	for range 2 {
		if p, err := f.Store.RetryProcess(f.Context(), act); err != nil || p.Status != registry.ProcessRunning {
			f.Errorf("process %+v, %v", p, err)
		}
	}
	put := registry.PutProcess{ProcessKey: key("b"), State: json.RawMessage(`1`), IdempotencyKey: "put"}
	for range 2 {
		if p, err := f.Store.PutProcess(f.Context(), put); err != nil || string(p.State) != `1` {
			f.Errorf("process %+v, %v", p, err)
		}
	}
	act.IdempotencyKey = "remove"
	for range 2 {
		f.Must(f.Store.RemoveProcess(f.Context(), act))
	}
}

// faultTests show that processes do not have the faults of progressor that the reference lists. Those
// about keys are in the topic process_key; P19 shows the fence.
func faultTests() tests {
	return tests{
		"event_ids_have_64_bits":                     wideIDs,
		"a_process_with_a_repaired_timer_is_removed": removeRepaired,
		"events_come_with_the_commit":                feed,
		"the_feed_has_the_life_of_a_process":         life,
		"a_failed_step_advises_a_repair":             advice,
		"a_process_in_error_is_one_failure":          oneFailure,
		"a_removed_namespace_entry_frees_its_worker": freeWorker,
	}
}

func wideIDs(f *fixture) {
	f.announced()
	const far = 1 << 40
	_, err := f.Store.PutProcess(f.Context(), registry.PutProcess{
		ProcessKey: key("a"), History: []registry.ProcessEvent{{ID: far, Payload: json.RawMessage(`1`)}}, Timer: &registry.ProcessTimer{Kind: registry.StepTimeout},
	})
	f.Must(err)
	f.ends(f.next(registry.StepTimeout), registry.StepResult{Events: events(`2`)})
	if p := f.process(); p.LastEventID != far+1 || len(p.History) != 2 {
		f.Errorf("process %+v", p)
	}
}

func removeRepaired(f *fixture) {
	f.begun(f.at(0))
	f.fails(f.next(registry.StepTimeout), "no")
	_, err := f.Store.RepairProcess(f.Context(), newCall(`1`))
	f.Must(err)
	f.ends(f.next(registry.StepRepair), registry.StepResult{})
	f.ends(f.next(registry.StepTimeout), registry.StepResult{Then: registry.StepThen{Do: registry.ThenRemove, At: f.Clock.Now()}})
	f.ends(f.next(registry.StepRemove), registry.StepResult{})
	_, err = f.Store.Process(f.Context(), key("a"), registry.HistoryRange{})
	f.Is(err, registry.ErrNotFound)
}

// feed: the entry of a step in the feed is there exactly when its effect is.
func feed(f *fixture) {
	f.begun(registry.StepResult{})
	a := f.call(`1`)
	c := f.next(registry.StepCall)
	f.Is(f.settle(c, registry.StepResult{Then: registry.StepThen{Do: "dance"}}), registry.ErrInvalid)
	if got := f.Events(a.ItemID); slices.Contains(got, string(registry.ActComplete)) {
		f.Errorf("events %v", got)
	}
	f.ends(c, registry.StepResult{Events: events(`1`)})
	f.ends(c, registry.StepResult{Events: events(`1`)}) // the answer got lost
	got := f.Events(a.ItemID)
	if n := len(slices.DeleteFunc(slices.Clone(got), func(e string) bool { return e != string(registry.ActComplete) })); n != 1 || f.process().LastEventID != 1 {
		f.Errorf("events %v, process %+v", got, f.process())
	}
}

// life: the feed has what happens to a process, each once, in order, with its cause, in the process's
// collection. The acts of people are in the audit list.
func life(f *fixture) {
	f.announced()
	maps := f.Unique("maps")
	f.Collections(maps)
	_, err := f.Store.InitProcess(f.Context(), registry.NewProcess{ProcessKey: key("a"), Collection: maps, Actor: "curator"})
	f.Must(err)
	seen := 0
	did := func(kind string, c registry.Claim, status registry.ProcessStatus, reason string) {
		f.Helper()
		seen++
		change := registry.ProcessChange{ProcessKey: key("a"), Status: status, Step: c.Item.ID, Reason: reason}
		if c.Item.ID != "" {
			var spec registry.StepSpec
			f.Must(json.Unmarshal(c.Item.Spec, &spec))
			change.Kind = spec.Kind
		}
		all, err := f.Store.Feed(f.Context(), registry.FeedQuery{ItemID: registry.ProcessOwner(key("a")), Limit: 500})
		f.Must(err)
		if len(all) < seen {
			f.Fatalf("there are %d events, want %d: %+v", len(all), seen, all)
		}
		e := all[seen-1]
		var got registry.ProcessChange
		f.Must(json.Unmarshal(e.Data, &got))
		actor := "worker"
		if change.Step == "" {
			actor = "admin"
		}
		if kind == registry.EventProcessRepaired && change.Step == "" {
			actor = "registry"
		}
		if e.Type != kind || got != change || e.Actor != actor || e.Collection != maps {
			f.Errorf("event %+v with %s, want %s by %s with %+v", e, e.Data, kind, actor, change)
		}
	}
	c := f.next(registry.StepInit)
	f.ends(c, registry.StepResult{Events: events(`1`)})
	did(registry.EventProcessStarted, c, registry.ProcessRunning, "")
	f.call(`1`)
	f.ends(f.next(registry.StepCall), registry.StepResult{}) // no change of the process's status
	f.call(`2`)
	c = f.next(registry.StepCall)
	f.fails(c, "the tape is lost")
	did(registry.EventProcessError, c, registry.ProcessFailed, "the tape is lost")
	_, err = f.Store.RepairProcess(f.Context(), newCall(`1`))
	f.Must(err)
	f.fails(f.next(registry.StepRepair), "no") // it stays in error
	_, err = f.Store.RepairProcess(f.Context(), newCall(`2`))
	f.Must(err)
	c = f.next(registry.StepRepair)
	f.ends(c, f.at(0))
	did(registry.EventProcessRepaired, c, registry.ProcessRunning, "")
	c = f.next(registry.StepTimeout)
	f.fails(c, "no")
	did(registry.EventProcessError, c, registry.ProcessFailed, "no")
	_, err = f.Store.RetryProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a"), Actor: "admin", Reason: "the tape is back"})
	f.Must(err)
	did(registry.EventProcessRetried, registry.Claim{}, registry.ProcessFailed, "the tape is back")
	c = f.next(registry.StepTimeout)
	f.ends(c, registry.StepResult{})
	did(registry.EventProcessRepaired, c, registry.ProcessRunning, "")
	f.call(`3`)
	c = f.next(registry.StepCall)
	f.fails(c, "no")
	did(registry.EventProcessError, c, registry.ProcessFailed, "no")
	_, err = f.Store.RetryProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a"), Actor: "admin"})
	f.Must(err)
	did(registry.EventProcessRetried, registry.Claim{}, registry.ProcessFailed, "")
	did(registry.EventProcessRepaired, registry.Claim{}, registry.ProcessRunning, "")
	f.call(`4`)
	c = f.next(registry.StepCall)
	f.ends(c, registry.StepResult{Then: registry.StepThen{Do: registry.ThenDone}})
	did(registry.EventProcessDone, c, registry.ProcessDone, "")
	f.Must(f.Store.RemoveProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a"), Actor: "admin", Reason: "a mistake"}))
	did(registry.EventProcessRemoved, registry.Claim{}, registry.ProcessDone, "a mistake")
	_, err = f.Store.PutProcess(f.Context(), registry.PutProcess{ProcessKey: key("a"), Collection: maps, Timer: &registry.ProcessTimer{Kind: registry.StepRemove}, Actor: "admin"})
	f.Must(err)
	did(registry.EventProcessImported, registry.Claim{}, registry.ProcessRunning, "")
	c = f.next(registry.StepRemove)
	f.ends(c, registry.StepResult{})
	did(registry.EventProcessRemoved, c, registry.ProcessRunning, "")
	if got := f.Events(registry.ProcessOwner(key("a"))); len(got) != seen {
		f.Errorf("the events are %v, want %d", got, seen)
	}

	page, err := f.Store.Audit(f.Context(), registry.AuditQuery{Limit: 500})
	f.Must(err)
	var acts []string
	for _, e := range slices.Backward(page.Rows) {
		if e.ItemID == registry.ProcessOwner(key("a")) {
			acts = append(acts, e.Type+" "+e.Actor)
		}
	}
	if !slices.Equal(acts, []string{"process-retried admin", "process-retried admin", "process-removed admin", "process-imported admin"}) {
		f.Errorf("the audit list has %v", acts)
	}
}

// advice: the list of failures advises no requeue of a step, which would be refused.
func advice(f *fixture) {
	f.begun(registry.StepResult{})
	a := f.call(`1`)
	f.fails(f.next(registry.StepCall), "the tape is lost")
	groups, err := f.Store.Failures(f.Context(), registry.ItemQuery{Action: registry.StepProcess})
	f.Must(err)
	if len(groups.Rows) != 1 || !groups.Rows[0].Useless || !strings.Contains(groups.Rows[0].Act, "repair or retry its process") {
		f.Errorf("failures %+v", groups.Rows)
	}
	if _, err := f.Store.Command(f.Context(), registry.Command{ItemID: a.ItemID, Act: registry.ActRequeue, Actor: "admin"}); err == nil {
		f.Error("the step was requeued")
	}
}

// oneFailure: of a process in error the list of failures has the step that the error is due to. When
// the process goes on, is done or is removed, it has none, and the step stays failed.
func oneFailure(f *fixture) {
	failures := func(want ...string) {
		f.Helper()
		groups, err := f.Store.Failures(f.Context(), registry.ItemQuery{Action: registry.StepProcess})
		f.Must(err)
		var got []string
		for _, g := range groups.Rows {
			for range g.Count {
				got = append(got, g.Note)
			}
			n, err := f.Store.CountItems(f.Context(), registry.ItemQuery{Match: registrytest.Match("cause:" + g.Fingerprint)})
			f.Must(err)
			if n[registry.StateFailed] != g.Count {
				f.Errorf("%v items have the cause of a group of %d", n, g.Count)
			}
		}
		if !slices.Equal(got, want) {
			f.Errorf("failures %q, want %q", got, want)
		}
	}
	repair := func() {
		f.Helper()
		_, err := f.Store.RepairProcess(f.Context(), newCall(`1`))
		f.Must(err)
	}
	f.begun(f.at(0))
	c := f.next(registry.StepTimeout)
	f.fails(c, "the tape is lost")
	failures("the tape is lost")
	repair()
	f.fails(f.next(registry.StepRepair), "no drive")
	failures("the tape is lost")
	_, err := f.Store.RetryProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a"), Actor: "admin"})
	f.Must(err)
	failures("the tape is lost")
	f.fails(f.next(registry.StepTimeout), "the tape is torn")
	failures("the tape is torn")
	repair()
	f.ends(f.next(registry.StepRepair), do(registry.ThenSuspend))
	failures()
	if it := f.Item(c.Item.ID); it.Status != registry.Failed || it.Note != "the tape is lost" {
		f.Errorf("the step is %+v", it)
	}
	f.call(`1`)
	f.fails(f.next(registry.StepCall), "no shelf")
	failures("no shelf")
	_, err = f.Store.RetryProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a"), Actor: "admin"})
	f.Must(err)
	failures()
	f.call(`2`)
	f.fails(f.next(registry.StepCall), "no label")
	repair()
	failures("no label")
	f.ends(f.next(registry.StepRepair), do(registry.ThenDone))
	failures()
	_, err = f.Store.InitProcess(f.Context(), registry.NewProcess{ProcessKey: key("b"), Actor: "curator"})
	f.Must(err)
	f.fails(f.next(registry.StepInit), "no room")
	failures("no room")
	f.Must(f.Store.RemoveProcess(f.Context(), registry.ProcessAct{ProcessKey: key("b"), Actor: "admin"}))
	failures()
}

// freeWorker: a step whose process is removed frees its worker's slot at once.
func freeWorker(f *fixture) {
	f.begun(registry.StepResult{})
	f.call(`1`)
	c := f.next(registry.StepCall)
	f.Must(f.Store.RemoveProcess(f.Context(), registry.ProcessAct{ProcessKey: key("a"), Actor: "admin"}))
	if lost := f.Renew(registry.Beat{Lease: c.Lease, DoneBytes: -1, DoneFiles: -1}); len(lost) != 1 || lost[0].ItemID != c.Item.ID {
		f.Errorf("lost %v", lost)
	}
	f.begun(registry.StepResult{}) // and the worker goes on
}
