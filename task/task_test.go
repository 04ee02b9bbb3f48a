package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/remote"
	"github.com/holdfast/holdfast/task/tasktest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == patientProgram {
		if err := servePatiently(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := postgrestest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// fixture is a Registry with the two ways to it, both in process or both over HTTP.
type fixture struct {
	*testing.T
	store    *sqlstore.Store
	registry task.Registry    // for programs with functions
	people   people           // for those who submit and look
	url      string           // of the database
	http     bool             // both are asked over HTTP
	server   string           // address of the API, see overHTTP
	stages   []registry.Stage // of the program's token; nil: run:work and run:count
	now      func() time.Time // clock of the Registry; nil: the database's
}

// The C numbers are those of the requirements about the Console's task queue. Those that need no function are tested in registry/tasks/taskstest and
// registry/work/worktest.
var tests = map[string]func(*fixture){
	"C1_tasks_outlive_every_process":                outlive,
	"C15_the_CAN_graph_with_parents":                canGraph,
	"C17_C18_a_stop_puts_running_tasks_back":        stops,
	"C17_a_drain_stops_tasks_and_a_resume_goes_on":  drains,
	"C17_a_drain_withdraws_what_does_not_stop":      drainsByForce,
	"C18_a_cancel_reaches_the_function":             cancelled,
	"C20_what_is_made_once_is_made_once":            once,
	"C20_a_later_attempt_goes_on_from_the_state":    state,
	"C21_an_error_is_kept":                          failed,
	"C21_an_error_is_retried_up_to_its_attempts":    retried,
	"C21_a_panic_is_a_failure_of_its_task":          panics,
	"C22_progress_while_it_runs_and_after":          progress,
	"C22_log_lines_while_it_runs_and_after":         logs,
	"C23_arguments_by_the_types":                    arguments,
	"C24_a_waiting_task_says_why":                   waits,
	"C24_a_task_beyond_a_limit_says_why":            waitsForCapacity,
	"C25_the_view_of_a_graph":                       graphView,
	"C27_events_name_who_caused_them":               events,
	"C28_a_schedule_calls_the_function":             scheduled,
	"C29_a_direct_call_is_an_ordinary_call":         direct,
	"C29_a_direct_call_returns_the_functions_error": directFails,
	"C30_a_call_in_the_background":                  background,
	"a_task_that_waits_is_not_counted":              later,
	"many_tasks_in_one_process":                     many,
}

func TestTasks_SQLite(t *testing.T)         { each(t, sqlstoretest.SQLite, false) }
func TestTasks_PostgreSQL(t *testing.T)     { each(t, sqlstoretest.Postgres, false) }
func TestTasks_HTTP(t *testing.T)           { each(t, sqlstoretest.SQLite, true) }
func TestTasks_PostgreSQLHTTP(t *testing.T) { each(t, sqlstoretest.Postgres, true) }

func each(t *testing.T, database func(testing.TB) string, http bool) {
	for _, some := range []map[string]func(*fixture){tests, acceptance} {
		for name, test := range some {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := &fixture{T: t, url: database(t), http: http}
				f.open()
				test(f)
			})
		}
	}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) open() {
	f.Helper()
	store, err := sqlstore.Open(f.Context(), sqlstore.Options{URL: f.url, Now: f.now})
	f.must(err)
	f.Cleanup(func() { _ = store.Close() })
	f.store, f.registry, f.people = store, store, store
	if f.http {
		f.overHTTP()
	}
}

// programSecret is the secret of the token of programs.
const programSecret = "hf_secret_of_program"

// reopen closes the Registry and opens it again.
func (f *fixture) reopen() {
	f.Helper()
	f.must(f.store.Close())
	f.open()
}

// overHTTP reaches the Registry by the API: programs by the token of a worker of every function of
// these tests, people by tokens of their own.
func (f *fixture) overHTTP() {
	f.Helper()
	a := tasktest.NewAPI(f, f.store)
	f.server = a.URL
	if f.stages == nil {
		f.stages = []registry.Stage{"run:work", "run:count"}
	}
	f.registry = a.Program(f.stages...)
	o := overAPI{submit: map[string]*remote.Registry{}}
	for name, role := range map[string]registry.Role{"admin": registry.RoleAdmin, "curator": registry.RoleOperator} {
		token := registry.Token{Name: name, Role: role}
		r := remote.Open(a.URL, a.Token(token))
		f.Cleanup(func() { f.must(r.Close()) })
		o.submit[name] = r
		if name == "admin" {
			o.Client = a.Client(token)
		}
	}
	f.people = o
}

// serve serves a program's functions until stop is called, or the test ends.
func (f *fixture) serve(m *task.Mux) (stop func()) {
	f.Helper()
	stop = tasktest.Serve(f, f.registry, m)
	f.await(func() bool {
		all, err := f.people.Functions(f.Context())
		return err == nil && len(all) > 0
	})
	return stop
}

// await waits until something is so.
func (f *fixture) await(is func() bool) {
	f.Helper()
	tasktest.Await(f, is)
}

func (f *fixture) item(id string) registry.WorkItem {
	f.Helper()
	it, err := f.people.Item(f.Context(), id)
	f.must(err)
	return it
}

// settled waits for the end of a task.
func (f *fixture) settled(id string) registry.WorkItem {
	f.Helper()
	f.await(func() bool { return f.item(id).Status.Settled() })
	return f.item(id)
}

func (f *fixture) attempts(id string) []registry.Attempt {
	f.Helper()
	all, err := f.people.Attempts(f.Context(), id)
	f.must(err)
	return all
}

type none struct{}

// scheduled: a schedule's tasks come to the program like all others, and name the schedule as cause.
func scheduled(f *fixture) {
	var m task.Mux
	causes := make(chan string, 2)
	task.Handle(&m, "work", func(_ context.Context, run *task.Run, source string) (string, error) {
		causes <- run.Cause
		return "harvested " + source, nil
	})
	var ahead atomic.Int64
	f.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	f.reopen()
	f.serve(&m)
	nightly, err := f.people.AddSchedule(f.Context(), registry.ScheduleRequest{Name: "nightly", Actor: "curator", ScheduleSpec: registry.ScheduleSpec{
		Cron: "30 2 * * *", Zone: "Europe/Berlin", Task: &registry.ScheduledTask{Function: "work", Args: json.RawMessage(`"a"`)},
	}})
	f.must(err)
	check := func(fired registry.Firing) {
		f.Helper()
		it := f.settled(fired.ItemID)
		if got := string(it.Results[registry.ResultReturned]); it.Status != registry.Completed || got != `"harvested a"` {
			f.Errorf("%s returned %s: %s", it.Status, got, it.Note)
		}
		if name, tick, ok := registry.ScheduledBy(<-causes); !ok || name != "nightly" || !tick.Equal(fired.Tick) {
			f.Errorf("the cause is %s at %v, want nightly at %v", name, tick, fired.Tick)
		}
	}
	for _, key := range []string{"one", "two"} {
		fired, err := f.people.RunSchedule(f.Context(), registry.ScheduleRun{Name: "nightly", Actor: "curator", IdempotencyKey: key})
		f.must(err)
		check(fired)
	}
	ahead.Store(int64(time.Until(nightly.Next[0]) + time.Minute)) // one 02:30 has come
	var all []registry.Firing
	f.await(func() bool { // a transaction that began before has its own time
		all, err = f.store.FireSchedules(f.Context())
		f.must(err)
		return len(all) > 0
	})
	if len(all) != 1 || all[0].Tick.Minute() != 30 {
		f.Fatalf("fired %+v", all)
	}
	check(all[0])
	if all, err = f.store.FireSchedules(f.Context()); err != nil || len(all) > 0 {
		f.Errorf("fired again: %+v, %v", all, err)
	}
}

// outlive: all processes end, with tasks in every state. Nothing is lost, and all goes on.
func outlive(f *fixture) {
	var m task.Mux
	s := scripted(&m, "runs")
	s.fails["fails"] = true
	stop := f.serve(&m)
	failed, ran := f.submitted(s, "fails"), f.submitted(s, "ran")
	f.settled(failed)
	f.settled(ran)
	runs := f.submitted(s, "runs")
	<-s.begun
	stop()
	waits := f.submitted(s, "waits")
	behind := f.submitted(s, "behind", registry.Requirement{ItemID: waits})
	g, err := f.people.Prepare(f.Context(), registry.Graph{Actor: "curator", Nodes: []registry.Node{f.node(s, "prepared")}})
	f.must(err)
	prepared := g.Items["prepared"]
	f.reopen()
	for id, want := range map[string]registry.Status{
		failed: registry.Failed, ran: registry.Completed, runs: registry.Pending, waits: registry.Pending, behind: registry.Pending, prepared: registry.Prepare,
	} {
		if it := f.item(id); it.Status != want {
			f.Errorf("%s is %s after the restart, want %s", id, it.Status, want)
		}
	}
	s.release()
	f.serve(&m)
	_, err = f.people.Prepare(f.Context(), registry.Graph{ID: g.GraphID, Actor: "curator", Seal: true, Nodes: []registry.Node{f.node(s, "more")}})
	f.must(err)
	for id, key := range map[string]string{runs: "runs", waits: "waits", behind: "behind", prepared: "prepared"} {
		if it := f.settled(id); it.Status != registry.Completed || string(it.Results[registry.ResultReturned]) != `"`+key+`"` {
			f.Errorf("%s is %s and returned %s", key, it.Status, it.Results[registry.ResultReturned])
		}
	}
	counts := map[string]int{}
	for _, key := range s.calls() {
		counts[key]++
	}
	for key, want := range map[string]int{"fails": 1, "ran": 1, "runs": 2, "waits": 1, "behind": 1, "prepared": 1} {
		if counts[key] != want {
			f.Errorf("%s was called %d times, want %d", key, counts[key], want)
		}
	}
}

func canGraph(f *fixture) {
	var mu sync.Mutex
	var ran []string
	together := make(chan struct{})
	started := 0
	var m task.Mux
	work := task.Handle(&m, "work", func(ctx context.Context, run *task.Run, key string) (string, error) {
		path := key
		all, err := run.Parents(ctx)
		if err != nil {
			return "", err
		}
		for _, p := range all {
			var before string
			if err := run.Parent(ctx, p.Key, &before); err != nil {
				return "", err
			}
			path = before + path
		}
		if slices.Contains([]string{"2", "3", "4"}, key) { // these run beside each other
			mu.Lock()
			if started++; started == 3 {
				close(together)
			}
			mu.Unlock()
			select {
			case <-together:
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, key)
		return path, nil
	})
	var g task.Graph
	for key, requires := range map[string][]string{"1": nil, "2": {"1"}, "3": {"1"}, "4": {"1"}, "5": {"2"}, "6": {"3"}, "7": {"5"}, "8": {"6"}} {
		task.Add(&g, key, work, key, task.After(requires...))
	}
	f.serve(&m)
	p, err := g.Submit(f.Context(), f.people, "curator", "can")
	f.must(err)
	for key, want := range map[string]string{"4": `"14"`, "7": `"1257"`, "8": `"1368"`} {
		if it := f.settled(p.Items[key]); string(it.Results[registry.ResultReturned]) != want {
			f.Errorf("%s returned %s, want %s", key, it.Results[registry.ResultReturned], want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(ran) != 8 || ran[0] != "1" {
		f.Errorf("ran %v", ran)
	}
}

// waits: of every task that waits, the Registry says why: a requirement, a hold, a time, capacity.
func waits(f *fixture) {
	f.must(f.store.Announce(f.Context(), []registry.Function{{Name: "work"}, {Name: "count"}}))
	add := func(t registry.NewTask) string {
		it, err := f.people.AddTask(f.Context(), t)
		f.must(err)
		return it.ID
	}
	first := add(registry.NewTask{Function: "work", Title: "first"})
	blocked := add(registry.NewTask{Function: "work", Requires: []registry.Requirement{{ItemID: first}}})
	later := add(registry.NewTask{Function: "work", NotBefore: time.Now().Add(time.Hour)})
	held := add(registry.NewTask{Function: "work"})
	f.must(f.people.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: held, Reason: "wait for the curator", Actor: "admin"}))
	paused := add(registry.NewTask{Function: "count"})
	f.must(f.people.AddHold(f.Context(), registry.Hold{Scope: registry.HoldStage, Key: "run:count", Reason: "the server is down", Actor: "admin"}))
	for id, want := range map[string]struct {
		reason registry.Reason
		text   string
	}{
		first: {registry.ReasonQueued, ""}, blocked: {registry.ReasonBlocked, first}, later: {registry.ReasonNotDue, ""},
		held: {registry.ReasonHeld, "wait for the curator"}, paused: {registry.ReasonHeld, "the server is down"},
	} {
		why, err := f.people.Why(f.Context(), id)
		f.must(err)
		if why.Reason != want.reason || !strings.Contains(why.Sentence, want.text) {
			f.Errorf("%+v, want %s with %q", why, want.reason, want.text)
		}
	}
}

// waitsForCapacity: a task that a limit keeps back says which.
func waitsForCapacity(f *fixture) {
	var m task.Mux
	s := scripted(&m, "a")
	f.must(f.people.SetLimit(f.Context(), registry.Limit{Scope: registry.HoldStage, Key: "run:work", Most: 1, Actor: "admin"}))
	f.serve(&m)
	f.submitted(s, "a")
	<-s.begun
	b := f.submitted(s, "b")
	why, err := f.people.Why(f.Context(), b)
	f.must(err)
	if why.Reason != registry.ReasonLimit || !strings.Contains(why.Sentence, "the limit of 1 running item at run:work is reached") || !strings.Contains(why.Act, "raise the limit") {
		f.Errorf("%+v", why)
	}
	close(s.gates["a"])
	f.settled(b)
}

// graphView: the view of a graph shows what is done, what runs and how far, what is blocked and by
// what, and what failed and awaits repair; and so does what is around one of its tasks.
func graphView(f *fixture) {
	var m task.Mux
	running, end := make(chan struct{}), make(chan struct{})
	work := task.Handle(&m, "work", func(ctx context.Context, run *task.Run, key string) (string, error) {
		switch key {
		case "3":
			return "", task.Fail(errors.New("the scanner is broken"))
		case "5":
			p := run.Progress("pages", "pages")
			p.SetEnd(100)
			p.Set(40)
			close(running)
			select {
			case <-end:
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		return key, nil
	})
	var g task.Graph
	for key, requires := range map[string][]string{"1": nil, "2": {"1"}, "3": {"1"}, "4": {"1"}, "5": {"2"}, "6": {"3"}, "7": {"5"}, "8": {"6", "7"}} {
		task.Add(&g, key, work, key, task.After(requires...))
	}
	f.serve(&m)
	defer close(end)
	p, err := g.Submit(f.Context(), f.people, "curator", "")
	f.must(err)
	<-running
	f.settled(p.Items["3"])
	f.settled(p.Items["4"])
	tree := func(v *graphview.View, err error) string {
		f.must(err)
		var b strings.Builder
		f.must(v.WriteTree(&b, graphview.Text{Most: 100, Now: time.Now(), Clean: func(s string) string { return s }}))
		return b.String()
	}
	var whole string
	f.await(func() bool { // the renewal brings the progress
		whole = tree(graphview.OfGraph(f.Context(), f.people, p.GraphID))
		return strings.Contains(whole, "pages 40 of 100")
	})
	for _, want := range []string{"1 Failed, 1 Processing, 3 Pending, 3 Completed", "awaits repair: the scanner is broken", "holds up 2", "waits for 3 (failed)", "waits for 5", "waits for 6, 7"} {
		if !strings.Contains(strings.NewReplacer("6, 7", "6, 7", "7, 6", "6, 7").Replace(whole), want) {
			f.Errorf("%q is missing:\n%s", want, whole)
		}
	}
	q, err := f.people.QueueStatus(f.Context())
	f.must(err)
	i := slices.IndexFunc(q.Stages, func(s registry.StageQueue) bool { return s.Stage == "run:work" })
	if i < 0 || q.Stages[i].Running != 1 || q.Stages[i].Waiting != 3 || q.Stages[i].Ready != 0 {
		f.Errorf("the whole queue: %+v", q.Stages)
	}
	for status, want := range map[registry.Status]int{registry.Running: 1, registry.Pending: 3, registry.Failed: 1, registry.Completed: 3} {
		page, err := f.people.Items(f.Context(), registry.ItemQuery{Action: registry.Task, Status: status})
		f.must(err)
		if len(page.Rows) != want {
			f.Errorf("%d tasks of the whole queue are %s, want %d", len(page.Rows), status, want)
		}
	}
	near := tree(graphview.OfItem(f.Context(), f.people, p.Items["6"]))
	for key, there := range map[string]bool{"✓ 1": true, "✗ 3": true, "… 6": true, "… 8": true, "✓ 4": false, "▸ 5": false} {
		if strings.Contains(near, key+" ") != there {
			f.Errorf("around 6, %s is there: %t, want %t\n%s", key, !there, there, near)
		}
	}
}

// waiting is a function that reports when it has begun, and returns what its context ends with.
func waiting(m *task.Mux, options ...task.Option) (f *task.Function[none, none], begun chan *task.Run) {
	begun = make(chan *task.Run, 1)
	return task.Handle(m, "work", func(ctx context.Context, run *task.Run, _ none) (none, error) {
		begun <- run
		<-ctx.Done()
		return none{}, context.Cause(ctx)
	}, options...), begun
}

func stops(f *fixture) {
	var m task.Mux
	work, begun := waiting(&m)
	stop := f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	<-begun
	stop()
	if it := f.item(id); it.Status != registry.Pending || it.Tries != 0 {
		f.Errorf("item %+v, want pending and nothing counted", it)
	}
	var again task.Mux
	task.Handle(&again, "work", func(context.Context, *task.Run, none) (none, error) { return none{}, nil })
	f.serve(&again)
	if it := f.settled(id); it.Status != registry.Completed || len(f.attempts(id)) != 2 {
		f.Errorf("item %+v", it)
	}
}

// drain drains everything; what has not stopped is withdrawn after a time.
func (f *fixture) drain(after time.Duration) {
	f.Helper()
	f.must(f.people.Drain(f.Context(), registry.Drain{Until: time.Now().Add(after), Reason: "new disks", Actor: "admin"}))
}

func drains(f *fixture) {
	var m task.Mux
	var stopped sync.Once
	begun := make(chan *task.Run, 2)
	work := task.Handle(&m, "work", func(ctx context.Context, run *task.Run, _ none) (none, error) {
		first := false
		stopped.Do(func() { first = true })
		begun <- run
		if first {
			<-ctx.Done()
			return none{}, context.Cause(ctx)
		}
		return none{}, nil
	})
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	<-begun
	f.drain(time.Hour)
	q, err := f.people.QueueStatus(f.Context())
	f.must(err)
	if q.Drain == nil || q.Drain.Reason != "new disks" || q.Paused == nil {
		f.Errorf("status %+v", q)
	}
	f.await(func() bool { return f.item(id).Status == registry.Pending })
	second, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	if it := f.item(id); it.Tries != 0 || f.item(second).Status != registry.Pending {
		f.Errorf("item %+v, want pending and nothing counted", it)
	}
	if q, err = f.people.QueueStatus(f.Context()); err != nil || q.Drain == nil || q.Drain.Left != 0 || q.Drain.Done != nil {
		f.Errorf("drain %+v, %v; want nothing left", q.Drain, err)
	}
	f.must(f.people.RemoveHold(f.Context(), registry.HoldAll, "", "admin"))
	for _, id := range []string{id, second} {
		if it := f.settled(id); it.Status != registry.Completed {
			f.Errorf("item %+v", it)
		}
	}
	if q, err = f.people.QueueStatus(f.Context()); err != nil || q.Drain != nil {
		f.Errorf("drain %+v, %v; want none after the resume", q.Drain, err)
	}
}

func drainsByForce(f *fixture) {
	var m task.Mux
	begun, end := make(chan struct{}, 2), make(chan struct{})
	work := task.Handle(&m, "work", func(ctx context.Context, run *task.Run, _ none) (none, error) {
		begun <- struct{}{}
		if run.Attempt == 1 {
			<-end // it heeds no context
		}
		return none{}, nil
	})
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	<-begun
	f.drain(0)
	_, err = f.store.Sweep(f.Context(), time.Minute)
	f.must(err)
	it := f.item(id)
	if all := f.attempts(id); it.Status != registry.Pending || it.Tries != 0 || len(all) != 1 || all[0].Outcome != registry.OutcomeWithdrawn {
		f.Errorf("item %+v, attempts %+v; want it withdrawn and pending", it, all)
	}
	close(end) // its late success is refused
	f.must(f.people.RemoveHold(f.Context(), registry.HoldAll, "", "admin"))
	if it := f.settled(id); it.Status != registry.Completed || len(f.attempts(id)) != 2 {
		f.Errorf("item %+v", it)
	}
}

func cancelled(f *fixture) {
	var m task.Mux
	work, begun := waiting(&m)
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	<-begun
	_, err = f.people.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActCancel, Actor: "admin"})
	f.must(err)
	if it := f.item(id); it.Status != registry.Cancelled {
		f.Errorf("item %+v", it)
	}
	// The slot is free again: the function has seen it.
	second, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	if run := <-begun; run.ID != second {
		f.Errorf("ran %s, want %s", run.ID, second)
	}
}

func once(f *fixture) {
	made := 0
	var m task.Mux
	work := task.Handle(&m, "work", func(ctx context.Context, run *task.Run, _ none) (int, error) {
		var number int
		err := run.Once(ctx, "number", &number, func(context.Context) (any, error) {
			made++
			return 42, nil
		})
		if err == nil && run.Attempt == 1 {
			err = errors.New("after it was made")
		}
		return number, err
	}, task.Backoff(time.Millisecond, 1, time.Second))
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	if it := f.settled(id); string(it.Results[registry.ResultReturned]) != "42" || made != 1 || len(f.attempts(id)) != 2 {
		f.Errorf("made %d times, item %+v", made, it)
	}
}

func state(f *fixture) {
	type reached struct {
		Page int `json:"page"`
	}
	var m task.Mux
	work := task.Handle(&m, "work", func(ctx context.Context, run *task.Run, _ none) (int, error) {
		var at reached
		known, err := run.State(&at)
		if err != nil || known != (run.Attempt > 1) {
			return 0, task.Fail(fmt.Errorf("attempt %d: state %v %+v: %w", run.Attempt, known, at, err))
		}
		for range 2 {
			at.Page++
			if err := run.SetState(ctx, at); err != nil {
				return 0, err
			}
		}
		if run.Attempt < 3 {
			return 0, errors.New("interrupted")
		}
		_, err = run.State(&at)
		return at.Page, err
	}, task.Backoff(time.Millisecond, 1, time.Second))
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	if it := f.settled(id); string(it.Results[registry.ResultReturned]) != "6" || string(it.Results[registry.ResultState]) != `{"page":6}` {
		f.Errorf("item %+v", it)
	}
}

func failed(f *fixture) {
	var m task.Mux
	work := task.Handle(&m, "work", func(context.Context, *task.Run, none) (none, error) {
		return none{}, task.Fail(errors.New("the tape is gone"))
	})
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	it := f.settled(id)
	if it.Status != registry.Failed || it.ErrorClass != registry.SystemFault || !strings.Contains(it.Note, "the tape is gone") || len(f.attempts(id)) != 1 {
		f.Errorf("item %+v", it)
	}
	if a := f.attempts(id)[0]; a.FinishedAt == nil || !strings.Contains(a.Error, "the tape is gone") {
		f.Errorf("attempt %+v", a)
	}
}

func retried(f *fixture) {
	var m task.Mux
	work := task.Handle(&m, "work", func(context.Context, *task.Run, none) (none, error) {
		return none{}, errors.New("no route to host")
	}, task.Attempts(3), task.Backoff(time.Millisecond, 2, time.Second))
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	if it := f.settled(id); it.Status != registry.Failed || len(f.attempts(id)) != 3 {
		f.Errorf("item %+v after %d attempts", it, len(f.attempts(id)))
	}
}

func panics(f *fixture) {
	var m task.Mux
	work := task.Handle(&m, "work", func(_ context.Context, _ *task.Run, bad bool) (string, error) {
		if bad {
			panic("a fault of the program")
		}
		return "fine", nil
	}, task.Attempts(1))
	f.serve(&m)
	bad, err := work.Submit(f.Context(), f.people, true)
	f.must(err)
	good, err := work.Submit(f.Context(), f.people, false)
	f.must(err)
	if it := f.settled(bad); it.Status != registry.Failed || !strings.Contains(it.Note, "a fault of the program") {
		f.Errorf("item %+v", it)
	}
	if it := f.settled(good); it.Status != registry.Completed {
		f.Errorf("item %+v", it)
	}
}

func progress(f *fixture) {
	release := make(chan struct{})
	var m task.Mux
	work := task.Handle(&m, "work", func(ctx context.Context, run *task.Run, _ none) (none, error) {
		files := run.Progress("files checked", "files")
		files.SetStart(2)
		files.SetEnd(7)
		files.Add(1)
		run.Progress("bytes read", "bytes").Add(1000)
		run.Progress("pauses", "").Set(1)
		select {
		case <-release:
		case <-ctx.Done():
			return none{}, context.Cause(ctx)
		}
		files.Set(7)
		return none{}, nil
	}, task.Lease(3*time.Second))
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	measured := func(position int64) func() bool {
		want := []registry.Progress{
			{Title: "files checked", Unit: "files", Start: 2, Position: position, End: 7},
			{Title: "bytes read", Unit: "bytes", Position: 1000, End: -1},
			{Title: "pauses", Position: 1, End: -1},
		}
		return func() bool {
			all := f.attempts(id)
			return len(all) == 1 && slices.Equal(all[0].Progress, want)
		}
	}
	f.await(measured(3))
	if it := f.item(id); it.Status != registry.Running {
		f.Errorf("item %+v", it)
	}
	close(release)
	f.settled(id)
	f.await(measured(7))
}

func logs(f *fixture) {
	release := make(chan struct{})
	var m task.Mux
	work := task.Handle(&m, "work", func(ctx context.Context, run *task.Run, _ none) (none, error) {
		run.Log.With("host", "example.org").WarnContext(ctx, "no answer\nyet", "try", 1, slog.Group("of", "all", "3 tries"))
		run.Log.DebugContext(ctx, "not kept")
		select {
		case <-release:
		case <-ctx.Done():
			return none{}, context.Cause(ctx)
		}
		run.Log.ErrorContext(ctx, "given up")
		return none{}, task.Fail(errors.New("no answer"))
	}, task.Lease(3*time.Second))
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	read := func() (texts []string) {
		page, err := f.people.Log(f.Context(), registry.LogQuery{ItemID: id, Limit: 10})
		f.must(err)
		for _, l := range page.Rows {
			texts = append(texts, fmt.Sprint(l.N, " ", l.Level, " ", l.Text))
		}
		return texts
	}
	want := []string{"1 WARN no answer", `1 WARN yet host=example.org try=1 of.all="3 tries"`}
	f.await(func() bool { return slices.Equal(read(), want) })
	if it := f.item(id); it.Status != registry.Running {
		f.Errorf("item %+v", it)
	}
	close(release)
	f.settled(id)
	if got, want := read(), append(want, "1 ERROR given up"); !slices.Equal(got, want) {
		f.Errorf("log %q, want %q", got, want)
	}
}

type order struct {
	Number int      `json:"number"`
	Words  []string `json:"words,omitempty"`
}

func arguments(f *fixture) {
	var m task.Mux
	work := task.Handle(&m, "work", func(_ context.Context, _ *task.Run, in order) (order, error) {
		in.Number++
		return in, nil
	}, task.Title("Count up"))
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, order{Number: 1, Words: []string{"a"}}, func(n *registry.NewTask) { n.Subject = "ark:/99999/x" })
	f.must(err)
	it := f.settled(id)
	var spec registry.TaskSpec
	f.must(json.Unmarshal(it.Spec, &spec))
	if string(it.Results[registry.ResultReturned]) != `{"number":2,"words":["a"]}` || it.Name != "Count up" {
		f.Errorf("item %+v", it)
	}
	if spec.Function != "work" || string(spec.Args) != `{"number":1,"words":["a"]}` || spec.Subject != "ark:/99999/x" {
		f.Errorf("spec %+v with %s", spec, spec.Args)
	}
	for _, bad := range []string{`{}`, `{"number":"1"}`, `{"number":1,"other":2}`, ``} {
		_, err := f.people.AddTask(f.Context(), registry.NewTask{Function: "work", Args: json.RawMessage(bad)})
		if !errors.As(err, new(*registry.ArgumentError)) {
			f.Errorf("%s: %v, want an ArgumentError", bad, err)
		}
	}
}

func events(f *fixture) {
	actor := make(chan string, 1)
	var m task.Mux
	work := task.Handle(&m, "work", func(_ context.Context, run *task.Run, _ none) (none, error) {
		actor <- run.Actor + " " + run.Cause
		return none{}, nil
	})
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{}, func(n *registry.NewTask) { n.Actor, n.Cause = "curator", "ingest-1" })
	f.must(err)
	f.settled(id)
	if got := <-actor; got != "curator ingest-1" {
		f.Errorf("actor %q", got)
	}
	all, err := f.people.Events(f.Context(), id, 0, 10)
	f.must(err)
	var got []string
	for _, e := range all {
		got = append(got, e.Type)
	}
	if want := []string{"submit", "claim", "complete"}; !slices.Equal(got, want) || all[0].Actor != "curator" || !strings.Contains(string(all[0].Data), "ingest-1") {
		f.Errorf("events %v, %+v", got, all[0])
	}
	if all[1].Attempt != 1 || all[2].Attempt != 1 {
		f.Errorf("start %+v, end %+v, want those of attempt 1", all[1], all[2])
	}
	// A person's act names the person, and why.
	id, err = work.Submit(f.Context(), f.people, none{}, func(n *registry.NewTask) { n.Actor, n.NotBefore = "curator", time.Now().Add(time.Hour) })
	f.must(err)
	_, err = f.people.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActCancel, Actor: "admin", Reason: "not needed"})
	f.must(err)
	all, err = f.people.Events(f.Context(), id, 0, 10)
	f.must(err)
	if last := all[len(all)-1]; last.Type != string(registry.ActCancel) || last.Actor != "admin" || !strings.Contains(string(last.Data), "not needed") {
		f.Errorf("last event %+v", last)
	}
}

// goroutine names the goroutine that asks.
func goroutine() string {
	name, _, _ := strings.Cut(string(debug.Stack()), " [")
	return name
}

// transitions are the types of a task's events, in their order.
func (f *fixture) transitions(id string) string {
	f.Helper()
	all, err := f.people.Events(f.Context(), id, 0, 100)
	f.must(err)
	var types []string
	for _, e := range all {
		types = append(types, e.Type)
	}
	return strings.Join(types, " ")
}

func direct(f *fixture) {
	var m task.Mux
	var in string
	work := task.Handle(&m, "work", func(_ context.Context, run *task.Run, args order) (order, error) {
		in = goroutine()
		f.is(run.ID, registry.StateProcessing)
		return order{Number: args.Number + 1}, nil
	})
	got, err := work.Call(f.Context(), f.registry, task.Options{}, order{Number: 1})
	f.must(err)
	if got.Number != 2 || in != goroutine() {
		f.Errorf("returned %+v; ran in %s, called by %s", got, in, goroutine())
	}
	page, err := f.people.Items(f.Context(), registry.ItemQuery{})
	f.must(err)
	if len(page.Rows) != 1 {
		f.Fatalf("items %+v", page.Rows)
	}
	it := f.item(page.Rows[0].ID)
	if it.Status != registry.Completed || string(it.Results[registry.ResultReturned]) != `{"number":2}` || len(f.attempts(it.ID)) != 1 {
		f.Errorf("item %+v", it)
	}
	if got := f.transitions(it.ID); got != "submit claim complete" {
		f.Errorf("its events are %s", got)
	}
}

func directFails(f *fixture) {
	var m task.Mux
	wrong := errors.New("the tape is gone")
	work := task.Handle(&m, "work", func(context.Context, *task.Run, none) (none, error) { return none{}, task.Fail(wrong) })
	if _, err := work.Call(f.Context(), f.registry, task.Options{}, none{}); !errors.Is(err, wrong) {
		f.Errorf("%v, want the function's error", err)
	}
	page, err := f.people.Items(f.Context(), registry.ItemQuery{})
	f.must(err)
	if len(page.Rows) != 1 || page.Rows[0].Status != registry.Failed {
		f.Fatalf("items %+v", page.Rows)
	}
	if got := f.transitions(page.Rows[0].ID); got != "submit claim fail" {
		f.Errorf("its events are %s", got)
	}
}

func background(f *fixture) {
	var m task.Mux
	work := task.Handle(&m, "work", func(context.Context, *task.Run, none) (string, error) { return "done", nil })
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 4)
	for range cap(answers) {
		go func() {
			text, err := work.Call(f.Context(), f.registry, task.Options{}, none{})
			answers <- answer{text, err}
		}()
	}
	for range cap(answers) {
		if a := <-answers; a.err != nil || a.text != "done" {
			f.Errorf("%+v", a)
		}
	}
	page, err := f.people.Items(f.Context(), registry.ItemQuery{Status: registry.Completed})
	f.must(err)
	if len(page.Rows) != cap(answers) {
		f.Errorf("%d tasks completed, want %d", len(page.Rows), cap(answers))
	}
	// The record is that of a task which a program took from the queue.
	f.serve(&m)
	queued, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	record := func(id string) string {
		it := f.item(id)
		all := f.attempts(id)
		if len(all) != 1 || all[0].FinishedAt == nil {
			f.Fatalf("attempts %+v", all)
		}
		return fmt.Sprint(f.transitions(id), it.Status, it.Stage, it.Tries, string(it.Results[registry.ResultReturned]), all[0].N, all[0].Outcome, all[0].Error)
	}
	f.settled(queued)
	for _, it := range page.Rows {
		if got, want := record(it.ID), record(queued); got != want {
			f.Errorf("the record is %s, want %s", got, want)
		}
	}
}

func later(f *fixture) {
	var m task.Mux
	work := task.Handle(&m, "work", func(_ context.Context, run *task.Run, _ none) (none, error) {
		if run.Attempt < 3 {
			return none{}, task.Later(time.Millisecond, "the source is closed at night")
		}
		return none{}, nil
	}, task.Attempts(1))
	f.serve(&m)
	id, err := work.Submit(f.Context(), f.people, none{})
	f.must(err)
	if it := f.settled(id); it.Status != registry.Completed || it.Attempt != 3 {
		f.Errorf("item %+v", it)
	}
}

func many(f *fixture) {
	const n = 100
	var m task.Mux
	work := task.Handle(&m, "work", func(_ context.Context, _ *task.Run, in int) (int, error) { return in, nil })
	count := task.Handle(&m, "count", func(_ context.Context, _ *task.Run, in int) (int, error) { return in, nil }, task.Slots(2))
	f.serve(&m)
	var g task.Graph
	for i := range n {
		task.Add(&g, "a"+string(rune('0'+i%10))+string(rune('0'+i/10)), work, i)
		task.Add(&g, "b"+string(rune('0'+i%10))+string(rune('0'+i/10)), count, i)
	}
	p, err := g.Submit(f.Context(), f.people, "curator", "")
	f.must(err)
	for _, id := range p.Items {
		if it := f.settled(id); it.Status != registry.Completed || it.Attempt != 1 {
			f.Errorf("item %+v", it)
		}
	}
}
