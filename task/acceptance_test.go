package task_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
)

// acceptance are the requirements about the Console's queue that concern people and the queue more
// than the functions.
var acceptance = map[string]func(*fixture){
	"C2_C3_a_prepared_graph_runs_when_it_is_sealed":      prepared,
	"C4_C5_a_raised_priority_makes_a_task_the_next":      raised,
	"C6_a_paused_function_finishes_what_runs":            paused,
	"C7_every_run_has_its_attempt":                       runs,
	"C8_C9_C10_requirements_are_counted_and_satisfied":   counted,
	"C11_C12_C19_a_repaired_task_lets_its_dependents_go": repaired,
	"C13_an_abort_ends_all_that_wait_for_it":             aborted,
	"C14_a_cycle_is_refused":                             cycle,
	"C16_nothing_is_accepted_while_what_runs_goes_on":    closed,
	"C26_what_ended_is_found_after_a_restart":            history,
}

// script is a function whose calls end as the test says, by the argument.
type script struct {
	*task.Function[string, string]
	mu    sync.Mutex
	fails map[string]bool // the calls with these arguments fail
	ran   []string
	gates map[string]chan struct{} // the calls with these arguments wait for them
	begun chan string
}

func scripted(m *task.Mux, gated ...string) *script {
	s := &script{fails: map[string]bool{}, gates: map[string]chan struct{}{}, begun: make(chan string, 20)}
	for _, g := range gated {
		s.gates[g] = make(chan struct{})
	}
	s.Function = task.Handle(m, "work", func(ctx context.Context, _ *task.Run, key string) (string, error) {
		s.mu.Lock()
		s.ran = append(s.ran, key)
		fails, gate := s.fails[key], s.gates[key]
		s.mu.Unlock()
		if gate != nil {
			s.begun <- key
			select {
			case <-gate:
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		if fails {
			return "", task.Fail(errors.New("the scanner is broken"))
		}
		return key, nil
	})
	return s
}

func (s *script) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ran)
}

// node is a task of the function in a graph.
func (f *fixture) node(s *script, key string, requires ...registry.Requirement) registry.Node {
	f.Helper()
	n, err := s.New(key)
	f.must(err)
	n.Requires = requires
	return registry.Node{Key: key, Task: &n}
}

func (f *fixture) act(id string, act registry.Act) registry.WorkItem {
	f.Helper()
	it, err := f.people.Command(f.Context(), registry.Command{ItemID: id, Act: act, Reason: "the test says so", Actor: "admin", Confirmed: true})
	f.must(err)
	return it
}

func (f *fixture) is(id string, want registry.State) {
	f.Helper()
	if it := f.item(id); it.State != want {
		f.Errorf("%s is %s, want %s", it.Name, it.State, want)
	}
}

func (f *fixture) submitted(s *script, key string, requires ...registry.Requirement) string {
	f.Helper()
	id, err := s.Submit(f.Context(), f.people, key, func(n *registry.NewTask) { n.Actor, n.Requires = "curator", requires })
	f.must(err)
	return id
}

func prepared(f *fixture) {
	var m task.Mux
	s := scripted(&m)
	f.serve(&m)
	g, err := f.people.Prepare(f.Context(), registry.Graph{Actor: "curator", Nodes: []registry.Node{f.node(s, "first")}})
	f.must(err)
	f.is(g.Items["first"], registry.StatePrepare)
	plain := f.submitted(s, "plain") // runs although it came later
	f.settled(plain)
	if got := s.calls(); !slices.Equal(got, []string{"plain"}) {
		f.Errorf("ran %v", got)
	}
	more, err := f.people.Prepare(f.Context(), registry.Graph{
		ID: g.GraphID, Actor: "curator", Seal: true, Nodes: []registry.Node{f.node(s, "second", registry.Requirement{Key: "first"})},
	})
	f.must(err)
	if it := f.settled(more.Items["second"]); it.Status != registry.Completed || !slices.Equal(s.calls(), []string{"plain", "first", "second"}) {
		f.Errorf("%s; ran %v", it.Status, s.calls())
	}
	_, err = f.people.Prepare(f.Context(), registry.Graph{ID: g.GraphID, Actor: "curator", Nodes: []registry.Node{f.node(s, "third")}})
	if !errors.Is(err, registry.ErrSealed) {
		f.Errorf("a node for a sealed graph: %v", err)
	}
}

func raised(f *fixture) {
	var m task.Mux
	s := scripted(&m)
	f.must(f.store.Announce(f.Context(), []registry.Function{{Name: "work"}}))
	// One at a time, so that the order shows.
	f.must(f.store.SetLimit(f.Context(), registry.Limit{Scope: registry.HoldStage, Key: "run:work", Most: 1, Actor: "admin"}))
	var ids []string
	for n := range 4 {
		ids = append(ids, f.submitted(s, fmt.Sprint(n)))
	}
	first := -1
	_, err := f.people.Command(f.Context(), registry.Command{ItemID: ids[2], Act: registry.ActPriority, Priority: &first, Actor: "admin"})
	f.must(err)
	f.serve(&m)
	for _, id := range ids {
		f.settled(id)
	}
	if got := s.calls(); !slices.Equal(got, []string{"2", "0", "1", "3"}) {
		f.Errorf("ran %v", got)
	}
}

func paused(f *fixture) {
	var m task.Mux
	s := scripted(&m, "a")
	count := task.Handle(&m, "count", func(context.Context, *task.Run, none) (none, error) { return none{}, nil })
	f.serve(&m)
	a := f.submitted(s, "a")
	<-s.begun
	f.must(f.people.AddHold(f.Context(), registry.Hold{Scope: registry.HoldStage, Key: "run:work", Reason: "the scanner is cleaned", Actor: "admin"}))
	b := f.submitted(s, "b")
	other, err := count.Submit(f.Context(), f.people, none{})
	f.must(err)
	f.settled(other) // another function goes on
	close(s.gates["a"])
	if it := f.settled(a); it.Status != registry.Completed {
		f.Errorf("what ran is %s", it.Status)
	}
	f.is(b, registry.StateHeld)
	f.must(f.people.RemoveHold(f.Context(), registry.HoldStage, "run:work", "admin"))
	if it := f.settled(b); it.Status != registry.Completed {
		f.Errorf("what was held is %s", it.Status)
	}
}

func runs(f *fixture) {
	var m task.Mux
	s := scripted(&m)
	s.fails["a"] = true
	f.serve(&m)
	id := f.submitted(s, "a")
	f.settled(id)
	s.mu.Lock()
	s.fails["a"] = false
	s.mu.Unlock()
	f.act(id, registry.ActRequeue)
	f.await(func() bool { return f.item(id).Status == registry.Completed })
	all := f.attempts(id)
	if len(all) != 2 || all[0].Outcome != registry.OutcomeFailed || all[1].Outcome != registry.OutcomeDone || !strings.Contains(all[0].Error, "scanner") {
		f.Fatalf("attempts %+v", all)
	}
	for _, a := range all {
		if a.FinishedAt == nil || a.FinishedAt.Before(a.StartedAt) {
			f.Errorf("attempt %d ran from %v to %v", a.N, a.StartedAt, a.FinishedAt)
		}
	}
}

func counted(f *fixture) {
	var m task.Mux
	s := scripted(&m, "0", "1", "2")
	f.serve(&m)
	var nodes []registry.Node
	var needs []registry.Requirement
	for n := range 3 {
		key := fmt.Sprint(n)
		nodes = append(nodes, f.node(s, key))
		needs = append(needs, registry.Requirement{Key: key})
	}
	nodes = append(nodes, f.node(s, "last", needs...), f.node(s, "beside", needs[0]))
	p, err := f.people.Prepare(f.Context(), registry.Graph{Actor: "curator", Seal: true, Nodes: nodes})
	f.must(err)
	for range 3 {
		<-s.begun
	}
	for n := range 3 {
		around, err := f.people.Around(f.Context(), p.Items["last"], 100)
		f.must(err)
		open := 0
		for _, e := range around.Edges {
			if e.ItemID == p.Items["last"] && e.SatisfiedAt == nil {
				open++
			}
		}
		if it := f.item(p.Items["last"]); int(it.BlockerCount) != 3-n || open != 3-n || it.Status != registry.Pending {
			f.Errorf("%d blockers, %d open requirements, %s; want %d", it.BlockerCount, open, it.Status, 3-n)
		}
		close(s.gates[fmt.Sprint(n)])
		f.settled(p.Items[fmt.Sprint(n)])
		if n == 0 {
			f.settled(p.Items["beside"]) // it waited for this one only
		}
	}
	if it := f.settled(p.Items["last"]); it.Status != registry.Completed || it.BlockerCount != 0 {
		f.Errorf("the last is %s with %d blockers", it.Status, it.BlockerCount)
	}
	// A requirement that is met already does not count.
	if it := f.settled(f.submitted(s, "late", registry.Requirement{ItemID: p.Items["last"]})); it.Status != registry.Completed {
		f.Errorf("the late one is %s", it.Status)
	}
}

func repaired(f *fixture) {
	for key, stopped := range map[string]registry.Status{"fails": registry.Failed, "cancelled": registry.Cancelled} {
		var m task.Mux
		s := scripted(&m, "cancelled")
		s.fails["fails"] = true
		stop := f.serve(&m)
		p, err := f.people.Prepare(f.Context(), registry.Graph{Actor: "curator", Seal: true, Nodes: []registry.Node{
			f.node(s, key), f.node(s, "next", registry.Requirement{Key: key}), f.node(s, "anyhow", registry.Requirement{Key: key, WaitFor: registry.WaitSettled}),
		}})
		f.must(err)
		if stopped == registry.Cancelled {
			<-s.begun
			f.act(p.Items[key], registry.ActCancel)
		}
		if it := f.settled(p.Items[key]); it.Status != stopped {
			f.Fatalf("%s is %s", key, it.Status)
		}
		f.settled(p.Items["anyhow"]) // any end is enough for this one
		if next := f.item(p.Items["next"]); next.Status != registry.Pending || next.BlockerCount != 1 {
			f.Errorf("after %s the next is %s with %d blockers", key, next.Status, next.BlockerCount)
		}
		s.mu.Lock()
		s.fails, s.gates = nil, nil
		s.mu.Unlock()
		f.act(p.Items[key], registry.ActRequeue)
		if it := f.settled(p.Items["next"]); it.Status != registry.Completed {
			f.Errorf("after the repair the next is %s", it.Status)
		}
		stop()
	}
}

func aborted(f *fixture) {
	var m task.Mux
	s := scripted(&m, "root")
	f.serve(&m)
	need := func(key string) registry.Requirement { return registry.Requirement{Key: key} }
	p, err := f.people.Prepare(f.Context(), registry.Graph{Actor: "curator", Seal: true, Nodes: []registry.Node{
		f.node(s, "done"), f.node(s, "root", need("done")), f.node(s, "child", need("root")), f.node(s, "grandchild", need("child")), f.node(s, "sibling", need("done")),
	}})
	f.must(err)
	<-s.begun // root runs
	f.settled(p.Items["sibling"])
	f.act(p.Items["root"], registry.ActAbort)
	for key, want := range map[string]registry.Status{
		"root": registry.Aborted, "child": registry.Aborted, "grandchild": registry.Aborted, "done": registry.Completed, "sibling": registry.Completed,
	} {
		if it := f.item(p.Items[key]); it.Status != want {
			f.Errorf("%s is %s, want %s", key, it.Status, want)
		}
	}
	if acts := f.item(p.Items["root"]).AllowedActs; slices.Contains(acts, registry.ActRequeue) {
		f.Errorf("an aborted task allows %v", acts)
	}
}

func cycle(f *fixture) {
	var m task.Mux
	s := scripted(&m)
	f.must(f.store.Announce(f.Context(), []registry.Function{{Name: "work"}}))
	need := func(key string) registry.Requirement { return registry.Requirement{Key: key} }
	for name, nodes := range map[string][]registry.Node{
		"a cycle of three": {f.node(s, "a", need("c")), f.node(s, "b", need("a")), f.node(s, "c", need("b"))},
		"a self-edge":      {f.node(s, "a", need("a"))},
	} {
		_, err := f.people.Prepare(f.Context(), registry.Graph{Actor: "curator", Seal: true, Nodes: nodes})
		if err == nil || !strings.Contains(err.Error(), "a") {
			f.Errorf("%s: %v", name, err)
		}
	}
	page, err := f.people.Items(f.Context(), registry.ItemQuery{})
	f.must(err)
	if len(page.Rows) != 0 {
		f.Errorf("left are %+v", page.Rows)
	}
}

func closed(f *fixture) {
	var m task.Mux
	s := scripted(&m, "a")
	f.serve(&m)
	a, waiting := f.submitted(s, "a"), ""
	<-s.begun
	waiting = f.submitted(s, "b", registry.Requirement{ItemID: a})
	f.must(f.people.SetAccepting(f.Context(), registry.Accepting{On: false, Reason: "new disks on Monday", Actor: "admin"}))
	_, err := s.Submit(f.Context(), f.people, "c")
	refused := &registry.NotAccepting{}
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "new disks on Monday") {
		f.Errorf("a submission: %v", err)
	}
	close(s.gates["a"])
	for _, id := range []string{a, waiting} {
		if it := f.settled(id); it.Status != registry.Completed {
			f.Errorf("%s is %s", it.Name, it.Status)
		}
	}
	f.must(f.people.SetAccepting(f.Context(), registry.Accepting{On: true, Reason: "the disks are in", Actor: "admin"}))
	f.settled(f.submitted(s, "d"))
}

func history(f *fixture) {
	var m task.Mux
	s := scripted(&m, "cancelled")
	s.fails["fails"] = true
	stop := f.serve(&m)
	ids := map[registry.Status]string{registry.Completed: f.submitted(s, "good"), registry.Failed: f.submitted(s, "fails"), registry.Cancelled: f.submitted(s, "cancelled")}
	<-s.begun
	f.act(ids[registry.Cancelled], registry.ActCancel)
	for _, id := range ids {
		f.settled(id)
	}
	stop()
	f.reopen()
	for status, id := range ids {
		page, err := f.people.Items(f.Context(), registry.ItemQuery{Status: status})
		f.must(err)
		if len(page.Rows) != 1 || page.Rows[0].ID != id {
			f.Errorf("%s are %+v, want %s", status, page.Rows, id)
		}
		events, err := f.people.Events(f.Context(), id, 0, 100)
		f.must(err)
		if all := f.attempts(id); len(all) != 1 || all[0].FinishedAt == nil || len(events) < 3 {
			f.Errorf("of what is %s there are %d attempts and %d events", status, len(all), len(events))
		}
	}
}
