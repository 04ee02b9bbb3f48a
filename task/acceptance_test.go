package task_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/tasktest"
)

// acceptance are the requirements about the Console's queue that concern people and the queue more
// than the functions.
var acceptance = map[string]func(*fixture){
	"C2_a_prepared_graph_runs_when_it_is_sealed":         prepared,
	"C3_a_task_has_every_status_in_its_time":             statuses,
	"C4_C5_a_raised_priority_makes_a_task_the_next":      raised,
	"C6_a_paused_function_finishes_what_runs":            paused,
	"C6_a_paused_task_waits_or_finishes":                 pausedItem,
	"C6_a_function_runs_at_once_as_it_announces":         announced,
	"C7_every_run_has_its_attempt":                       runs,
	"C8_C9_C10_requirements_are_counted_and_satisfied":   counted,
	"C11_C12_C19_a_repaired_task_lets_its_dependents_go": repaired,
	"C13_an_abort_ends_all_that_wait_for_it":             aborted,
	"C9_blockers_equal_a_recount_at_all_times":           recounted,
	"C14_a_cycle_is_refused":                             cycle,
	"C14_a_met_requirement_is_born_satisfied":            bornSatisfied,
	"C16_nothing_is_accepted_while_what_runs_goes_on":    closed,
	"C26_what_ended_is_found_after_a_restart":            history,
}

// script is a function whose calls end as the test says, by the argument.
type script struct {
	*task.Function[string, string]
	Func task.Func[string, string]

	mu    sync.Mutex
	fails map[string]bool // the calls with these arguments fail
	ran   []string
	gates map[string]chan struct{} // the calls with these arguments wait for them
	begun chan string
	ended chan string // the calls that were told to stop

	running, most int // calls at once: now, and ever
}

func scripted(m *task.Mux, gated ...string) *script {
	s := &script{fails: map[string]bool{}, gates: map[string]chan struct{}{}, begun: make(chan string, 20), ended: make(chan string, 20)}
	for _, g := range gated {
		s.gates[g] = make(chan struct{})
	}
	s.Func = func(ctx context.Context, _ *task.Run, key string) (string, error) {
		s.mu.Lock()
		s.ran = append(s.ran, key)
		s.running++
		s.most = max(s.most, s.running)
		fails, gate := s.fails[key], s.gates[key]
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.running--
		}()
		if gate != nil {
			s.begun <- key
			select {
			case <-gate:
			case <-ctx.Done():
				s.ended <- key
				return "", context.Cause(ctx)
			}
		}
		if fails {
			return "", task.Fail(errors.New("the scanner is broken"))
		}
		return key, nil
	}
	s.Function = task.Handle(m, "work", s.Func)
	return s
}

// release lets all later calls succeed at once.
func (s *script) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails, s.gates = nil, nil
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
	need := func(key string) registry.Requirement { return registry.Requirement{Key: key} }
	_, err = f.people.Prepare(f.Context(), registry.Graph{
		ID: g.GraphID, Actor: "curator", Seal: true, Nodes: []registry.Node{f.node(s, "a", need("b")), f.node(s, "b", need("a"))},
	})
	part, listed := f.people.GraphNodes(f.Context(), g.GraphID, "", 10)
	f.must(listed)
	if err == nil || part.Sealed || len(part.Nodes) != 1 || part.Nodes[0].Status != registry.Prepare {
		f.Errorf("sealed with a cycle: %v; the graph is %+v", err, part)
	}
	plain := f.submitted(s, "plain") // runs although it came later
	f.settled(plain)
	if got := s.calls(); !slices.Equal(got, []string{"plain"}) {
		f.Errorf("ran %v", got)
	}
	more, err := f.people.Prepare(f.Context(), registry.Graph{
		ID: g.GraphID, Actor: "curator", Seal: true, Nodes: []registry.Node{f.node(s, "second", need("first"))},
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

// statuses: a task is each of the seven statuses in its time, and a plain one begins as pending.
func statuses(f *fixture) {
	var m task.Mux
	s := scripted(&m, "runs", "cancelled", "aborted")
	s.fails["fails"] = true
	f.must(f.store.Announce(f.Context(), []registry.Function{{Name: "work"}}))
	g, err := f.people.Prepare(f.Context(), registry.Graph{Actor: "curator", Nodes: []registry.Node{f.node(s, "prepared")}})
	f.must(err)
	ids := map[string]string{}
	for _, key := range []string{"good", "fails", "runs", "cancelled", "aborted"} {
		n, err := s.New(key)
		f.must(err)
		n.Actor = "curator"
		it, err := f.people.AddTask(f.Context(), n)
		f.must(err)
		if ids[key] = it.ID; it.Status != registry.Pending {
			f.Errorf("%s begins as %s", key, it.Status)
		}
	}
	f.serve(&m)
	for range 3 {
		<-s.begun
	}
	f.act(ids["cancelled"], registry.ActCancel)
	f.act(ids["aborted"], registry.ActAbort)
	f.settled(ids["good"])
	f.settled(ids["fails"])
	waiting := f.submitted(s, "waits", registry.Requirement{ItemID: ids["runs"]})
	for id, want := range map[string]registry.Status{
		g.Items["prepared"]: registry.Prepare, waiting: registry.Pending, ids["runs"]: registry.Running, ids["good"]: registry.Completed,
		ids["fails"]: registry.Failed, ids["cancelled"]: registry.Cancelled, ids["aborted"]: registry.Aborted,
	} {
		page, err := f.people.Items(f.Context(), registry.ItemQuery{Status: want})
		f.must(err)
		if len(page.Rows) != 1 || page.Rows[0].ID != id {
			f.Errorf("%s are %+v, want %s", want, page.Rows, id)
		}
	}
	close(s.gates["runs"])
	f.settled(waiting)
}

// raised: what is ready runs by priority and then by age, as capacity permits.
func raised(f *fixture) {
	var m task.Mux
	s := scripted(&m)
	f.must(f.store.Announce(f.Context(), []registry.Function{{Name: "work"}}))
	// One at a time, so that the order shows.
	f.must(f.people.SetLimit(f.Context(), registry.Limit{Scope: registry.HoldStage, Key: "run:work", Most: 1, Actor: "admin"}))
	low, first, before := 5, -1, -9 // only an operator's act makes a priority negative
	add := func(key string, priority *int, requires ...registry.Requirement) string {
		id, err := s.Submit(f.Context(), f.people, key, func(n *registry.NewTask) { n.Actor, n.Priority, n.Requires = "curator", priority, requires })
		f.must(err)
		return id
	}
	ids := []string{add("low", &low)}
	for n := range 4 {
		ids = append(ids, add(fmt.Sprint(n), nil))
	}
	ids = append(ids, add("blocked", nil, registry.Requirement{ItemID: ids[4]}))
	if got := f.item(ids[1]).Priority; got != 0 {
		f.Errorf("the default priority is %d", got)
	}
	for id, p := range map[string]*int{ids[3]: &first, ids[5]: &before} {
		_, err := f.people.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActPriority, Priority: p, Actor: "admin"})
		f.must(err)
	}
	f.serve(&m)
	for _, id := range ids {
		f.settled(id)
	}
	if got := s.calls(); !slices.Equal(got, []string{"2", "0", "1", "3", "blocked", "low"}) || s.most != 1 {
		f.Errorf("ran %v, %d at once", got, s.most)
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

// pausedItem is the same for one task.
func pausedItem(f *fixture) {
	var m task.Mux
	s := scripted(&m, "a")
	f.serve(&m)
	a := f.submitted(s, "a")
	<-s.begun
	b := f.submitted(s, "b", registry.Requirement{ItemID: a})
	other := f.submitted(s, "other", registry.Requirement{ItemID: a})
	for _, id := range []string{a, b} {
		f.must(f.people.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: id, Reason: "the scanner is cleaned", Actor: "admin"}))
	}
	close(s.gates["a"])
	for _, id := range []string{a, other} {
		if it := f.settled(id); it.Status != registry.Completed {
			f.Errorf("%s is %s", it.Name, it.Status)
		}
	}
	f.is(b, registry.StateHeld)
	f.must(f.people.RemoveHold(f.Context(), registry.HoldItem, b, "admin"))
	if it := f.settled(b); it.Status != registry.Completed {
		f.Errorf("what was held is %s", it.Status)
	}
}

// announced: no more tasks run at once than the function announces, in all programs together, until an
// admin sets another limit.
func announced(f *fixture) {
	keys := []string{"a", "b", "c", "d", "e"}
	var one, two task.Mux
	s := scripted(&one, keys...)
	task.Handle(&two, "work", s.Func, task.AtOnce(2))
	f.serve(&two)
	tasktest.Serve(f, f.registry, &two)
	var ids []string
	for _, key := range keys {
		ids = append(ids, f.submitted(s, key))
	}
	<-s.begun
	<-s.begun
	why, err := f.people.Why(f.Context(), ids[4])
	f.must(err)
	if why.Reason != registry.ReasonLimit || !strings.Contains(why.Sentence, "the limit of 2 running items at run:work is reached") {
		f.Errorf("%+v", why)
	}
	f.must(f.people.SetLimit(f.Context(), registry.Limit{Scope: registry.HoldStage, Key: "run:work", Most: 3, Actor: "admin"}))
	<-s.begun
	for _, key := range keys {
		close(s.gates[key])
	}
	for _, id := range ids {
		f.settled(id)
	}
	if s.most != 3 {
		f.Errorf("%d ran at once, want 3", s.most)
	}
}

// runs: every run has its attempt with start and end, and at most one is live.
func runs(f *fixture) {
	var m task.Mux
	s := scripted(&m, "a")
	s.fails["a"] = true
	f.serve(&m)
	id := f.submitted(s, "a")
	live := func(n int) {
		f.Helper()
		<-s.begun
		all := f.attempts(id)
		if len(all) != n {
			f.Fatalf("attempts %+v", all)
		}
		for i, a := range all {
			if ended := a.FinishedAt != nil; ended != (i < n-1) {
				f.Errorf("attempt %d of %d has ended: %t", i+1, n, ended)
			}
		}
	}
	live(1)
	close(s.gates["a"])
	f.settled(id)
	s.mu.Lock()
	s.fails["a"], s.gates["a"] = false, make(chan struct{})
	s.mu.Unlock()
	f.act(id, registry.ActRequeue)
	live(2)
	close(s.gates["a"])
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
	if all[1].StartedAt.Before(*all[0].FinishedAt) {
		f.Errorf("the second began at %v, before the first ended at %v", all[1].StartedAt, all[0].FinishedAt)
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
	if all, calls := f.attempts(p.Items["last"]), s.calls(); len(all) != 1 || calls[len(calls)-1] != "last" || len(calls) != len(nodes) {
		f.Errorf("the last has the attempts %+v; called were %v", all, calls) // it does not ask whether it may run
	}
}

// recounted: while a random graph runs, fails, is cancelled and requeued, each task's count of
// blockers is that of its open requirements whenever somebody looks.
func recounted(f *fixture) {
	const n = 24
	seed := uint64(looptest.Number(f, 1<<30))
	random := rand.New(rand.NewPCG(seed, 0))
	defer func() {
		if f.Failed() {
			f.Logf("the graph's seed is %d", seed)
		}
	}()
	var m task.Mux
	s := scripted(&m)
	var nodes []registry.Node
	for i := range n {
		key := fmt.Sprint(i)
		s.fails[key] = random.IntN(3) == 0
		var needs []registry.Requirement
		for j := range i {
			if random.IntN(4) == 0 {
				needs = append(needs, registry.Requirement{Key: fmt.Sprint(j), WaitFor: []registry.WaitFor{registry.WaitSuccess, registry.WaitSettled}[random.IntN(2)]})
			}
		}
		nodes = append(nodes, f.node(s, key, needs...))
	}
	f.serve(&m)
	p, err := f.people.Prepare(f.Context(), registry.Graph{Actor: "curator", Seal: true, Nodes: nodes})
	f.must(err)
	looks, left := 0, n
	f.await(func() bool {
		part, ok := f.stable(p.GraphID)
		if !ok {
			return false
		}
		looks++
		open := map[string]int64{}
		for _, e := range part.Edges {
			if e.SatisfiedAt == nil {
				open[e.ItemID]++
			}
		}
		left = 0
		for _, node := range part.Nodes {
			if node.BlockerCount != open[node.ID] {
				f.Errorf("%s (%s) has %d blockers and %d open requirements", node.Key, node.Status, node.BlockerCount, open[node.ID])
			}
			if node.Status == registry.Completed {
				continue
			}
			left++
			switch act := registry.ActRequeue; {
			case random.IntN(3) > 0:
			case node.Status == registry.Failed, node.Status == registry.Cancelled:
				s.mu.Lock()
				s.fails[node.Key] = random.IntN(4) == 0
				s.mu.Unlock()
				f.act(node.ID, act)
			case node.Status == registry.Pending && random.IntN(8) == 0:
				_, err := f.people.Command(f.Context(), registry.Command{ItemID: node.ID, Act: registry.ActCancel, Reason: "the test says so", Actor: "admin", Confirmed: true})
				if err != nil && f.item(node.ID).Status == registry.Pending { // else it has ended meanwhile
					f.Fatal(err)
				}
			}
		}
		return left == 0
	})
	f.Logf("%d looks", looks)
}

// stable reads a graph twice, and reports whether nothing had changed between the two: only then do
// nodes and edges, which are read one after the other, belong together.
func (f *fixture) stable(graphID string) (registry.GraphPart, bool) {
	f.Helper()
	var read [2]registry.GraphPart
	var texts [2]string
	for i := range read {
		var err error
		read[i], err = f.people.GraphNodes(f.Context(), graphID, "", 500)
		f.must(err)
		for _, n := range read[i].Nodes {
			texts[i] += fmt.Sprintln(n.ID, n.Status, n.BlockerCount)
		}
		for _, e := range read[i].Edges {
			texts[i] += fmt.Sprintln(e.ItemID, e.RequiresID, e.SatisfiedAt)
		}
	}
	return read[1], texts[0] == texts[1]
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
		groups, err := f.people.Failures(f.Context(), registry.ItemQuery{Action: registry.Task})
		f.must(err)
		if counts := len(groups.Rows) > 0; counts != (stopped == registry.Failed) || f.item(p.Items[key]).Tries > 0 {
			f.Errorf("%s counts as a failure: %t", stopped, counts)
		}
		f.settled(p.Items["anyhow"]) // any end is enough for this one
		if next := f.item(p.Items["next"]); next.Status != registry.Pending || next.BlockerCount != 1 {
			f.Errorf("after %s the next is %s with %d blockers", key, next.Status, next.BlockerCount)
		}
		s.release()
		f.act(p.Items[key], registry.ActRequeue)
		if it := f.settled(p.Items["next"]); it.Status != registry.Completed || len(f.attempts(it.ID)) != 1 {
			f.Errorf("after the repair the next is %s, after %d attempts", it.Status, len(f.attempts(it.ID)))
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
	if got := <-s.ended; got != "root" {
		f.Errorf("%s was stopped", got)
	}
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
	_, err = f.people.Command(f.Context(), registry.Command{ItemID: p.Items["root"], Act: registry.ActRequeue, Actor: "admin", Confirmed: true})
	if err == nil || f.item(p.Items["root"]).Status != registry.Aborted {
		f.Errorf("a requeue of an aborted task: %v", err)
	}
	if got := s.calls(); !slices.Equal(got, []string{"done", "root", "sibling"}) && !slices.Equal(got, []string{"done", "sibling", "root"}) {
		f.Errorf("ran %v", got)
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

// bornSatisfied: a requirement that is met already does not block.
func bornSatisfied(f *fixture) {
	var m task.Mux
	s := scripted(&m)
	stop := f.serve(&m)
	done := f.submitted(s, "done")
	f.settled(done)
	stop()
	late := f.submitted(s, "late", registry.Requirement{ItemID: done})
	around, err := f.people.Around(f.Context(), late, 10)
	f.must(err)
	if it := f.item(late); it.BlockerCount != 0 || len(around.Edges) != 1 || around.Edges[0].SatisfiedAt == nil {
		f.Errorf("%d blockers, edges %+v", it.BlockerCount, around.Edges)
	}
	f.serve(&m)
	if it := f.settled(late); it.Status != registry.Completed {
		f.Errorf("the late one is %s", it.Status)
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
	running := f.submitted(s, "runs")
	c, err := f.registry.Claim(f.Context(), registry.ClaimRequest{RequestID: "r", Stage: "run:work", Worker: "cut off", Lease: time.Hour, MaxAttempts: 5, StuckAfter: time.Hour})
	f.must(err)
	f.reopen()
	page, err := f.people.Items(f.Context(), registry.ItemQuery{Status: registry.Running})
	f.must(err)
	if all := f.attempts(running); c.Item.ID != running || len(page.Rows) != 1 || page.Rows[0].ID != running || len(all) != 1 || all[0].FinishedAt != nil {
		f.Errorf("running are %+v with the attempts %+v", page.Rows, all)
	}
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
