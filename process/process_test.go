package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/process"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/tasktest"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(adderURL); address != "" {
		fmt.Fprintln(os.Stderr, adder(address))
		os.Exit(1)
	}
	code := postgrestest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// fixture is a Registry with the ways to it: caller for those who start, call and look, and registry
// for programs that serve. store is for what the Registry does by itself.
type fixture struct {
	*testing.T
	store    *sqlstore.Store
	caller   registry.Processing
	registry task.Registry
}

// The P numbers are those of the requirements about progressor. The kit
// registry/processes/processestest shows the same rules on a clock that the test moves.
var tests = map[string]func(*fixture){
	"P1_simple_timers":                          simpleTimers,
	"P2_simple_call":                            simpleCall,
	"P3_reschedule_after_call":                  rescheduleAfterCall,
	"P4_simple_call_with_range":                 callWithRange,
	"P5_call_replace_timer":                     callReplaceTimer,
	"P6_call_unset_timer":                       callUnsetTimer,
	"P7_postponed_call":                         postponedCall,
	"P8_postponed_call_to_suspended":            postponedCallToSuspended,
	"P9_multiple_calls":                         multipleCalls,
	"P10_repair_after_non_retriable_error":      repairAfterFinal,
	"P11_error_after_max_retries":               errorAfterRetries,
	"P12_repair_after_call_error":               repairAfterCallError,
	"P13_remove_by_timer":                       removeByTimer,
	"P14_remove_without_timer":                  removeWithoutTimer,
	"P15_put_process":                           putProcess,
	"P16_get_during_init_waits":                 getDuringInit,
	"P17_simple_repair_after_a_final_error":     retryAfterFinal,
	"P18_simple_repair_after_call_error":        retryAfterCallError,
	"P19_a_step_whose_program_died_runs_again":  programDies,
	"P20_put_process_with_timeout":              putWithTimeout,
	"P21_put_process_with_remove":               putWithRemove,
	"a_stop_of_the_program_puts_its_steps_back": programStops,
	"a_person_removes_it":                       removeByPerson,
	"a_result_beyond_the_bounds_is_an_error":    tooLarge,
	"a_panic_puts_its_process_into_error":       panics,
	"functions_and_processes_in_one_program":    together,
}

func TestProcesses_SQLite(t *testing.T) {
	each(t, sqlstoretest.SQLite, (*fixture).direct)
}

func TestProcesses_PostgreSQL(t *testing.T) {
	each(t, sqlstoretest.Postgres, (*fixture).direct)
}

func TestProcesses_HTTP(t *testing.T) { each(t, sqlstoretest.SQLite, (*fixture).overHTTP) }

func TestProcesses_PostgreSQLHTTP(t *testing.T) {
	each(t, sqlstoretest.Postgres, (*fixture).overHTTP)
}

func each(t *testing.T, database func(testing.TB) string, way func(*fixture)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fixture{T: t}
			store, err := sqlstore.Open(f.Context(), sqlstore.Options{URL: database(t)})
			f.must(err)
			f.Cleanup(func() { _ = store.Close() })
			f.store = store
			way(f)
			test(f)
		})
	}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// direct lets callers and programs use the Registry in this process.
func (f *fixture) direct() { f.caller, f.registry = f.store, f.store }

// overHTTP lets callers use the API with an operator's token, and programs with that of a worker of
// these tests' stages.
func (f *fixture) overHTTP() {
	f.Helper()
	a := tasktest.NewAPI(f, f.store)
	f.caller = a.Client(registry.Token{Name: "curator", Role: registry.RoleOperator})
	f.registry = a.Program("step:test", "run:work")
}

const namespace = "test"

var key = registry.ProcessKey{Namespace: namespace, ProcessID: "a"}

// state is the state of the processes under test: what their steps were.
type state struct {
	Steps []string `json:"steps"`
}

type step = process.Step[state]

// serve serves a namespace until stop is called, or the test ends. Its leases are long, because a busy
// machine may renew them late.
func (f *fixture) serve(fn process.Func[state], options ...process.Option) (stop func()) {
	f.Helper()
	var m task.Mux
	process.Handle(&m, namespace, func(ctx context.Context, s *step) error {
		s.State.Steps = append(s.State.Steps, string(s.Kind))
		return fn(ctx, s)
	}, append(options, process.Lease(10*time.Minute))...)
	return f.serveAll(&m)
}

func (f *fixture) serveAll(m *task.Mux) (stop func()) {
	f.Helper()
	stop = tasktest.Serve(f, f.registry, m)
	f.await(func() bool {
		all, err := f.caller.Namespaces(f.Context())
		return err == nil && len(all) > 0
	})
	return stop
}

// await waits until something is so.
func (f *fixture) await(is func() bool) {
	f.Helper()
	tasktest.Await(f, is)
}

func (f *fixture) init(args any) registry.Answer {
	f.Helper()
	text, err := json.Marshal(args)
	f.must(err)
	a, err := f.caller.InitProcess(f.Context(), registry.NewProcess{ProcessKey: key, Args: text, Actor: "curator"})
	f.must(err)
	return f.answer(a)
}

// answer waits for the answer of a step.
func (f *fixture) answer(a registry.Answer) registry.Answer {
	f.Helper()
	a, err := f.caller.AwaitAnswer(f.Context(), a.ItemID)
	f.must(err)
	return a
}

// ask adds a call and returns at once.
func (f *fixture) ask(args string, change ...func(*registry.NewCall)) registry.Answer {
	f.Helper()
	n := registry.NewCall{ProcessKey: key, Args: json.RawMessage(args), Actor: "curator"}
	for _, c := range change {
		c(&n)
	}
	a, err := f.caller.CallProcess(f.Context(), n)
	f.must(err)
	return a
}

func (f *fixture) repair(args string) registry.Answer {
	f.Helper()
	a, err := f.caller.RepairProcess(f.Context(), registry.NewCall{ProcessKey: key, Args: json.RawMessage(args), Actor: "admin"})
	f.must(err)
	return f.answer(a)
}

func (f *fixture) get(r registry.HistoryRange) registry.ProcessInfo {
	f.Helper()
	p, err := f.caller.Process(f.Context(), key, r)
	f.must(err)
	return p
}

// becomes waits until the process has a status.
func (f *fixture) becomes(want registry.ProcessStatus) (p registry.ProcessInfo) {
	f.Helper()
	f.await(func() bool {
		p = f.get(registry.HistoryRange{})
		return p.Status == want
	})
	return p
}

// gone waits until there is no such process.
func (f *fixture) gone() {
	f.Helper()
	f.await(func() bool {
		_, err := f.caller.Process(f.Context(), key, registry.HistoryRange{})
		return errors.Is(err, registry.ErrNotFound)
	})
}

// payloads waits for n events and returns their payloads.
func (f *fixture) payloads(n int) string {
	f.Helper()
	var p registry.ProcessInfo
	f.await(func() bool {
		p = f.get(registry.HistoryRange{})
		return len(p.History) >= n
	})
	return texts(p.History)
}

func texts(events []registry.ProcessEvent) string {
	var out []string
	for i, e := range events {
		if i > 0 && e.ID == events[i-1].ID {
			out = append(out, "twice")
		}
		out = append(out, string(e.Payload))
	}
	return strings.Join(out, " ")
}

func (f *fixture) trace() (steps []string) {
	f.Helper()
	page, err := f.caller.TraceProcess(f.Context(), registry.TraceQuery{ProcessKey: key})
	f.must(err)
	for _, s := range page.Rows {
		steps = append(steps, string(s.Kind)+" "+string(s.Status))
	}
	return steps
}

// traces waits until the steps are these.
func (f *fixture) traces(want ...string) {
	f.Helper()
	f.await(func() bool { return slices.Equal(f.trace(), want) })
}

const short = 200 * time.Millisecond // a timer's time

func simpleTimers(f *fixture) {
	f.serve(func(_ context.Context, s *step) error {
		switch len(s.Process.History) {
		case 0:
			s.SetMetadata(map[string]string{"k": "v"})
			if s.Kind == registry.StepInit {
				s.ContinueIn(short)
				return nil
			}
			s.Event(1)
			s.ContinueIn(0)
		case 1:
			s.Event(2)
			s.Suspend()
		}
		return nil
	})
	begun := time.Now()
	f.init(nil)
	got := f.payloads(2)
	p := f.get(registry.HistoryRange{})
	if got != "1 2" || string(p.State) != `{"steps":["init","timeout","timeout"]}` || string(p.Metadata) != `{"k":"v"}` || time.Since(begun) < short {
		f.Errorf("events %s, process %+v", got, p)
	}
}

// gate lets a step wait until the test goes on.
type gate struct{ reached, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}, 10), make(chan struct{})} }

func (g gate) pass(ctx context.Context) error {
	g.reached <- struct{}{}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func simpleCall(f *fixture) {
	due := f.callBeforeATimer(func(at time.Time) {
		f.await(func() bool { return time.Now().After(at) })
	})
	if got := f.payloads(2); got != `"call" 1` {
		f.Errorf("events %s", got)
	}
	f.firedOnceAfter(due)
}

// callBeforeATimer starts a process whose first call sets a timer, and has a second call answered
// before that. during runs while the second call does; it gets the time of the timer. The second call
// waits already when the first one ends. So it comes before the timer, however slow the machine is.
func (f *fixture) callBeforeATimer(during func(due time.Time)) (due time.Time) {
	f.Helper()
	first, second, set := newGate(), newGate(), make(chan time.Time, 1)
	f.serve(func(ctx context.Context, s *step) error {
		var n int
		if err := s.Args(&n); err != nil {
			return err
		}
		switch {
		case s.Kind == registry.StepTimeout:
			s.Event(len(s.Process.History)) // what the timer sees
		case n == 1:
			if err := first.pass(ctx); err != nil {
				return err
			}
			at := time.Now().Add(short)
			set <- at
			s.Continue(at)
		case n == 2:
			if err := second.pass(ctx); err != nil {
				return err
			}
			s.Event("call")
			s.Respond("answer")
		}
		return nil
	})
	f.init(nil)
	f.ask(`1`)
	a := f.ask(`2`)
	close(first.open)
	due = <-set
	<-second.reached
	page, err := f.caller.TraceProcess(f.Context(), registry.TraceQuery{ProcessKey: key})
	f.must(err)
	due = due.Truncate(time.Microsecond)
	if ended := page.Rows[1].FinishedAt; ended.After(due) { // on a slow machine: a time that has passed means at once
		due = *ended
	}
	if timer := f.get(registry.HistoryRange{}).Timer; timer == nil || !timer.At.Equal(due) {
		f.Errorf("timer %+v, want it at %v", timer, due)
	}
	during(due)
	close(second.open)
	if a := f.answer(a); string(a.Response) != `"answer"` {
		f.Errorf("answer %+v", a)
	}
	return due
}

// firedOnceAfter waits for the end of the timer's only step, and expects that it did not end before
// the time of the timer.
func (f *fixture) firedOnceAfter(due time.Time) {
	f.Helper()
	f.traces("init completed", "call completed", "call completed", "timeout completed")
	page, err := f.caller.TraceProcess(f.Context(), registry.TraceQuery{ProcessKey: key})
	f.must(err)
	if end := page.Rows[3].FinishedAt; end.Before(due.Truncate(time.Microsecond)) {
		f.Errorf("the timer of %v ended at %v", due, end)
	}
}

func rescheduleAfterCall(f *fixture) {
	due := f.callBeforeATimer(func(time.Time) {}) // the call keeps the timer
	f.firedOnceAfter(due)
}

func callWithRange(f *fixture) {
	seen := make(chan string, 4)
	f.serve(func(_ context.Context, s *step) error {
		if s.Kind == registry.StepInit {
			for i := range 4 {
				s.Event(i + 1)
			}
			return nil
		}
		seen <- fmt.Sprint(texts(s.Process.History), " of ", s.Process.LastEventID)
		return nil
	})
	f.init(nil)
	for _, one := range []struct {
		r    registry.HistoryRange
		want string
	}{
		{registry.HistoryRange{Offset: 1, Limit: 2}, "2 3 of 4"},
		{registry.HistoryRange{Offset: 5, Limit: 2, Backward: true}, "4 3 of 4"},
		{registry.HistoryRange{}, "1 2 3 4 of 4"},
	} {
		f.answer(f.ask(`1`, func(n *registry.NewCall) { n.Range = one.r }))
		if got := <-seen; got != one.want {
			f.Errorf("a call sees %s, want %s", got, one.want)
		}
	}
	if got := texts(f.get(registry.HistoryRange{Limit: 2, Backward: true}).History); got != "4 3" {
		f.Errorf("backward: %s", got)
	}
}

func callReplaceTimer(f *fixture) {
	f.serve(func(_ context.Context, s *step) error {
		switch s.Kind {
		case registry.StepInit:
			s.RemoveAt(time.Now().Add(time.Hour))
		case registry.StepCall:
			s.ContinueIn(0)
		}
		return nil
	})
	f.init(nil)
	f.answer(f.ask(`1`))
	f.traces("init completed", "remove cancelled", "call completed", "timeout completed")
}

func callUnsetTimer(f *fixture) {
	f.serve(func(_ context.Context, s *step) error {
		switch s.Kind {
		case registry.StepInit:
			s.ContinueIn(time.Hour)
		case registry.StepCall:
			s.Suspend()
		}
		return nil
	})
	f.init(nil)
	f.answer(f.ask(`1`))
	f.traces("init completed", "timeout cancelled", "call completed")
	if p := f.get(registry.HistoryRange{}); p.Timer != nil || p.Status != registry.ProcessRunning {
		f.Errorf("process %+v", p)
	}
}

// during calls a process while its timer's step runs. after is what that step does at its end.
func during(f *fixture, after func(*step)) {
	g := newGate()
	f.serve(func(ctx context.Context, s *step) error {
		switch s.Kind {
		case registry.StepInit:
			s.ContinueIn(0)
		case registry.StepTimeout:
			if len(s.Process.History) == 0 {
				if err := g.pass(ctx); err != nil {
					return err
				}
				after(s)
			}
			s.Event("timer")
		case registry.StepCall:
			s.Event("call")
		}
		return nil
	})
	f.init(nil)
	<-g.reached
	a := f.ask(`1`)
	close(g.open)
	f.answer(a)
}

func postponedCall(f *fixture) {
	during(f, func(s *step) { s.ContinueIn(0) })
	if got := f.payloads(3); got != `"timer" "call" "timer"` {
		f.Errorf("events %s", got)
	}
}

func postponedCallToSuspended(f *fixture) {
	during(f, func(s *step) { s.Suspend() })
	if got := f.payloads(2); got != `"timer" "call"` {
		f.Errorf("events %s", got)
	}
}

func multipleCalls(f *fixture) {
	var running, most atomic.Int64
	f.serve(func(_ context.Context, s *step) error {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		if s.Kind == registry.StepCall {
			var n int
			if err := s.Args(&n); err != nil {
				return err
			}
			s.Event(n)
			s.Respond(n)
		}
		return nil
	})
	f.init(nil)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			a, err := f.caller.CallProcess(f.Context(), registry.NewCall{ProcessKey: key, Args: json.RawMessage(fmt.Sprint(i))})
			if err == nil {
				a, err = f.caller.AwaitAnswer(f.Context(), a.ItemID)
			}
			if err != nil || string(a.Response) != fmt.Sprint(i) {
				f.Errorf("call %d: %+v, %v", i, a, err)
			}
		})
	}
	all.Wait()
	got := strings.Fields(f.payloads(10))
	if slices.Sort(got); !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}) || most.Load() != 1 {
		f.Errorf("events %v; %d steps ran at once", got, most.Load())
	}
}

// coded is an error with a code.
type coded string

func (e coded) Error() string     { return "the tape is " + string(e) }
func (e coded) ErrorCode() string { return string(e) }

// broken serves timers that fail with err until mended, and counts their runs.
func (f *fixture) broken(err error) (mended *atomic.Bool, runs *atomic.Int64) {
	f.Helper()
	mended, runs = &atomic.Bool{}, &atomic.Int64{}
	f.serve(func(_ context.Context, s *step) error {
		switch s.Kind {
		case registry.StepInit:
			s.ContinueIn(0)
		case registry.StepTimeout:
			runs.Add(1)
			if !mended.Load() {
				return err
			}
			s.SetMetadata(s.Context())
			s.Event("timer")
		}
		return nil
	}, process.Attempts(3), process.Backoff(time.Millisecond, 2, 10*time.Millisecond), process.Final("lost"))
	f.init(nil)
	return mended, runs
}

func repairAfterFinal(f *fixture) {
	mended, runs := f.broken(coded("lost"))
	if p := f.becomes(registry.ProcessFailed); !strings.Contains(p.Detail, "the tape is lost") || runs.Load() != 1 {
		f.Errorf("process %+v after %d runs", p, runs.Load())
	}
	mended.Store(true)
	f.repair(`1`)
	if got := f.payloads(1); got != `"timer"` {
		f.Errorf("events %s", got)
	}
	if p := f.get(registry.HistoryRange{}); p.Status != registry.ProcessRunning || p.Detail != "" {
		f.Errorf("process %+v", p)
	}
}

func errorAfterRetries(f *fixture) {
	_, runs := f.broken(coded("late"))
	if p := f.becomes(registry.ProcessFailed); !strings.Contains(p.Detail, "the tape is late") || runs.Load() != 3 {
		f.Errorf("process %+v after %d runs", p, runs.Load())
	}
}

// failingCalls serves calls that fail, and repairs that fail if their argument says so.
func (f *fixture) failingCalls() *atomic.Int64 {
	f.Helper()
	runs := &atomic.Int64{}
	f.serve(func(_ context.Context, s *step) error {
		switch s.Kind {
		case registry.StepInit:
			s.Event("init")
			s.SetMetadata("kept")
		case registry.StepCall:
			runs.Add(1)
			return errors.New("the first fault")
		case registry.StepRepair:
			var good bool
			if err := s.Args(&good); err != nil || !good {
				return errors.New("the second fault")
			}
		}
		return nil
	})
	f.init(nil)
	if a := f.answer(f.ask(`1`)); a.Status != registry.Failed || !strings.Contains(a.Error, "the first fault") {
		f.Errorf("answer %+v", a)
	}
	if p := f.get(registry.HistoryRange{}); p.Status != registry.ProcessFailed || runs.Load() != 1 {
		f.Errorf("process %+v after %d runs", p, runs.Load())
	}
	return runs
}

func repairAfterCallError(f *fixture) {
	f.failingCalls()
	if a := f.repair(`false`); a.Status != registry.Failed {
		f.Errorf("answer %+v", a)
	}
	if p := f.get(registry.HistoryRange{}); !strings.Contains(p.Detail, "the first fault") || string(p.Metadata) != `"kept"` || p.Status != registry.ProcessFailed {
		f.Errorf("process %+v", p)
	}
	f.repair(`true`)
	if p := f.get(registry.HistoryRange{}); p.Status != registry.ProcessRunning || p.Detail != "" {
		f.Errorf("process %+v", p)
	}
}

// removeByTimer: the process exists before the time, and while a call runs then. The call waits
// already when the first one sets the timer, so it goes first however slow the machine is.
func removeByTimer(f *fixture) {
	first, second, due := newGate(), newGate(), make(chan time.Time, 1)
	f.serve(func(ctx context.Context, s *step) error {
		if s.Kind != registry.StepCall {
			return nil
		}
		var n int
		if err := s.Args(&n); err != nil || n == 2 {
			return errors.Join(err, second.pass(ctx))
		}
		if err := first.pass(ctx); err != nil {
			return err
		}
		at := time.Now().Add(short)
		due <- at
		s.RemoveAt(at)
		return nil
	})
	f.init(nil)
	f.ask(`1`)
	f.ask(`2`)
	close(first.open)
	at := <-due
	<-second.reached
	if p := f.get(registry.HistoryRange{}); p.Timer == nil || p.Timer.Kind != registry.StepRemove || !p.Timer.At.Equal(at.Truncate(time.Microsecond)) {
		f.Errorf("process %+v, want its removal at %v", p, at)
	}
	close(second.open)
	f.gone()
	if time.Now().Before(at) {
		f.Errorf("it was removed before %v", at)
	}
}

func removeWithoutTimer(f *fixture) {
	f.serve(func(_ context.Context, s *step) error {
		if s.Kind == registry.StepCall {
			s.Remove()
			s.Respond("bye")
		}
		return nil
	})
	f.init(nil)
	if a := f.answer(f.ask(`1`)); string(a.Response) != `"bye"` {
		f.Errorf("answer %+v", a)
	}
	f.gone()
}

func removeByPerson(f *fixture) {
	g := newGate()
	f.serve(func(ctx context.Context, s *step) error {
		if s.Kind == registry.StepCall {
			return g.pass(ctx)
		}
		return nil
	})
	f.init(nil)
	a := f.ask(`1`)
	<-g.reached // its step runs
	f.must(f.caller.RemoveProcess(f.Context(), registry.ProcessAct{ProcessKey: key, Actor: "admin", Reason: "a mistake"}))
	f.gone()
	if got := f.answer(a); got.Status != registry.Cancelled || !strings.Contains(got.Error, "a mistake") {
		f.Errorf("answer %+v", got)
	}
	close(g.open)
	f.init(nil) // the id is free again
	if p := f.get(registry.HistoryRange{}); p.Status != registry.ProcessRunning {
		f.Errorf("process %+v", p)
	}
}

// put imports the process with three events.
func (f *fixture) put(timer *registry.ProcessTimer) error {
	n := registry.PutProcess{ProcessKey: key, State: json.RawMessage(`{"steps":["imported"]}`), Timer: timer, Actor: "admin"}
	for i := range 3 {
		n.History = append(n.History, registry.ProcessEvent{ID: int64(i + 1), Payload: json.RawMessage(fmt.Sprint(i + 1))})
	}
	_, err := f.caller.PutProcess(f.Context(), n)
	return err
}

func quiet(_ context.Context, s *step) error {
	s.Event(string(s.Kind))
	return nil
}

func putProcess(f *fixture) {
	f.serve(quiet)
	f.must(f.put(nil))
	if err := f.put(nil); !errors.Is(err, registry.ErrProcessExists) {
		f.Errorf("a second import: %v", err)
	}
	if p := f.get(registry.HistoryRange{}); texts(p.History) != "1 2 3" || len(f.trace()) != 0 {
		f.Errorf("process %+v", p)
	}
}

func getDuringInit(f *fixture) {
	g := newGate()
	f.serve(func(ctx context.Context, s *step) error {
		s.Event("init")
		return g.pass(ctx)
	})
	_, err := f.caller.InitProcess(f.Context(), registry.NewProcess{ProcessKey: key})
	f.must(err)
	<-g.reached
	got := make(chan registry.ProcessInfo, 1)
	go func() {
		p, err := f.caller.Process(f.Context(), key, registry.HistoryRange{})
		if err != nil {
			f.Error(err)
		}
		got <- p
	}()
	ended, cancel := context.WithCancel(f.Context())
	cancel()
	if p, err := f.caller.Process(ended, key, registry.HistoryRange{}); err != nil || p.Status != registry.ProcessInit {
		f.Errorf("process %+v, %v", p, err)
	}
	close(g.open)
	if p := <-got; p.Status != registry.ProcessRunning || texts(p.History) != `"init"` {
		f.Errorf("process %+v", p)
	}
}

func retryAfterFinal(f *fixture) {
	mended, _ := f.broken(coded("lost"))
	f.becomes(registry.ProcessFailed)
	mended.Store(true)
	_, err := f.caller.RetryProcess(f.Context(), registry.ProcessAct{ProcessKey: key, Context: json.RawMessage(`"new"`)})
	f.must(err)
	p := f.becomes(registry.ProcessRunning)
	if p.PreviousStatus != registry.ProcessFailed || p.Detail != "" || f.payloads(1) != `"timer"` || string(p.Metadata) != `"new"` {
		f.Errorf("process %+v; its timer saw the context %s", p, p.Metadata)
	}
}

func retryAfterCallError(f *fixture) {
	runs := f.failingCalls()
	p, err := f.caller.RetryProcess(f.Context(), registry.ProcessAct{ProcessKey: key})
	f.must(err)
	if p.Status != registry.ProcessRunning || p.LastEventID != 1 || string(p.Metadata) != `"kept"` || runs.Load() != 1 {
		f.Errorf("process %+v after %d runs", p, runs.Load())
	}
}

// programDies claims a call as a program that never comes back, and sees that its late answer has no
// effect.
func programDies(f *fixture) {
	stop := f.serve(quiet)
	f.init(nil)
	stop()
	a := f.ask(`1`)
	dead, err := f.registry.Claim(f.Context(), registry.ClaimRequest{RequestID: "r", Stage: "step:test", Worker: "dead", Lease: 100 * time.Millisecond, MaxAttempts: 5, StuckAfter: time.Hour})
	f.must(err)
	f.await(func() bool {
		lost, err := f.store.Sweep(f.Context(), 100*time.Millisecond)
		return err == nil && slices.Contains(lost, dead.Lease)
	})
	f.serve(quiet)
	if got := f.answer(a); got.Status != registry.Completed {
		f.Errorf("answer %+v", got)
	}
	_, err = f.registry.Settle(f.Context(), registry.Settlement{
		Lease: dead.Lease, Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{registry.ResultStep: json.RawMessage(`{"events":[{"payload":"late"}]}`)},
	})
	if !errors.Is(err, registry.ErrClaimLost) {
		f.Errorf("the dead program's answer: %v", err)
	}
	if got := f.payloads(2); got != `"init" "call"` {
		f.Errorf("events %s", got)
	}
}

func putWithTimeout(f *fixture) {
	f.serve(quiet)
	f.must(f.put(&registry.ProcessTimer{Kind: registry.StepTimeout, At: time.Now().Add(short)}))
	if got := f.payloads(4); got != `1 2 3 "timeout"` {
		f.Errorf("events %s", got)
	}
}

func putWithRemove(f *fixture) {
	f.serve(quiet)
	f.must(f.put(&registry.ProcessTimer{Kind: registry.StepRemove, At: time.Now().Add(short)}))
	f.gone()
}

func programStops(f *fixture) {
	g := newGate()
	stop := f.serve(func(ctx context.Context, s *step) error {
		if s.Kind == registry.StepCall {
			return g.pass(ctx)
		}
		return nil
	})
	f.init(nil)
	a := f.ask(`1`)
	<-g.reached
	stop()
	if p := f.get(registry.HistoryRange{}); p.Status != registry.ProcessRunning {
		f.Errorf("process %+v", p)
	}
	f.serve(quiet)
	if got := f.answer(a); got.Status != registry.Completed {
		f.Errorf("answer %+v", got)
	}
}

// tooLarge: a result that no Registry takes ends its step. It is not sent again and again, as
// progressor does, and the program's slot is free.
func tooLarge(f *fixture) {
	f.serve(func(_ context.Context, s *step) error {
		if s.Kind == registry.StepCall {
			s.SetMetadata(strings.Repeat("x", registry.MostProcessState))
		}
		return nil
	}, process.Slots(1))
	f.init(nil)
	if a := f.answer(f.ask(`1`)); a.Status != registry.Failed || !strings.Contains(a.Error, "the limit is") {
		f.Errorf("answer %+v", a)
	}
	f.repair(`1`)
	if p := f.get(registry.HistoryRange{}); p.Status != registry.ProcessRunning || p.Metadata != nil {
		f.Errorf("process %+v", p)
	}
}

func panics(f *fixture) {
	f.serve(func(_ context.Context, s *step) error {
		if s.Kind == registry.StepCall {
			panic("a fault of the program")
		}
		return nil
	}, process.Attempts(1))
	f.init(nil)
	f.answer(f.ask(`1`))
	if p := f.get(registry.HistoryRange{}); p.Status != registry.ProcessFailed || !strings.Contains(p.Detail, "a fault of the program") {
		f.Errorf("process %+v", p)
	}
}

func together(f *fixture) {
	var m task.Mux
	work := task.Handle(&m, "work", func(context.Context, *task.Run, string) (string, error) { return "done", nil })
	process.Handle(&m, namespace, quiet)
	f.serveAll(&m)
	f.init(nil)
	id, err := work.Submit(f.Context(), f.store, "x")
	f.must(err)
	f.await(func() bool {
		it, err := f.store.Item(f.Context(), id)
		return err == nil && it.Status == registry.Completed
	})
}
