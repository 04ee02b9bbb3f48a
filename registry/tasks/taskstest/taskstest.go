// Package taskstest is the conformance kit of functions and tasks. C numbers are those of the
// requirements about the Console's task queue; worktest has the others.
package taskstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		registrytest.NewTopic("function", functionTests()),
		registrytest.NewTopic("task", taskTests()),
		registrytest.NewTopic("task_graph", graphTests()),
		registrytest.NewTopic("await", awaitTests()),
		registrytest.NewTopic("outside_step", stepTests()),
	}
}

// fixture adds this kit's helpers.
type fixture struct{ *registrytest.Fixture }

// tests are the tests of a topic by their names.
type tests = map[string]func(*fixture)

// count is a function that takes an object with a number, and check one that takes anything.
var (
	count = registry.Function{Name: "count", Title: "Count files", Args: json.RawMessage(
		`{"type":"object","properties":{"n":{"type":"integer","minimum":0}},"required":["n"],"additionalProperties":false}`)}
	check = registry.Function{Name: "link-check"}
)

// announced announces both functions.
func (f *fixture) announced() *fixture {
	f.Helper()
	f.Must(f.Store.Announce(f.Context(), []registry.Function{count, check}))
	return f
}

// task adds a task of check.
func (f *fixture) task(change ...func(*registry.NewTask)) registry.WorkItem {
	f.Helper()
	n := registry.NewTask{Function: check.Name, Actor: "curator"}
	for _, c := range change {
		c(&n)
	}
	it, err := f.Store.AddTask(f.Context(), n)
	f.Must(err)
	return it
}

func priority(p int) func(*registry.NewTask) {
	return func(n *registry.NewTask) { n.Priority = &p }
}

// node is a task of check in a graph.
func node(key string, requires ...string) registry.Node {
	n := registry.NewTask{Function: check.Name}
	for _, r := range requires {
		n.Requires = append(n.Requires, registry.Requirement{Key: r})
	}
	return registry.Node{Key: key, Task: &n}
}

// graph prepares and seals a graph in one call.
func (f *fixture) graph(nodes ...registry.Node) registry.PreparedGraph {
	f.Helper()
	g, err := f.Store.Prepare(f.Context(), registry.Graph{Nodes: nodes, Actor: "curator", Seal: true})
	f.Must(err)
	return g
}

// returns settles an attempt as done, with what its function returned.
func (f *fixture) returns(l registry.Lease, value string) {
	f.Helper()
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{registry.ResultReturned: json.RawMessage(value)}})
}

func functionTests() tests {
	return tests{
		"announcements_replace_each_other":  announcements,
		"a_bad_name_or_schema_is_refused":   badFunctions,
		"C23_arguments_must_fit_the_schema": arguments,
		"a_schema_that_changed_counts_next": newSchema,
		"every_function_is_in_the_queue":    inQueue,
	}
}

func announcements(f *fixture) {
	f.announced()
	second := registry.Function{Name: "count", Title: "Counted", Policy: registry.FunctionPolicy{MaxAttempts: 2, First: time.Second, Factor: 1.5, Most: time.Hour}}
	f.Clock.Pass(time.Minute)
	f.Must(f.Store.Announce(f.Context(), []registry.Function{second}))
	all, err := f.Store.Functions(f.Context())
	f.Must(err)
	if len(all) != 2 || all[0].SeenAt.Sub(all[1].SeenAt) != time.Minute {
		f.Fatalf("functions %+v, want the first seen a minute later", all)
	}
	all[0].SeenAt, all[1].SeenAt = time.Time{}, time.Time{}
	if diff := cmp.Diff([]registry.Function{second, check}, all); diff != "" {
		f.Error(diff)
	}
}

func badFunctions(f *fixture) {
	long := strings.Repeat("a", 65)
	for _, bad := range []registry.Function{
		{Name: ""},
		{Name: "Upper"},
		{Name: "a:b"},
		{Name: "a b"},
		{Name: "-a"},
		{Name: "a..b"},
		{Name: long},
		{Name: "a", Args: json.RawMessage(`{"type":5}`)},
		{Name: "a", Args: json.RawMessage(`{"type":"text"}`)},
		{Name: "a", Result: json.RawMessage(`{"$ref":"#/nowhere"}`)},
		{Name: "a", Result: json.RawMessage(`{"$ref":"#"}`)}, // whose check never ends
		{Name: "a", Args: json.RawMessage(`"` + strings.Repeat("a", registry.MostSchema) + `"`)},
	} {
		f.Is(f.Store.Announce(f.Context(), []registry.Function{count, bad}), registry.ErrInvalid)
	}
	if all, err := f.Store.Functions(f.Context()); err != nil || len(all) != 0 {
		f.Errorf("functions %+v, %v; want none", all, err)
	}
}

func arguments(f *fixture) {
	f.announced()
	for _, bad := range []string{``, `null`, `{}`, `{"n":"1"}`, `{"n":-1}`, `{"n":1.5}`, `{"n":1,"m":2}`} {
		_, err := f.Store.AddTask(f.Context(), registry.NewTask{Function: "count", Args: json.RawMessage(bad)})
		var wrong *registry.ArgumentError
		if !errors.As(err, &wrong) || wrong.Function != "count" || wrong.Problem == "" {
			f.Errorf("%s: %v, want an ArgumentError", bad, err)
		}
	}
	_, err := f.Store.AddTask(f.Context(), registry.NewTask{Function: "count", Args: json.RawMessage(`{"n":`)})
	f.Is(err, registry.ErrInvalid)
	_, err = f.Store.AddTask(f.Context(), registry.NewTask{Function: "coutn", Args: json.RawMessage(`{"n":1}`)})
	f.Says(err.Error(), "coutn", "did you mean count")
	f.Is(err, registry.ErrNotFound)
	if all := f.All(registry.ItemQuery{}); len(all) != 0 {
		f.Fatalf("items %+v, want none", all)
	}
	it, err := f.Store.AddTask(f.Context(), registry.NewTask{
		Function: "count", Args: json.RawMessage(`{"n":1}`), Subject: "ark:/99999/x", Cause: "harvest-1", Actor: "curator",
	})
	f.Must(err)
	var spec registry.TaskSpec
	f.Must(json.Unmarshal(it.Spec, &spec))
	want := registry.TaskSpec{RouteVersion: 1, Function: "count", Args: json.RawMessage(`{"n":1}`), Subject: "ark:/99999/x", Cause: "harvest-1"}
	if diff := cmp.Diff(want, spec); diff != "" || it.Name != "Count files" || it.CreatedBy != "curator" || it.Stage != "run:count" || it.Action != registry.Task {
		f.Errorf("item %+v: %s", it, diff)
	}
}

func newSchema(f *fixture) {
	f.announced()
	strict := count
	strict.Args = json.RawMessage(`{"type":"string"}`)
	f.Must(f.Store.Announce(f.Context(), []registry.Function{strict}))
	if _, err := f.Store.AddTask(f.Context(), registry.NewTask{Function: "count", Args: json.RawMessage(`{"n":1}`)}); err == nil {
		f.Error("the arguments fit the schema of before")
	}
	_, err := f.Store.AddTask(f.Context(), registry.NewTask{Function: "count", Args: json.RawMessage(`"text"`)})
	f.Must(err)
}

func inQueue(f *fixture) {
	f.announced()
	f.task()
	f.Take(check.Stage(), f.task().ID)
	f.Announce(check.Stage(), 3, 0)
	stages := f.Queue().Stages
	line := stages[len(stages)-1]
	if line.Stage != "run:link-check" || line.Ready != 1 || line.Running != 1 || line.Rung != 0 || line.Capacity != 3 || stages[len(stages)-2].Stage != "run:count" {
		f.Errorf("queue %+v", stages)
	}
	if f.Queue().Running != 1 {
		f.Errorf("running %d, want 1", f.Queue().Running)
	}
}

func taskTests() tests {
	return tests{
		"C3_a_task_starts_pending":                      pending,
		"C4_priority_and_then_age":                      order,
		"C6_a_function_can_be_paused":                   paused,
		"C7_start_and_end_of_every_run":                 runs,
		"C16_no_tasks_while_nothing_is_accepted":        notAccepting,
		"C19_a_failed_or_cancelled_task_runs_again":     again,
		"C29_a_direct_call_has_the_same_record":         direct,
		"C29_a_direct_call_that_may_not_start_is_none":  directHeld,
		"C29_a_repeated_direct_call_gets_its_attempt":   directAgain,
		"a_key_is_answered_once":                        keyed,
		"a_key_is_bound_to_function_and_arguments":      keyBound,
		"requirements_of_a_single_task":                 required,
		"it_does_not_start_before_its_time":             notBefore,
		"no_messages_are_sent_for_tasks":                noMessages,
		"lists_find_tasks":                              lists,
		"a_collection_must_exist":                       collections,
		"what_completed_can_be_purged":                  purge,
		"a_lost_attempt_goes_back_to_the_same_function": lost,
	}
}

func pending(f *fixture) {
	it := f.announced().task()
	if it.Status != registry.Pending || it.Priority != 0 || it.State != registry.StatePending || it.Name != "link-check" {
		f.Errorf("item %+v", it)
	}
	if got := f.Events(it.ID); !slices.Equal(got, []string{"submit"}) {
		f.Errorf("events %v", got)
	}
}

func order(f *fixture) {
	f.announced()
	late := f.task(priority(20))
	first := f.task()
	f.Clock.Pass(time.Second)
	second := f.task()
	best := f.task(priority(0), func(n *registry.NewTask) { n.Title = "third" })
	for i, want := range []string{first.ID, second.ID, best.ID, late.ID} {
		if got := f.Take(check.Stage(), "").Item.ID; got != want {
			f.Errorf("claim %d got %s, want %s", i+1, got, want)
		}
	}
}

func paused(f *fixture) {
	f.announced()
	running := f.Take(check.Stage(), f.task().ID)
	waiting := f.task()
	other, err := f.Store.AddTask(f.Context(), registry.NewTask{Function: "count", Args: json.RawMessage(`{"n":1}`)})
	f.Must(err)
	f.Hold(registry.HoldStage, "run:link-check")
	if got := f.Refused(check.Stage(), waiting.ID); got.Reason != registry.ReasonHeld {
		f.Errorf("reason %s, want held", got.Reason)
	}
	f.Done(running.Lease)
	f.Done(f.Take(count.Stage(), other.ID).Lease)
	f.State(waiting.ID, registry.StateHeld)
	f.Release(registry.HoldStage, "run:link-check")
	f.Done(f.Take(check.Stage(), waiting.ID).Lease)
	f.State(waiting.ID, registry.StateCompleted)
}

func runs(f *fixture) {
	it := f.announced().task()
	c := f.Take(check.Stage(), it.ID)
	f.State(it.ID, registry.StateProcessing)
	f.Clock.Pass(3 * time.Second)
	f.returns(c.Lease, `{"broken":2}`)
	all := f.AttemptsOf(it.ID)
	if len(all) != 1 || all[0].FinishedAt == nil || all[0].FinishedAt.Sub(all[0].StartedAt) != 3*time.Second || all[0].Stage != "run:link-check" {
		f.Errorf("attempts %+v", all)
	}
	if got := f.Item(it.ID); got.Status != registry.Completed || string(got.Results[registry.ResultReturned]) != `{"broken":2}` {
		f.Errorf("item %+v", got)
	}
}

func notAccepting(f *fixture) {
	it := f.announced().task()
	f.Must(f.Store.SetAccepting(f.Context(), registry.Accepting{On: false, Reason: "update", Actor: "admin"}))
	for _, try := range []func() error{
		func() error {
			_, err := f.Store.AddTask(f.Context(), registry.NewTask{Function: check.Name})
			return err
		},
		func() error {
			_, err := f.Store.StartTask(f.Context(), registry.NewTask{Function: check.Name}, f.Request("", ""))
			return err
		},
		func() error {
			_, err := f.Store.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{node("a")}})
			return err
		},
	} {
		var closed *registry.NotAccepting
		if err := try(); !errors.As(err, &closed) || closed.Reason != "update" {
			f.Errorf("%v, want NotAccepting", err)
		}
	}
	f.Done(f.Take(check.Stage(), it.ID).Lease)
}

func again(f *fixture) {
	f.announced()
	failed, cancelled := f.task(), f.task()
	f.Settle(registry.Settlement{Lease: f.Take(check.Stage(), failed.ID).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "tape is gone"})
	if got := f.Item(failed.ID); got.Status != registry.Failed || got.Note != "tape is gone" {
		f.Errorf("item %+v", got)
	}
	f.Command(cancelled.ID, registry.ActCancel, "")
	for _, id := range []string{failed.ID, cancelled.ID} {
		f.Command(id, registry.ActRequeue, "")
		f.Done(f.Take(check.Stage(), id).Lease)
		f.State(id, registry.StateCompleted)
	}
}

func direct(f *fixture) {
	f.announced()
	claimed := f.task()
	f.Done(f.Take(check.Stage(), claimed.ID).Lease)
	c, err := f.Store.StartTask(f.Context(), registry.NewTask{Function: check.Name, Actor: "curator"}, f.Request("", ""))
	f.Must(err)
	if len(c.NoteKey) == 0 || c.Item.Status != registry.Running || c.Lease.N != 1 {
		f.Errorf("claim %+v", c)
	}
	if lost := f.Renew(registry.Beat{Lease: c.Lease, DoneBytes: -1, DoneFiles: -1}); len(lost) != 0 {
		f.Errorf("lost %v", lost)
	}
	f.Done(c.Lease)
	one, other := f.Events(claimed.ID), f.Events(c.Item.ID)
	if !slices.Equal(one, other) || len(one) != 3 {
		f.Errorf("events %v and %v, want the same three", one, other)
	}
	if a, b := f.AttemptsOf(claimed.ID), f.AttemptsOf(c.Item.ID); len(a) != 1 || len(b) != 1 || a[0].Outcome != b[0].Outcome || a[0].Stage != b[0].Stage {
		f.Errorf("attempts %+v and %+v", a, b)
	}
}

func directHeld(f *fixture) {
	f.announced()
	before := f.task()
	f.Hold(registry.HoldStage, "run:link-check")
	held := registry.NewTask{Function: check.Name, IdempotencyKey: "k"}
	_, err := f.Store.StartTask(f.Context(), held, f.Request("", ""))
	if f.ReasonOf(err) != registry.ReasonHeld {
		f.Errorf("%v, want held", err)
	}
	f.Release(registry.HoldStage, "run:link-check")
	blocked := registry.NewTask{Function: check.Name, Requires: []registry.Requirement{{ItemID: before.ID}}}
	_, err = f.Store.StartTask(f.Context(), blocked, f.Request("", ""))
	if f.ReasonOf(err) != registry.ReasonBlocked {
		f.Errorf("%v, want blocked", err)
	}
	if all := f.All(registry.ItemQuery{}); len(all) != 1 {
		f.Errorf("%d items, want the first only", len(all))
	}
	_, err = f.Store.StartTask(f.Context(), held, f.Request("", ""))
	f.Must(err)
}

func directAgain(f *fixture) {
	f.announced()
	n, r := registry.NewTask{Function: check.Name, IdempotencyKey: "k"}, f.Request("", "")
	first, err := f.Store.StartTask(f.Context(), n, r)
	f.Must(err)
	second, err := f.Store.StartTask(f.Context(), n, r)
	f.Must(err)
	if first.Lease != second.Lease {
		f.Errorf("leases %+v and %+v", first.Lease, second.Lease)
	}
	_, err = f.Store.StartTask(f.Context(), n, f.Request("", ""))
	if f.ReasonOf(err) != registry.ReasonRunningElsewhere {
		f.Errorf("another caller with the same key: %v", err)
	}
	f.Done(first.Lease)
	_, err = f.Store.StartTask(f.Context(), n, r)
	if f.ReasonOf(err) != registry.ReasonSettled {
		f.Errorf("a late repeat: %v", err)
	}
	if all := f.All(registry.ItemQuery{}); len(all) != 1 || len(f.AttemptsOf(all[0].ID)) != 1 {
		f.Errorf("items %+v", all)
	}
}

func keyed(f *fixture) {
	f.announced()
	withKey := func(n *registry.NewTask) { n.IdempotencyKey = "k" }
	first := f.task(withKey)
	f.Done(f.Take(check.Stage(), first.ID).Lease)
	if second := f.task(withKey); second.ID != first.ID || second.Status != registry.Completed {
		f.Errorf("%+v, want the first task", second)
	}
}

func keyBound(f *fixture) {
	f.announced()
	f.task(func(n *registry.NewTask) { n.IdempotencyKey = "k" })
	for _, other := range []registry.NewTask{
		{Function: "count", Args: json.RawMessage(`{"n":1}`)},
		{Function: check.Name, Args: json.RawMessage(`[1]`)},
		{Function: check.Name, Subject: "x"},
	} {
		other.IdempotencyKey = "k"
		_, err := f.Store.AddTask(f.Context(), other)
		f.Is(err, registry.ErrIdempotencyConflict)
		_, err = f.Store.StartTask(f.Context(), other, f.Request("", ""))
		f.Is(err, registry.ErrIdempotencyConflict)
	}
}

func required(f *fixture) {
	first := f.announced().task()
	second := f.task(func(n *registry.NewTask) { n.Requires = []registry.Requirement{{ItemID: first.ID}} })
	c := f.TakeItem(first.ID)
	if got := f.Refused(check.Stage(), second.ID); got.Reason != registry.ReasonBlocked {
		f.Errorf("refused as %s", got.Reason)
	}
	f.Done(c.Lease)
	f.Done(f.TakeItem(second.ID).Lease)
	_, err := f.Store.AddTask(f.Context(), registry.NewTask{Function: check.Name, Requires: []registry.Requirement{{ItemID: "nobody"}}})
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.AddTask(f.Context(), registry.NewTask{Function: check.Name, Requires: []registry.Requirement{{Key: "a"}}})
	if !errors.As(err, new(*registry.GraphError)) {
		f.Errorf("%v, want a GraphError", err)
	}
}

func notBefore(f *fixture) {
	f.announced()
	at := f.Clock.Now().Add(time.Hour)
	later := func(n *registry.NewTask) { n.NotBefore = at }
	single := f.task(later)
	n := node("a")
	later(n.Task)
	inGraph := f.graph(n).Items["a"]
	for _, id := range []string{single.ID, inGraph} {
		if got := f.Refused(check.Stage(), id); got.Reason != registry.ReasonNotDue {
			f.Errorf("refused as %s, want not-due", got.Reason)
		}
	}
	f.Clock.Pass(time.Hour)
	f.Done(f.TakeItem(single.ID).Lease)
	f.Done(f.TakeItem(inGraph).Lease)
}

func noMessages(f *fixture) {
	f.announced()
	it := f.task()
	f.task(func(n *registry.NewTask) { n.NotBefore = f.Clock.Now().Add(time.Second) })
	g := f.graph(node("a"), node("b", "a"))
	none := func(when string) {
		if got := f.Offer(5); len(got) != 0 {
			f.Errorf("%s: offered %+v", when, got)
		}
	}
	none("added")
	c := f.Take(check.Stage(), it.ID)
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeRetry, Delay: time.Second, Class: registry.SystemFault})
	none("retried")
	f.Clock.Pass(time.Minute)
	none("due")
	f.Done(f.TakeItem(g.Items["a"]).Lease)
	none("unblocked")
	f.Hold(registry.HoldItem, it.ID)
	f.Release(registry.HoldItem, it.ID)
	f.Hold(registry.HoldAll, "")
	f.Release(registry.HoldAll, "")
	none("released")
	f.Must(f.Store.Reoffer(f.Context()))
	none("offered again")
	// Messages for others still come.
	batch := f.Submit()
	if got := f.Offered(5); !slices.Equal(got, []string{batch}) {
		f.Errorf("offered %v, want the batch %s", got, batch)
	}
}

func lists(f *fixture) {
	f.announced()
	f.Collection("c1", registry.Profile{Name: "One", Owner: registrytest.Owner})
	done := f.task(func(n *registry.NewTask) { n.Collection = "c1" })
	f.Done(f.Take(check.Stage(), done.ID).Lease)
	waiting := f.task(func(n *registry.NewTask) { n.Title = "check the web site" })
	other, err := f.Store.AddTask(f.Context(), registry.NewTask{Function: "count", Args: json.RawMessage(`{"n":1}`), Actor: "somebody"})
	f.Must(err)
	batch := f.Submit()
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"stage:run", []string{done.ID, waiting.ID, other.ID}},
		{"stage:run:link-check", []string{done.ID, waiting.ID}},
		{"stage:run:count,expand", []string{other.ID, batch}},
		{"-stage:run", []string{batch}},
		{"action:task", []string{done.ID, waiting.ID, other.ID}},
		{"action:task,batch state:pending", []string{waiting.ID, other.ID, batch}},
		{"state:completed", []string{done.ID}},
		{"state:pending", []string{waiting.ID, other.ID, batch}},
		{"-state:pending", []string{done.ID}},
		{"status:pending stage:run", []string{waiting.ID, other.ID}},
		{"collection:c1 state:completed", []string{done.ID}},
		{"by:somebody", []string{other.ID}},
		{"name:web", []string{waiting.ID}},
		{"stage:run:nothing", nil},
	} {
		q := registry.ItemQuery{Match: f.Parsed(test.query)}
		got := []string{}
		for _, it := range f.All(q) {
			got = append(got, it.ID)
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(test.want))
		if !slices.Equal(got, want) {
			f.Errorf("%s: %v, want %v", test.query, got, want)
		}
		counts, err := f.Store.CountItems(f.Context(), q)
		f.Must(err)
		sum := int64(0)
		for _, n := range counts {
			sum += n
		}
		if sum != int64(len(want)) {
			f.Errorf("%s: counts %v, want %d in all", test.query, counts, len(want))
		}
	}
}

func collections(f *fixture) {
	f.announced()
	_, err := f.Store.AddTask(f.Context(), registry.NewTask{Function: check.Name, Collection: "nowhere"})
	f.Is(err, registry.ErrNotFound)
	if it := f.task(func(n *registry.NewTask) { n.Collection = registrytest.Mnemonic }); it.Collection != registrytest.Mnemonic {
		f.Errorf("collection %q", it.Collection)
	}
	f.Hold(registry.HoldCollection, registrytest.Mnemonic) // covers deposits only
	f.Done(f.Take(check.Stage(), "").Lease)
}

func purge(f *fixture) {
	it := f.announced().task()
	f.Done(f.Take(check.Stage(), it.ID).Lease)
	f.Confirm(it.ID, registry.ActPurge)
	f.Gone(it.ID)
	if got := f.Events(it.ID); len(got) != 4 {
		f.Errorf("events %v, want all four kept", got)
	}
}

func lost(f *fixture) {
	it := f.announced().task()
	f.Take(check.Stage(), it.ID)
	f.Sweep(registrytest.Lease + time.Second)
	if lost := f.Sweep(time.Minute); len(lost) == 0 && f.Item(it.ID).Status == registry.Running {
		f.Fatal("nothing was lost")
	}
	f.Clock.Pass(2 * time.Hour)
	c := f.Take(check.Stage(), it.ID)
	if c.Lease.N != 2 || c.Item.Stage != "run:link-check" {
		f.Errorf("claim %+v", c)
	}
	f.Done(c.Lease)
}

func graphTests() tests {
	return tests{
		"C2_one_call_prepares_and_seals":           oneCall,
		"C2_all_or_none":                           allOrNone,
		"C13_abort_cascades":                       abort,
		"C14_a_cycle_in_one_call_leaves_nothing":   cycle,
		"C15_the_CAN_graph":                        can,
		"C25_the_nodes_of_a_graph_in_pages":        graphPages,
		"C25_what_is_around_an_item":               around,
		"tasks_and_deposits_in_one_graph":          mixed,
		"parents_and_what_they_returned":           parents,
		"a_repeated_key_returns_the_same_graph":    graphAgain,
		"a_task_in_a_graph_has_the_graphs_actor":   graphActor,
		"what_a_node_does_not_say_well_is_refused": badNodes,
	}
}

func oneCall(f *fixture) {
	g := f.announced().graph(node("a"), node("b", "a"))
	view, err := f.Store.Graph(f.Context(), g.GraphID)
	f.Must(err)
	if !view.Sealed || len(view.Items) != 2 || len(view.Edges) != 1 {
		f.Errorf("graph %+v", view)
	}
	f.Done(f.Take(check.Stage(), "").Lease)
	f.State(g.Items["a"], registry.StateCompleted)
	f.Done(f.Take(check.Stage(), "").Lease)
	f.State(g.Items["b"], registry.StateCompleted)
	open := f.Must2(f.Store.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{node("c")}}))
	f.State(open.Items["c"], registry.StatePrepare)
	f.Refused(check.Stage(), open.Items["c"])
	f.Must2(f.Store.Prepare(f.Context(), registry.Graph{ID: open.GraphID, Nodes: []registry.Node{node("d", "c")}, Seal: true}))
	f.State(open.Items["c"], registry.StatePending)
}

// graphPages: pages by key have every node once, with its title, requirements and progress, and the items
// outside of the graph that it requires.
func graphPages(f *fixture) {
	f.announced()
	outside := f.Must2(f.Store.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{node("far")}, Seal: true})).Items["far"]
	f.Take(check.Stage(), outside)
	titled := registry.Node{Key: "b", Submission: registrytest.Submission()}
	titled.Submission.Spec.Title, titled.Submission.Spec.Filename = "Glass plates", "plates.checkm"
	last := node("c", "a", "b")
	last.Task.Requires = append(last.Task.Requires, registry.Requirement{ItemID: outside, WaitFor: registry.WaitSettled})
	g := f.graph(node("a"), titled, last)
	running := f.Take(check.Stage(), g.Items["a"]).Lease
	f.Renewal("w", check.Stage(), 1, registry.Beat{Lease: running, DoneBytes: -1, DoneFiles: -1, Progress: []registry.Progress{{Title: "pages", Unit: "pages", Position: 2, End: 5}}})
	var keys, edges []string
	for after := ""; ; {
		p, err := f.Store.GraphNodes(f.Context(), g.GraphID, after, 1)
		f.Must(err)
		for _, n := range p.Nodes {
			keys = append(keys, fmt.Sprintf("%s %q %s %t %d", n.Key, n.Title, n.Status, n.Outside, len(n.Progress)))
			if n.Spec != nil || n.Results != nil {
				f.Errorf("node %s has its spec or results", n.Key)
			}
		}
		for _, e := range p.Edges {
			edges = append(edges, fmt.Sprintf("%s %t", e.WaitFor, e.RequiresID == outside))
		}
		if after = p.Next; after == "" {
			break
		}
	}
	if got, want := strings.Join(keys, ", "), `a "" running false 1, b "Glass plates" pending false 0, c "" pending false 0, far "" running true 0`; got != want {
		f.Errorf("nodes %s; want %s", got, want)
	}
	slices.Sort(edges)
	if got, want := strings.Join(edges, ", "), "settled true, success false, success false"; got != want {
		f.Errorf("edges %s; want %s", got, want)
	}
	_, err := f.Store.GraphNodes(f.Context(), "nothing", "", 0)
	f.Is(err, registry.ErrNotFound)
}

// around: an item's surroundings are what it waits for and what waits for it, over all steps, but not
// its siblings; a limit keeps the nearest.
func around(f *fixture) {
	g := f.announced().graph(node("1"), node("2", "1"), node("3", "1"), node("5", "2"), node("7", "5"))
	keys := func(limit int) (string, registry.GraphPart) {
		p, err := f.Store.Around(f.Context(), g.Items["2"], limit)
		f.Must(err)
		var all []string
		for _, n := range p.Nodes {
			all = append(all, n.Key)
		}
		slices.Sort(all)
		return strings.Join(all, " "), p
	}
	if got, p := keys(0); got != "1 2 5 7" || len(p.Edges) != 3 || p.More || p.GraphID != g.GraphID || !p.Sealed {
		f.Errorf("around 2: %s, %+v", got, p)
	}
	if got, p := keys(2); got != "1 2 5" || !p.More {
		f.Errorf("at most 2: %s, more %t", got, p.More)
	}
	_, err := f.Store.Around(f.Context(), "nothing", 0)
	f.Is(err, registry.ErrNotFound)
}

// Must2 returns a prepared graph, or ends the test.
func (f *fixture) Must2(g registry.PreparedGraph, err error) registry.PreparedGraph {
	f.Helper()
	f.Must(err)
	return g
}

func allOrNone(f *fixture) {
	f.announced()
	bad := node("b")
	bad.Task.Function = "nothing"
	_, err := f.Store.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{node("a"), bad}, Seal: true})
	f.Is(err, registry.ErrNotFound)
	f.Says(err.Error(), `"b"`, "nothing")
	if all := f.All(registry.ItemQuery{}); len(all) != 0 {
		f.Errorf("items %+v, want none", all)
	}
}

func abort(f *fixture) {
	g := f.announced().graph(node("a"), node("b", "a"), node("c", "b"), node("sibling"))
	running := f.TakeItem(g.Items["a"])
	f.Confirm(g.Items["a"], registry.ActAbort)
	for _, key := range []string{"a", "b", "c"} {
		f.State(g.Items[key], registry.StateAborted)
	}
	f.State(g.Items["sibling"], registry.StatePending)
	_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: running.Lease, Outcome: registry.OutcomeDone})
	f.Is(err, registry.ErrClaimLost)
}

func cycle(f *fixture) {
	f.announced()
	_, err := f.Store.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{node("a", "b"), node("b", "a")}, Seal: true})
	var found *registry.GraphError
	if !errors.As(err, &found) || !strings.Contains(found.Problem, "a -> b") {
		f.Errorf("%v, want the cycle", err)
	}
	if all := f.All(registry.ItemQuery{}); len(all) != 0 {
		f.Errorf("items %+v, want none", all)
	}
}

func can(f *fixture) {
	g := f.announced().graph(node("1"), node("2", "1"), node("3", "1"), node("4", "1"), node("5", "2"), node("6", "3"), node("7", "5"), node("8", "6"))
	keys := map[string]string{}
	for key, id := range g.Items {
		keys[id] = key
	}
	var rounds []string
	for range 5 {
		var leases []registry.Lease
		var round []string
		for {
			c, err := f.Store.Claim(f.Context(), f.Request(check.Stage(), ""))
			if err != nil {
				break
			}
			leases, round = append(leases, c.Lease), append(round, keys[c.Item.ID])
		}
		for _, l := range leases {
			f.Done(l)
		}
		slices.Sort(round)
		if len(round) > 0 {
			rounds = append(rounds, strings.Join(round, ""))
		}
	}
	if want := []string{"1", "234", "56", "78"}; !slices.Equal(rounds, want) {
		f.Errorf("ran %v, want %v", rounds, want)
	}
}

func mixed(f *fixture) {
	f.announced()
	deposit := registry.Node{Key: "deposit", Submission: registrytest.Submission()}
	deposit.Submission.Requires = []registry.Requirement{{Key: "harvest"}}
	deposit.Submission.Actor = ""
	g := f.graph(node("harvest"), deposit, node("after", "deposit"))
	f.Refused(registry.Expand, g.Items["deposit"])
	f.Done(f.TakeItem(g.Items["harvest"]).Lease)
	f.Finish(g.Items["deposit"])
	f.Done(f.TakeItem(g.Items["after"]).Lease)
	f.State(g.Items["after"], registry.StateCompleted)
}

func parents(f *fixture) {
	settled := node("c", "a")
	settled.Task.Requires = append(settled.Task.Requires, registry.Requirement{Key: "b", WaitFor: registry.WaitSettled})
	g := f.announced().graph(node("a"), node("b"), settled)
	f.returns(f.TakeItem(g.Items["a"]).Lease, `{"files":7}`)
	f.Settle(registry.Settlement{Lease: f.TakeItem(g.Items["b"]).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no network"})
	c := f.TakeItem(g.Items["c"])
	got, err := f.Store.Parents(f.Context(), c.Lease)
	f.Must(err)
	want := []registry.Parent{
		{ItemID: g.Items["a"], Key: "a", Stage: check.Stage(), Status: registry.Completed, Result: json.RawMessage(`{"files":7}`)},
		{ItemID: g.Items["b"], Key: "b", Stage: check.Stage(), Status: registry.Failed, Error: "no network"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Error(diff)
	}
	f.Done(c.Lease)
	_, err = f.Store.Parents(f.Context(), c.Lease)
	f.Is(err, registry.ErrClaimLost)
}

func graphAgain(f *fixture) {
	f.announced()
	g := registry.Graph{Nodes: []registry.Node{node("a")}, Seal: true, IdempotencyKey: "k"}
	first := f.Must2(f.Store.Prepare(f.Context(), g))
	if second := f.Must2(f.Store.Prepare(f.Context(), g)); second.GraphID != first.GraphID || second.Items["a"] != first.Items["a"] {
		f.Errorf("%+v, want %+v", second, first)
	}
	g.Seal = false
	_, err := f.Store.Prepare(f.Context(), g)
	f.Is(err, registry.ErrIdempotencyConflict)
}

func graphActor(f *fixture) {
	g := f.announced().graph(node("a"))
	if it := f.Item(g.Items["a"]); it.CreatedBy != "curator" || it.GraphID != g.GraphID {
		f.Errorf("item %+v", it)
	}
}

func badNodes(f *fixture) {
	f.announced()
	withKey, withActor, badArgs := node("a"), node("a"), node("a")
	withKey.Task.IdempotencyKey, withActor.Task.Actor, badArgs.Task.Args = "k", "somebody", json.RawMessage(`{`)
	for _, n := range []registry.Node{withKey, withActor, badArgs} {
		_, err := f.Store.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{n}})
		var wrong *registry.GraphError
		if !errors.As(err, &wrong) || wrong.Key != "a" {
			f.Errorf("%v, want a GraphError of node a", err)
		}
	}
}

func awaitTests() tests {
	return tests{
		"a_ready_item_is_reported_at_once": awaitNow,
		"a_commit_ends_the_wait":           awaitCommit,
		"time_ends_the_wait":               awaitTime,
		"a_hold_is_no_work":                awaitHeld,
		"a_stage_must_be_one":              awaitBad,
	}
}

// await returns the stage that a call finds, or "" if it finds none soon.
func (f *fixture) await(patience time.Duration, stages ...registry.Stage) registry.Stage {
	f.Helper()
	return f.found(f.awaiting(patience, stages...))
}

// awaiting begins to wait. found ends that.
func (f *fixture) awaiting(patience time.Duration, stages ...registry.Stage) <-chan ready {
	found := make(chan ready, 1)
	go func() {
		ctx, cancel := context.WithTimeout(f.Context(), patience)
		defer cancel()
		stage, err := f.Store.AwaitReady(ctx, stages)
		found <- ready{stage, err}
	}()
	return found
}

func (f *fixture) found(at <-chan ready) registry.Stage {
	f.Helper()
	got := <-at
	f.Must(got.err)
	return got.stage
}

// ready is an answer of AwaitReady.
type ready struct {
	stage registry.Stage
	err   error
}

func awaitNow(f *fixture) {
	it := f.announced().task()
	if got := f.await(time.Minute, count.Stage(), check.Stage()); got != check.Stage() {
		f.Errorf("found %q", got)
	}
	f.Take(check.Stage(), it.ID)
	if got := f.await(50*time.Millisecond, count.Stage(), check.Stage()); got != "" {
		f.Errorf("found %q, but its only item runs", got)
	}
}

func awaitCommit(f *fixture) {
	f.announced()
	found := f.awaiting(time.Minute, check.Stage())
	f.task()
	if got := f.found(found); got != check.Stage() {
		f.Errorf("found %q", got)
	}
}

func awaitTime(f *fixture) {
	f.announced().task(func(n *registry.NewTask) { n.NotBefore = f.Clock.Now().Add(time.Minute) })
	if got := f.await(50*time.Millisecond, check.Stage()); got != "" {
		f.Errorf("found %q before its time", got)
	}
	f.Clock.Pass(time.Minute)
	if got := f.await(time.Minute, check.Stage()); got != check.Stage() {
		f.Errorf("found %q", got)
	}
}

func awaitHeld(f *fixture) {
	f.announced().task()
	f.Hold(registry.HoldStage, "run:link-check")
	if got := f.await(50*time.Millisecond, check.Stage()); got != "" {
		f.Errorf("found %q although it is held", got)
	}
	found := f.awaiting(time.Minute, check.Stage())
	f.Release(registry.HoldStage, "run:link-check")
	if got := f.found(found); got != check.Stage() {
		f.Errorf("found %q", got)
	}
}

func awaitBad(f *fixture) {
	for _, bad := range [][]registry.Stage{nil, {"run"}, {"run:"}, {"nothing"}, {"expand:x"}, {check.Stage(), "run:'x"}} {
		_, err := f.Store.AwaitReady(f.Context(), bad)
		f.Is(err, registry.ErrInvalid)
	}
}
