package registrytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// graphTests are the requirements on the Console's task queue that concern dependencies, by their numbers in its proposal.
// The others stand elsewhere: C1, C7, C17, C18, C21 and C26's attempts in settle, sweep and fence; C5, C6 in wake and hold; C16,
// C19 in command; C22 in renew; C25 in the pages. Of the task package are C20 (a step's code), C23 (arguments), C28
// (schedules), C29 and C30 (calling a task function), and C31's second half, a task without a queue; its first half is what
// every test here does: no worker runs.
func graphTests() []test {
	return []test{
		{"C2_prepared_items_are_never_dispatched", c02Prepare},
		{"C2_prepare_is_all_or_nothing", c02AllOrNothing},
		{"C2_seal_lets_all_go_in_one_act", c02Seal},
		{"C2_a_graph_grows_until_it_is_sealed", c02Grows},
		{"C2_what_was_cancelled_before_the_seal_stays_so", c02Cancelled},
		{"C2_a_key_is_answered_once", c02Key},
		{"C2_bounds", c02Bounds},
		{"C3_plain_submissions_start_pending", c03Pending},
		{"C4_order_of_what_is_unblocked", c04Order},
		{"C8_any_number_of_requirements", c08Many},
		{"C9_a_recount_at_all_times", c09Recount},
		{"C10_completed_unblocks_exactly_its_dependents", c10Completed},
		{"C11_failed_keeps_dependents_blocked", c11Failed},
		{"C12_cancelled_keeps_dependents_blocked", c12Cancelled},
		{"C13_abort_cascades", c13Abort},
		{"C13_abort_through_other_graphs", c13Through},
		{"C14_cycles_are_refused_and_named", c14Cycle},
		{"C14_a_self_edge_is_refused", c14Self},
		{"C14_an_edge_to_what_is_settled", c14Born},
		{"C15_the_CAN_graph", c15CAN},
		{"C24_why_names_what_is_waited_for", c24Why},
		{"C27_every_act_has_its_event", c27Events},
		{"settled_edges", settledEdges},
		{"settled_edges_open_again", settledReopen},
		{"an_unexpanded_batch_waits_and_its_jobs_do_not_count", startAndJobs},
		{"R12_a_prerequisite_completes_while_it_is_required", r12Race},
		{"bad_requirements", badRequirements},
		{"no_message_before_its_turn", noMessage},
	}
}

// node is a node that requires others by key; "key:settled" is a requirement of that kind.
func node(key string, requires ...string) registry.Node {
	n := registry.Node{Key: key, Submission: submission()}
	n.Submission.Name = key
	for _, r := range requires {
		name, wait, _ := strings.Cut(r, ":")
		n.Submission.Requires = append(n.Submission.Requires, registry.Requirement{Key: name, WaitFor: registry.WaitFor(wait)})
	}
	return n
}

// after adds a requirement of an item to a node.
func after(n registry.Node, itemID string, wait registry.WaitFor) registry.Node {
	n.Submission.Requires = append(n.Submission.Requires, registry.Requirement{ItemID: itemID, WaitFor: wait})
	return n
}

func (f *fixture) prepare(graph string, nodes ...registry.Node) (string, map[string]string) {
	f.Helper()
	p, err := f.Prepare(f.Context(), registry.Graph{ID: graph, Nodes: nodes, Actor: "depositor"})
	f.must(err)
	if len(p.Items) != len(nodes) {
		f.Fatalf("%d items of %d nodes", len(p.Items), len(nodes))
	}
	return p.GraphID, p.Items
}

// sealed prepares and seals a graph.
func (f *fixture) sealed(nodes ...registry.Node) map[string]string {
	f.Helper()
	id, items := f.prepare("", nodes...)
	f.must(f.Seal(f.Context(), id, "depositor"))
	return items
}

func (f *fixture) graph(id string) registry.GraphView {
	f.Helper()
	g, err := f.Graph(f.Context(), id)
	f.must(err)
	return g
}

// statuses checks the status of items by key: "a completed, b pending".
func (f *fixture) statuses(items map[string]string, want string) {
	f.Helper()
	var got []string
	for key, id := range items {
		got = append(got, key+" "+string(f.item(id).Status))
	}
	slices.Sort(got)
	if all := strings.Join(got, ", "); all != want {
		f.Errorf("%s\nwant %s", all, want)
	}
}

// claimable claims all that can be claimed of the stage expand, puts it back, and returns the names.
func (f *fixture) claimable() string {
	f.Helper()
	var names []string
	var leases []registry.Lease
	for {
		c, err := f.Claim(f.Context(), f.request(registry.Expand, ""))
		if refused := new(registry.NotClaimable); errors.As(err, &refused) {
			break
		}
		f.must(err)
		names, leases = append(names, c.Item.Name), append(leases, c.Lease)
	}
	for _, l := range leases {
		f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	}
	return strings.Join(names, " ")
}

func (f *fixture) wantClaimable(want string) {
	f.Helper()
	if got := f.claimable(); got != want {
		f.Errorf("claimable: %q, want %q", got, want)
	}
}

// isBlocked checks that an item cannot start because of what it requires.
func (f *fixture) isBlocked(id string) {
	f.Helper()
	w, err := f.Why(f.Context(), id)
	f.must(err)
	if w.Reason != registry.ReasonBlocked {
		f.Errorf("%s waits because %s (%s), want blocked", id, w.Reason, w.Sentence)
	}
}

// blockers checks an item's blocker_count.
func (f *fixture) blockers(id string, want int64) {
	f.Helper()
	if got := f.item(id).BlockerCount; got != want {
		f.Errorf("blocker_count=%d, want %d", got, want)
	}
}

func c02Prepare(f *fixture) {
	id, items := f.prepare("", node("a"), node("b", "a"))
	f.wantClaimable("")
	wakes, err := f.Due(f.Context(), registry.DueRequest{Window: 10, Renudge: time.Second, RenudgeMax: time.Minute})
	f.must(err)
	if len(wakes) != 0 {
		f.Errorf("%d messages for a graph that is being built", len(wakes))
	}
	if got := f.refused(registry.Expand, items["a"]).Reason; got == registry.ReasonQueued {
		f.Errorf("a prepared item is %s", got)
	}
	a := f.item(items["a"])
	if a.Status != registry.Prepare || a.State != registry.StatePrepare || a.GraphID != id || a.CreatedBy != "depositor" || a.FinishedAt != nil {
		f.Errorf("prepared item: %+v", a)
	}
	g := f.graph(id)
	if g.Sealed || len(g.Items) != 2 || g.Keys[items["b"]] != "b" || g.Items[0].ID != items["a"] {
		f.Errorf("graph: sealed=%t keys=%v", g.Sealed, g.Keys)
	}
	want := []registry.Edge{{ItemID: items["b"], RequiresID: items["a"], WaitFor: registry.WaitSuccess}}
	if diff := cmp.Diff(want, g.Edges); diff != "" {
		f.Errorf("edges:\n%s", diff)
	}
	requires, required, err := f.Edges(f.Context(), items["a"])
	f.must(err)
	if diff := cmp.Diff(want, required); diff != "" || len(requires) != 0 {
		f.Errorf("edges of a: %v\n%s", requires, diff)
	}
}

func c02AllOrNothing(f *fixture) {
	unknown := node("b")
	unknown.Submission.Collection = "nowhere"
	upload := node("b")
	upload.Submission.Spec.URL = registry.UploadURL("nothing")
	for name, bad := range map[string]registry.Node{
		"unknown collection": unknown, "unknown upload": upload, "unknown item": after(node("b"), "nothing", ""),
	} {
		_, err := f.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{node("a"), bad}})
		if !errors.Is(err, registry.ErrNotFound) {
			f.Errorf("%s: %v", name, err)
		}
	}
	for name, bad := range map[string]registry.Node{"unknown key": node("b", "nobody"), "key used twice": node("a"), "no key": node("")} {
		f.graphError(registry.Graph{Nodes: []registry.Node{node("a"), bad}}, bad.Key, name)
	}
	_, err := f.Prepare(f.Context(), registry.Graph{ID: "nothing", Nodes: []registry.Node{node("a")}})
	f.is(err, registry.ErrNotFound)
	_, err = f.Graph(f.Context(), "nothing")
	f.is(err, registry.ErrNotFound)
	f.is(f.Seal(f.Context(), "nothing", "depositor"), registry.ErrNotFound)
	if n := len(f.all(registry.ItemQuery{})); n != 0 {
		f.Errorf("%d items were made", n)
	}
}

// graphError checks that a graph is refused for a node.
func (f *fixture) graphError(g registry.Graph, key, what string) {
	f.Helper()
	_, err := f.Prepare(f.Context(), g)
	var wrong *registry.GraphError
	if !errors.As(err, &wrong) || wrong.Key != key || wrong.Problem == "" {
		f.Errorf("%s: %v, want a GraphError of node %q", what, err, key)
	}
}

func c02Seal(f *fixture) {
	id, items := f.prepare("", node("a"), node("b"), node("c", "a", "b"))
	f.must(f.Seal(f.Context(), id, "somebody"))
	f.statuses(items, "a pending, b pending, c pending")
	f.wantClaimable("a b")
	f.isBlocked(items["c"])
	f.blockers(items["c"], 2)
	before := f.events(items["a"])
	f.must(f.Seal(f.Context(), id, "somebody"))
	if diff := cmp.Diff(before, f.events(items["a"])); diff != "" {
		f.Errorf("a repeated seal is news:\n%s", diff)
	}
	if !f.graph(id).Sealed {
		f.Error("the graph is not shown as sealed")
	}
	_, err := f.Prepare(f.Context(), registry.Graph{ID: id, Nodes: []registry.Node{node("d")}})
	f.is(err, registry.ErrSealed)
}

func c02Grows(f *fixture) {
	id, first := f.prepare("", node("a"))
	again, second := f.prepare(id, node("b", "a"), node("c", "b", "a"))
	if again != id {
		f.Errorf("graph %s, want %s", again, id)
	}
	f.graphError(registry.Graph{ID: id, Nodes: []registry.Node{node("a")}}, "a", "a key of an earlier call")
	twice := after(node("d", "a"), first["a"], "")
	f.graphError(registry.Graph{ID: id, Nodes: []registry.Node{twice}}, "d", "required by key and by id")
	f.must(f.Seal(f.Context(), id, "depositor"))
	f.blockers(second["c"], 2)
	for _, want := range []string{"a", "b", "c"} {
		f.wantClaimable(want)
		f.finish(map[string]string{"a": first["a"], "b": second["b"], "c": second["c"]}[want])
	}
}

func c02Cancelled(f *fixture) {
	id, items := f.prepare("", node("a"), node("b", "a"), node("c"), node("d", "c"), node("e"))
	f.command(items["a"], registry.ActCancel, "")
	f.command(items["c"], registry.ActAbort, "")
	_, err := f.Command(f.Context(), registry.Command{ItemID: items["a"], Act: registry.ActRequeue, Actor: "admin"})
	var refused *registry.TransitionError
	if !errors.As(err, &refused) {
		f.Errorf("requeue into a graph that is not sealed: %v", err)
	}
	f.must(f.Seal(f.Context(), id, "depositor"))
	f.statuses(items, "a cancelled, b pending, c aborted, d aborted, e pending")
	f.wantClaimable("e")
	f.command(items["a"], registry.ActRequeue, "")
	f.wantClaimable("a e")
}

func c02Key(f *fixture) {
	g := registry.Graph{Nodes: []registry.Node{node("a"), node("b", "a")}, IdempotencyKey: "k", Actor: "depositor"}
	first, err := f.Prepare(f.Context(), g)
	f.must(err)
	f.must(f.Seal(f.Context(), first.GraphID, "depositor"))
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			again, err := f.Prepare(f.Context(), g)
			if diff := cmp.Diff(first, again); err != nil || diff != "" {
				f.Errorf("repeat: %v\n%s", err, diff)
			}
		})
	}
	all.Wait()
	g.Nodes[1] = node("b")
	_, err = f.Prepare(f.Context(), g)
	f.is(err, registry.ErrIdempotencyConflict)
	s := submission()
	s.IdempotencyKey = "k2"
	_, err = f.Submit(f.Context(), s)
	f.must(err)
	s.Requires = []registry.Requirement{{ItemID: first.Items["a"]}}
	_, err = f.Submit(f.Context(), s)
	f.is(err, registry.ErrIdempotencyConflict)
	if n := len(f.all(registry.ItemQuery{})); n != 3 {
		f.Errorf("%d items, want 3", n)
	}
}

func c02Bounds(f *fixture) {
	f.graphError(registry.Graph{}, "", "no nodes")
	var many []registry.Node
	for i := range registry.MostNodes + 1 {
		many = append(many, node(fmt.Sprintf("n%d", i)))
	}
	f.graphError(registry.Graph{Nodes: many}, "", "too many nodes")
	f.graphError(registry.Graph{Nodes: []registry.Node{node("a\xff")}}, "a\xff", "a key that is no text")
	dense := many[:100]
	for i := range dense {
		for j := range 30 {
			dense[i].Submission.Requires = append(dense[i].Submission.Requires, registry.Requirement{Key: fmt.Sprintf("n%d", (i+j+1)%100)})
		}
	}
	f.graphError(registry.Graph{Nodes: dense}, "", "too many requirements")
	f.graphError(registry.Graph{Nodes: []registry.Node{node(strings.Repeat("k", 300))}}, strings.Repeat("k", 300), "a long key")
}

func c03Pending(f *fixture) {
	first := f.submit()
	second := f.submit(func(s *registry.Submission) { s.Requires = []registry.Requirement{{ItemID: first}} })
	for _, id := range []string{first, second} {
		if it := f.item(id); it.Status != registry.Pending || it.State != registry.StatePending {
			f.Errorf("item is %s, %s", it.Status, it.State)
		}
	}
	f.blockers(second, 1)
	if got := f.take(registry.Expand, second); got.Item.ID != first {
		f.Errorf("claimed %s before what it requires", got.Item.ID)
	}
	if got := f.refused(registry.Expand, second).Reason; got != registry.ReasonBlocked {
		f.Errorf("refused as %s, want blocked", got)
	}
}

func c04Order(f *fixture) {
	first := node("a")
	late, early, normal := node("late", "a"), node("early", "a"), node("normal", "a")
	for n, p := range map[*registry.Node]int{&late: 9, &early: 1, &normal: 5} {
		n.Submission.Priority = &p
	}
	items := f.sealed(first, late, normal, early)
	f.finish(items["a"])
	f.wantClaimable("early normal late")
}

func c08Many(f *fixture) {
	const n = 60
	var nodes []registry.Node
	last := node("last")
	for i := range n {
		key := fmt.Sprintf("n%02d", i)
		nodes = append(nodes, node(key))
		last.Submission.Requires = append(last.Submission.Requires, registry.Requirement{Key: key})
	}
	items := f.sealed(append(nodes, last)...)
	for i := range n {
		f.blockers(items["last"], int64(n-i))
		f.isBlocked(items["last"])
		f.finish(items[fmt.Sprintf("n%02d", i)])
	}
	f.wantClaimable("last")
}

func c10Completed(f *fixture) {
	items := f.sealed(node("a"), node("b", "a"), node("c", "a", "x"), node("d", "b"), node("x"))
	f.finish(items["a"])
	f.wantClaimable("b x")
	f.blockers(items["b"], 0)
	f.blockers(items["c"], 1)
	f.blockers(items["d"], 1)
	requires, _, err := f.Edges(f.Context(), items["b"])
	f.must(err)
	if len(requires) != 1 || requires[0].SatisfiedAt == nil || !requires[0].SatisfiedAt.Equal(f.clock.now()) {
		f.Errorf("edges of b: %+v", requires)
	}
	f.finish(items["x"])
	f.wantClaimable("b c")
}

func c11Failed(f *fixture) {
	items := f.sealed(node("a"), node("b", "a"))
	f.fail(items["a"], registry.SystemFault)
	f.wantClaimable("")
	f.blockers(items["b"], 1)
	f.command(items["a"], registry.ActRequeue, "")
	f.wantClaimable("a")
	f.finish(items["a"])
	f.wantClaimable("b")
	f.finish(items["b"])
}

func c12Cancelled(f *fixture) {
	items := f.sealed(node("a"), node("b", "a"))
	f.command(items["a"], registry.ActCancel, "")
	f.wantClaimable("")
	f.statuses(items, "a cancelled, b pending")
	if it := f.item(items["a"]); it.Tries != 0 || it.NeedsAdminReview {
		f.Errorf("a cancel counts as a failure: %+v", it)
	}
	f.command(items["b"], registry.ActCancel, "") // what is blocked can be cancelled too, and comes back blocked
	f.command(items["b"], registry.ActRequeue, "")
	f.wantClaimable("")
	f.command(items["a"], registry.ActRequeue, "")
	f.finish(items["a"])
	f.wantClaimable("b")
}

func c13Abort(f *fixture) {
	items := f.sealed(
		node("done"), node("a", "done"), node("b", "a"), node("c", "b"), node("sibling", "done"), node("both", "b", "sibling"),
		node("whatever", "a:settled"), node("then", "whatever"), node("stopped", "c"),
		node("watch", "b:settled"))
	f.finish(items["done"])
	f.command(items["stopped"], registry.ActCancel, "")
	f.fail(items["a"], registry.SystemFault)
	f.command(items["a"], registry.ActAbort, "")
	f.statuses(items, "a aborted, b aborted, both aborted, c aborted, done completed, sibling pending, stopped aborted, then pending, watch pending, whatever pending")
	for _, key := range []string{"b", "c", "both", "stopped"} {
		if it := f.item(items[key]); !strings.Contains(it.Note, items["a"]) || it.FinishedAt == nil {
			f.Errorf("%s: note %q does not name the cause", key, it.Note)
		}
		_, err := f.Command(f.Context(), registry.Command{ItemID: items[key], Act: registry.ActRequeue, Actor: "admin"})
		if refused := new(registry.TransitionError); !errors.As(err, &refused) {
			f.Errorf("requeue of what was aborted: %v", err)
		}
	}
	f.wantClaimable("sibling whatever watch")
	f.finish(items["sibling"]) // "both" waited for it, too
	f.finish(items["whatever"])
	f.finish(items["then"])
	f.blockers(items["both"], 1)
}

func c13Through(f *fixture) {
	first := f.sealed(node("a"), node("b"))
	plain := f.submit(func(s *registry.Submission) { s.Requires = []registry.Requirement{{ItemID: first["a"]}} })
	_, open := f.prepare("", after(node("c"), plain, ""), after(node("d"), first["b"], ""))
	f.command(first["a"], registry.ActAbort, "")
	for _, id := range []string{first["a"], plain, open["c"]} {
		if got := f.item(id).Status; got != registry.Aborted {
			f.Errorf("%s is %s, want aborted", id, got)
		}
	}
	for _, id := range []string{first["b"], open["d"]} {
		if got := f.item(id).Status; got == registry.Aborted {
			f.Errorf("%s is %s", id, got)
		}
	}
}

func c14Cycle(f *fixture) {
	id, items := f.prepare("", node("in", "a"), node("a", "b"), node("b", "c", "x"), node("c", "a:settled"), node("x"))
	err := f.Seal(f.Context(), id, "depositor")
	var cycle *registry.CycleError
	if !errors.As(err, &cycle) {
		f.Fatalf("seal of a cycle: %v", err)
	}
	requires := map[string]string{items["a"]: items["b"], items["b"]: items["c"], items["c"]: items["a"]}
	if len(cycle.Items) != 3 {
		f.Errorf("cycle %v, want three items", cycle.Items)
	}
	for i, item := range cycle.Items {
		if next := cycle.Items[(i+1)%len(cycle.Items)]; requires[item] != next {
			f.Errorf("%s does not wait for %s in %v", item, next, items)
		}
		if !strings.Contains(err.Error(), item) {
			f.Errorf("%q does not name %s", err, item)
		}
	}
	f.statuses(items, "a prepare, b prepare, c prepare, in prepare, x prepare")
	// A cancelled item may come back, and then it would wait for ever.
	f.command(items["c"], registry.ActCancel, "")
	if err := f.Seal(f.Context(), id, "depositor"); !errors.As(err, &cycle) {
		f.Errorf("seal of a cycle with a cancelled item: %v", err)
	}
	f.command(items["b"], registry.ActAbort, "")
	f.must(f.Seal(f.Context(), id, "depositor"))
	f.statuses(items, "a aborted, b aborted, c cancelled, in aborted, x pending")
}

func c14Self(f *fixture) {
	f.graphError(registry.Graph{Nodes: []registry.Node{node("x"), node("a", "a")}}, "a", "a self-edge")
	f.graphError(registry.Graph{Nodes: []registry.Node{node("x"), node("a", "a:settled")}}, "a", "a self-edge")
}

func c14Born(f *fixture) {
	completed, failed, cancelled, aborted := f.submit(), f.submit(), f.submit(), f.submit()
	f.finish(completed)
	f.fail(failed, registry.ContentFault)
	f.command(cancelled, registry.ActCancel, "")
	f.command(aborted, registry.ActAbort, "")
	_, items := f.prepare("",
		after(node("completed"), completed, ""), after(node("completed-settled"), completed, registry.WaitSettled),
		after(node("failed"), failed, registry.WaitSuccess), after(node("failed-settled"), failed, registry.WaitSettled),
		after(node("cancelled"), cancelled, ""), after(node("cancelled-settled"), cancelled, registry.WaitSettled),
		after(node("aborted-settled"), aborted, registry.WaitSettled))
	for key, id := range items {
		want := int64(0)
		if key == "failed" || key == "cancelled" {
			want = 1
		}
		if got := f.item(id).BlockerCount; got != want {
			f.Errorf("%s: blocker_count=%d, want %d", key, got, want)
		}
		requires, _, err := f.Edges(f.Context(), id)
		f.must(err)
		if len(requires) != 1 || (requires[0].SatisfiedAt == nil) != (want == 1) {
			f.Errorf("%s: edges %+v", key, requires)
		}
	}
	f.graphError(registry.Graph{Nodes: []registry.Node{after(node("n"), aborted, "")}}, "n", "an aborted item never completes")
}

func c15CAN(f *fixture) {
	items := f.sealed(
		node("1"), node("2", "1"), node("3", "1"), node("4", "1"), node("5", "2"), node("6", "3"), node("7", "5"), node("8", "6"))
	f.wantClaimable("1")
	f.finish(items["1"])
	f.wantClaimable("2 3 4") // all of them run at once
	f.finish(items["3"])
	f.wantClaimable("2 4 6")
	f.finish(items["2"])
	f.wantClaimable("4 5 6")
	f.finish(items["6"])
	f.wantClaimable("4 5 8")
	f.finish(items["5"])
	f.wantClaimable("4 7 8")
	for _, key := range []string{"8", "7", "4"} {
		f.finish(items[key])
	}
	f.statuses(items, "1 completed, 2 completed, 3 completed, 4 completed, 5 completed, 6 completed, 7 completed, 8 completed")
}

func c24Why(f *fixture) {
	id, items := f.prepare("", node("a"), node("b", "a"))
	why := func(key, sentence, act string) {
		f.Helper()
		w, err := f.Why(f.Context(), items[key])
		f.must(err)
		if w.Reason != registry.ReasonBlocked || !strings.Contains(w.Sentence, sentence) || !strings.Contains(w.Act, act) {
			f.Errorf("%s: %+v, want blocked, %q and %q", key, w, sentence, act)
		}
	}
	why("a", "being built", "seal graph "+id)
	f.must(f.Seal(f.Context(), id, "depositor"))
	why("b", items["a"]+" (a)", "")
	f.fail(items["a"], registry.SystemFault)
	why("b", "Failed", "requeue "+items["a"])
}

func c27Events(f *fixture) {
	id, items := f.prepare("", node("a"), node("b", "a"))
	f.must(f.Seal(f.Context(), id, "somebody"))
	f.command(items["a"], registry.ActAbort, "")
	for _, key := range []string{"a", "b"} {
		es, err := f.Events(f.Context(), items[key], 0, 10)
		f.must(err)
		var got []string
		for _, e := range es {
			got = append(got, e.Type+" by "+e.Actor)
		}
		if all, want := strings.Join(got, ", "), "prepare by depositor, seal by somebody, abort by admin"; all != want {
			f.Errorf("%s: %s; want %s", key, all, want)
		}
		if last := string(es[len(es)-1].Data); !strings.Contains(last, "because") {
			f.Errorf("%s: event %s has no reason", key, last)
		}
	}
}

func settledEdges(f *fixture) {
	items := f.sealed(node("a"), node("b"), node("c"), node("d"),
		node("w", "a:settled"), node("x", "b:settled"), node("y", "c:settled"), node("z", "d:settled"))
	f.wantClaimable("a b c d")
	f.finish(items["a"])
	f.fail(items["b"], registry.ContentFault)
	f.command(items["c"], registry.ActCancel, "")
	f.command(items["d"], registry.ActAbort, "")
	f.wantClaimable("w x y z")
}

func settledReopen(f *fixture) {
	items := f.sealed(node("a"), node("b", "a:settled"), node("c", "a:settled"), node("d", "a:settled"))
	f.fail(items["a"], registry.SystemFault)
	f.finish(items["b"])
	running := f.takeItem(items["c"]).Lease
	f.command(items["a"], registry.ActRequeue, "")
	for _, key := range []string{"b", "c", "d"} {
		f.blockers(items[key], 1)
	}
	f.wantClaimable("a")
	f.done(running) // a running step goes on; the next one waits
	if got := f.refused(registry.Report, items["c"]).Reason; got != registry.ReasonBlocked {
		f.Errorf("c goes on: %s", got)
	}
	f.finish(items["a"])
	f.wantClaimable("d")
	f.finish(items["c"])
	f.finish(items["d"])
	if got := f.item(items["c"]).Closing; got != 1 {
		f.Errorf("closing=%d, want 1: there was one report", got)
	}
}

func startAndJobs(f *fixture) {
	items := f.sealed(node("a"), node("b", "a:settled"))
	f.fail(items["a"], registry.SystemFault)
	l := f.takeItem(items["b"]).Lease
	_, err := f.AddJobs(f.Context(), l, newJobs(2))
	f.must(err)
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeRetry})
	f.blockers(items["b"], 2)
	f.wantClaimable("b") // its own jobs do not keep a batch from being expanded
	f.command(items["a"], registry.ActRequeue, "")
	f.blockers(items["b"], 3)
	f.wantClaimable("a")
	f.finish(items["a"])
	wakes, err := f.Due(f.Context(), registry.DueRequest{Window: 10, Renudge: time.Second, RenudgeMax: time.Minute})
	f.must(err)
	if !slices.ContainsFunc(wakes, func(w registry.Wake) bool { return w.ItemID == items["b"] }) {
		f.Errorf("nothing rings for b: %v", wakes)
	}
	f.wantClaimable("b")
}

func r12Race(f *fixture) {
	const n = 24
	type pair struct{ required, dependent string }
	pairs := make([]pair, n)
	leases := make([]registry.Lease, n)
	for i := range pairs {
		pairs[i].required = f.submit()
		f.done(f.takeItem(pairs[i].required).Lease)
	}
	for i := range pairs {
		leases[i] = f.takeItem(pairs[i].required).Lease
	}
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range pairs {
		all.Go(func() {
			<-start
			outcome := registry.OutcomeDone
			if i%3 == 2 {
				outcome = registry.OutcomeFailed
			}
			if _, err := f.Settle(f.Context(), registry.Settlement{Lease: leases[i], Outcome: outcome}); err != nil {
				f.Error(err)
			}
		})
		all.Go(func() {
			<-start
			g, err := f.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{after(node("n"), pairs[i].required, "")}})
			if err != nil {
				f.Error(err)
				return
			}
			pairs[i].dependent = g.Items["n"]
			if err := f.Seal(f.Context(), g.GraphID, "depositor"); err != nil {
				f.Error(err)
			}
		})
	}
	close(start)
	all.Wait()
	for i, p := range pairs {
		want := int64(0)
		if i%3 == 2 {
			want = 1
		}
		f.blockers(p.dependent, want)
		if want == 0 {
			f.done(f.takeItem(p.dependent).Lease)
		} else {
			f.isBlocked(p.dependent)
		}
	}
}

func badRequirements(f *fixture) {
	there, aborted := f.submit(), f.submit()
	f.command(aborted, registry.ActAbort, "")
	for name, requires := range map[string][]registry.Requirement{
		"nothing": {{}}, "key and id": {{Key: "a", ItemID: there}}, "kind": {{ItemID: there, WaitFor: "later"}},
		"twice": {{ItemID: there}, {ItemID: there, WaitFor: registry.WaitSettled}}, "a key without a graph": {{Key: "a"}}, "no text": {{ItemID: "a\x00b"}},
		"what never completes": {{ItemID: aborted}},
	} {
		s := submission()
		s.Requires = requires
		_, err := f.Submit(f.Context(), s)
		if wrong := new(registry.GraphError); !errors.As(err, &wrong) || wrong.Problem == "" {
			f.Errorf("%s: submitted with %v", name, err)
		}
		n := node("n")
		n.Submission.Requires = requires
		f.graphError(registry.Graph{Nodes: []registry.Node{n}}, "n", name)
	}
	s := submission()
	s.Requires = []registry.Requirement{{ItemID: "nothing"}}
	_, err := f.Submit(f.Context(), s)
	f.is(err, registry.ErrNotFound)
	_, _, err = f.Edges(f.Context(), "nothing")
	f.is(err, registry.ErrNotFound)
	if n := len(f.all(registry.ItemQuery{})); n != 2 {
		f.Errorf("%d items, want the two that were there", n)
	}
}

func noMessage(f *fixture) {
	id, items := f.prepare("", node("a"), node("b", "a"))
	due := func() []string {
		f.Helper()
		wakes, err := f.Due(f.Context(), registry.DueRequest{Window: 10, Renudge: time.Second, RenudgeMax: time.Minute})
		f.must(err)
		var ids []string
		for _, w := range wakes {
			ids = append(ids, w.ItemID)
		}
		return ids
	}
	want := func(what string, ids ...string) {
		f.Helper()
		if diff := cmp.Diff(ids, due()); diff != "" {
			f.Errorf("messages %s:\n%s", what, diff)
		}
	}
	want("before the seal")
	f.must(f.Seal(f.Context(), id, "depositor"))
	select {
	case <-f.Woken():
	default:
		f.Error("the seal does not wake the relay")
	}
	want("after the seal", items["a"])
	f.finish(items["a"])
	want("when what it requires is complete", items["b"])
}
