package worktest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// graphTests are the requirements about dependencies in the proposal for the Console's task queue,
// by their numbers. Other tests cover C1, C7, C17, C18, C21 and C26's attempts (settle, sweep,
// fence), C5 and C6 (wake, hold), C16 and C19 (command), C22 (renew), and C25 (the pages). The task
// package covers C20 (a step's code), C23 (arguments), C28 (schedules), C29 and C30 (calling a task
// function), and the second half of C31, a task without a queue. Its first half holds in every test
// here: no worker runs.
func graphTests() tests {
	return tests{
		"C2_prepared_items_are_never_dispatched":              c02Prepare,
		"C2_prepare_is_all_or_nothing":                        c02AllOrNothing,
		"C2_seal_lets_all_go_in_one_act":                      c02Seal,
		"C2_a_graph_grows_until_it_is_sealed":                 c02Grows,
		"C2_what_was_cancelled_before_the_seal_stays_so":      c02Cancelled,
		"C2_a_key_is_answered_once":                           c02Key,
		"C2_bounds":                                           c02Bounds,
		"C3_plain_submissions_start_pending":                  c03Pending,
		"C4_order_of_what_is_unblocked":                       c04Order,
		"C8_any_number_of_requirements":                       c08Many,
		"C9_a_recount_at_all_times":                           c09Recount,
		"C10_completed_unblocks_exactly_its_dependents":       c10Completed,
		"C11_failed_keeps_dependents_blocked":                 c11Failed,
		"C12_cancelled_keeps_dependents_blocked":              c12Cancelled,
		"C13_abort_cascades":                                  c13Abort,
		"C13_abort_through_other_graphs":                      c13Through,
		"C14_cycles_are_refused_and_named":                    c14Cycle,
		"C14_a_self_edge_is_refused":                          c14Self,
		"C14_an_edge_to_what_is_settled":                      c14Born,
		"C15_the_CAN_graph":                                   c15CAN,
		"C24_why_names_what_is_waited_for":                    c24Why,
		"C27_every_act_has_its_event":                         c27Events,
		"settled_edges":                                       settledEdges,
		"settled_edges_open_again":                            settledReopen,
		"an_unexpanded_batch_waits_and_its_jobs_do_not_count": startAndJobs,
		"R12_a_prerequisite_completes_while_it_is_required":   r12Race,
		"bad_requirements":                                    badRequirements,
		"no_message_before_its_turn":                          noMessage,
	}
}

// after adds a requirement of an item to a node.
func after(n registry.Node, itemID string, wait registry.WaitFor) registry.Node {
	n.Submission.Requires = append(n.Submission.Requires, registry.Requirement{ItemID: itemID, WaitFor: wait})
	return n
}

// sealed prepares and seals a graph.
func (f *fixture) sealed(nodes ...registry.Node) map[string]string {
	f.Helper()
	id, items := f.Prepare("", nodes...)
	f.Must(f.Store.Seal(f.Context(), id, "depositor"))
	return items
}

func (f *fixture) graph(id string) registry.GraphView {
	f.Helper()
	g, err := f.Store.Graph(f.Context(), id)
	f.Must(err)
	return g
}

// statuses checks the status of items by key: "a completed, b pending".
func (f *fixture) statuses(items map[string]string, want string) {
	f.Helper()
	var got []string
	for key, id := range items {
		got = append(got, key+" "+string(f.Item(id).Status))
	}
	slices.Sort(got)
	if all := strings.Join(got, ", "); all != want {
		f.Errorf("%s\nwant %s", all, want)
	}
}

// claimable claims all that can be claimed at expand, releases it, and returns the names.
func (f *fixture) claimable() string {
	f.Helper()
	var names []string
	var leases []registry.Lease
	for {
		c, err := f.Store.Claim(f.Context(), f.Request(registry.Expand, ""))
		if refused := new(registry.NotClaimable); errors.As(err, &refused) {
			break
		}
		f.Must(err)
		names, leases = append(names, c.Item.Name), append(leases, c.Lease)
	}
	for _, l := range leases {
		f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	}
	return strings.Join(names, " ")
}

func (f *fixture) wantClaimable(want string) {
	f.Helper()
	if got := f.claimable(); got != want {
		f.Errorf("claimable: %q, want %q", got, want)
	}
}

// isBlocked checks that an item cannot start because of its requirements.
func (f *fixture) isBlocked(id string) {
	f.Helper()
	w, err := f.Store.Why(f.Context(), id)
	f.Must(err)
	if w.Reason != registry.ReasonBlocked {
		f.Errorf("%s waits because %s (%s), want blocked", id, w.Reason, w.Sentence)
	}
}

// blockers checks an item's blocker_count.
func (f *fixture) blockers(id string, want int64) {
	f.Helper()
	if got := f.Item(id).BlockerCount; got != want {
		f.Errorf("blocker_count=%d, want %d", got, want)
	}
}

func c02Prepare(f *fixture) {
	id, items := f.Prepare("", registrytest.Node("a"), registrytest.Node("b", "a"))
	f.wantClaimable("")
	wakes, err := f.Store.Due(f.Context(), registry.DueRequest{Window: 10, Renudge: time.Second, RenudgeMax: time.Minute})
	f.Must(err)
	if len(wakes) != 0 {
		f.Errorf("%d messages for a graph that is being built", len(wakes))
	}
	if got := f.Refused(registry.Expand, items["a"]).Reason; got == registry.ReasonQueued {
		f.Errorf("a prepared item is %s", got)
	}
	a := f.Item(items["a"])
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
	requires, required, err := f.Store.Edges(f.Context(), items["a"])
	f.Must(err)
	if diff := cmp.Diff(want, required); diff != "" || len(requires) != 0 {
		f.Errorf("edges of a: %v\n%s", requires, diff)
	}
}

func c02AllOrNothing(f *fixture) {
	unknown := registrytest.Node("b")
	unknown.Submission.Collection = "nowhere"
	upload := registrytest.Node("b")
	upload.Submission.Spec.URL = registry.UploadURL("nothing")
	for name, bad := range map[string]registry.Node{
		"unknown collection": unknown, "unknown upload": upload, "unknown item": after(registrytest.Node("b"), "nothing", ""),
	} {
		_, err := f.Store.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{registrytest.Node("a"), bad}})
		if !errors.Is(err, registry.ErrNotFound) {
			f.Errorf("%s: %v", name, err)
		}
	}
	for name, bad := range map[string]registry.Node{"unknown key": registrytest.Node("b", "nobody"), "key used twice": registrytest.Node("a"), "no key": registrytest.Node("")} {
		f.graphError(registry.Graph{Nodes: []registry.Node{registrytest.Node("a"), bad}}, bad.Key, name)
	}
	_, err := f.Store.Prepare(f.Context(), registry.Graph{ID: "nothing", Nodes: []registry.Node{registrytest.Node("a")}})
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.Graph(f.Context(), "nothing")
	f.Is(err, registry.ErrNotFound)
	f.Is(f.Store.Seal(f.Context(), "nothing", "depositor"), registry.ErrNotFound)
	if n := len(f.All(registry.ItemQuery{})); n != 0 {
		f.Errorf("%d items were made", n)
	}
}

// graphError checks that a graph is refused because of a node.
func (f *fixture) graphError(g registry.Graph, key, what string) {
	f.Helper()
	_, err := f.Store.Prepare(f.Context(), g)
	var wrong *registry.GraphError
	if !errors.As(err, &wrong) || wrong.Key != key || wrong.Problem == "" {
		f.Errorf("%s: %v, want a GraphError of node %q", what, err, key)
	}
}

func c02Seal(f *fixture) {
	id, items := f.Prepare("", registrytest.Node("a"), registrytest.Node("b"), registrytest.Node("c", "a", "b"))
	f.Must(f.Store.Seal(f.Context(), id, "somebody"))
	f.statuses(items, "a pending, b pending, c pending")
	f.wantClaimable("a b")
	f.isBlocked(items["c"])
	f.blockers(items["c"], 2)
	before := f.Events(items["a"])
	f.Must(f.Store.Seal(f.Context(), id, "somebody"))
	if diff := cmp.Diff(before, f.Events(items["a"])); diff != "" {
		f.Errorf("a repeated seal is news:\n%s", diff)
	}
	if !f.graph(id).Sealed {
		f.Error("the graph is not shown as sealed")
	}
	_, err := f.Store.Prepare(f.Context(), registry.Graph{ID: id, Nodes: []registry.Node{registrytest.Node("d")}})
	f.Is(err, registry.ErrSealed)
}

func c02Grows(f *fixture) {
	id, first := f.Prepare("", registrytest.Node("a"))
	again, second := f.Prepare(id, registrytest.Node("b", "a"), registrytest.Node("c", "b", "a"))
	if again != id {
		f.Errorf("graph %s, want %s", again, id)
	}
	f.graphError(registry.Graph{ID: id, Nodes: []registry.Node{registrytest.Node("a")}}, "a", "a key of an earlier call")
	twice := after(registrytest.Node("d", "a"), first["a"], "")
	f.graphError(registry.Graph{ID: id, Nodes: []registry.Node{twice}}, "d", "required by key and by id")
	f.Must(f.Store.Seal(f.Context(), id, "depositor"))
	f.blockers(second["c"], 2)
	for _, want := range []string{"a", "b", "c"} {
		f.wantClaimable(want)
		f.Finish(map[string]string{"a": first["a"], "b": second["b"], "c": second["c"]}[want])
	}
}

func c02Cancelled(f *fixture) {
	id, items := f.Prepare("", registrytest.Node("a"), registrytest.Node("b", "a"), registrytest.Node("c"), registrytest.Node("d", "c"), registrytest.Node("e"))
	f.Command(items["a"], registry.ActCancel, "")
	f.Confirm(items["c"], registry.ActAbort)
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: items["a"], Act: registry.ActRequeue, Actor: "admin"})
	var refused *registry.TransitionError
	if !errors.As(err, &refused) {
		f.Errorf("requeue into a graph that is not sealed: %v", err)
	}
	f.Must(f.Store.Seal(f.Context(), id, "depositor"))
	f.statuses(items, "a cancelled, b pending, c aborted, d aborted, e pending")
	f.wantClaimable("e")
	f.Command(items["a"], registry.ActRequeue, "")
	f.wantClaimable("a e")
}

func c02Key(f *fixture) {
	g := registry.Graph{Nodes: []registry.Node{registrytest.Node("a"), registrytest.Node("b", "a")}, IdempotencyKey: "k", Actor: "depositor"}
	first, err := f.Store.Prepare(f.Context(), g)
	f.Must(err)
	f.Must(f.Store.Seal(f.Context(), first.GraphID, "depositor"))
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			again, err := f.Store.Prepare(f.Context(), g)
			if diff := cmp.Diff(first, again); err != nil || diff != "" {
				f.Errorf("repeat: %v\n%s", err, diff)
			}
		})
	}
	all.Wait()
	g.Nodes[1] = registrytest.Node("b")
	_, err = f.Store.Prepare(f.Context(), g)
	f.Is(err, registry.ErrIdempotencyConflict)
	s := registrytest.Submission()
	s.IdempotencyKey = "k2"
	_, err = f.Store.Submit(f.Context(), s)
	f.Must(err)
	s.Requires = []registry.Requirement{{ItemID: first.Items["a"]}}
	_, err = f.Store.Submit(f.Context(), s)
	f.Is(err, registry.ErrIdempotencyConflict)
	if n := len(f.All(registry.ItemQuery{})); n != 3 {
		f.Errorf("%d items, want 3", n)
	}
}

func c02Bounds(f *fixture) {
	f.graphError(registry.Graph{}, "", "no nodes")
	var many []registry.Node
	for i := range registry.MostNodes + 1 {
		many = append(many, registrytest.Node(fmt.Sprintf("n%d", i)))
	}
	f.graphError(registry.Graph{Nodes: many}, "", "too many nodes")
	f.graphError(registry.Graph{Nodes: []registry.Node{registrytest.Node("a\xff")}}, "a\xff", "a key that is no text")
	dense := many[:100]
	for i := range dense {
		for j := range 30 {
			dense[i].Submission.Requires = append(dense[i].Submission.Requires, registry.Requirement{Key: fmt.Sprintf("n%d", (i+j+1)%100)})
		}
	}
	f.graphError(registry.Graph{Nodes: dense}, "", "too many requirements")
	f.graphError(registry.Graph{Nodes: []registry.Node{registrytest.Node(strings.Repeat("k", 300))}}, strings.Repeat("k", 300), "a long key")
}
