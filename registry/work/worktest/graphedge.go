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

func c03Pending(f *fixture) {
	first := f.Submit()
	second := f.Submit(func(s *registry.Submission) { s.Requires = []registry.Requirement{{ItemID: first}} })
	for _, id := range []string{first, second} {
		if it := f.Item(id); it.Status != registry.Pending || it.State != registry.StatePending {
			f.Errorf("item is %s, %s", it.Status, it.State)
		}
	}
	f.blockers(second, 1)
	if got := f.Take(registry.Expand, second); got.Item.ID != first {
		f.Errorf("claimed %s before what it requires", got.Item.ID)
	}
	if got := f.Refused(registry.Expand, second).Reason; got != registry.ReasonBlocked {
		f.Errorf("refused as %s, want blocked", got)
	}
}

func c04Order(f *fixture) {
	first := registrytest.Node("a")
	late, early, normal := registrytest.Node("late", "a"), registrytest.Node("early", "a"), registrytest.Node("normal", "a")
	for n, p := range map[*registry.Node]int{&late: 9, &early: 1, &normal: 5} {
		n.Submission.Priority = &p
	}
	items := f.sealed(first, late, normal, early)
	f.Finish(items["a"])
	f.wantClaimable("early normal late")
}

func c08Many(f *fixture) {
	const n = 60
	var nodes []registry.Node
	last := registrytest.Node("last")
	for i := range n {
		key := fmt.Sprintf("n%02d", i)
		nodes = append(nodes, registrytest.Node(key))
		last.Submission.Requires = append(last.Submission.Requires, registry.Requirement{Key: key})
	}
	items := f.sealed(append(nodes, last)...)
	for i := range n {
		f.blockers(items["last"], int64(n-i))
		f.isBlocked(items["last"])
		f.Finish(items[fmt.Sprintf("n%02d", i)])
	}
	f.wantClaimable("last")
}

func c10Completed(f *fixture) {
	items := f.sealed(registrytest.Node("a"), registrytest.Node("b", "a"), registrytest.Node("c", "a", "x"), registrytest.Node("d", "b"), registrytest.Node("x"))
	f.Finish(items["a"])
	f.wantClaimable("b x")
	f.blockers(items["b"], 0)
	f.blockers(items["c"], 1)
	f.blockers(items["d"], 1)
	requires, _, err := f.Store.Edges(f.Context(), items["b"])
	f.Must(err)
	if len(requires) != 1 || requires[0].SatisfiedAt == nil || !requires[0].SatisfiedAt.Equal(f.Clock.Now()) {
		f.Errorf("edges of b: %+v", requires)
	}
	f.Finish(items["x"])
	f.wantClaimable("b c")
}

func c11Failed(f *fixture) {
	items := f.sealed(registrytest.Node("a"), registrytest.Node("b", "a"))
	f.FailItem(items["a"], registry.SystemFault)
	f.wantClaimable("")
	f.blockers(items["b"], 1)
	f.Command(items["a"], registry.ActRequeue, "")
	f.wantClaimable("a")
	f.Finish(items["a"])
	f.wantClaimable("b")
	f.Finish(items["b"])
}

func c12Cancelled(f *fixture) {
	items := f.sealed(registrytest.Node("a"), registrytest.Node("b", "a"))
	f.Command(items["a"], registry.ActCancel, "")
	f.wantClaimable("")
	f.statuses(items, "a cancelled, b pending")
	if it := f.Item(items["a"]); it.Tries != 0 || it.NeedsAdminReview {
		f.Errorf("a cancel counts as a failure: %+v", it)
	}
	f.Command(items["b"], registry.ActCancel, "") // what is blocked can be cancelled too, and comes back blocked
	f.Command(items["b"], registry.ActRequeue, "")
	f.wantClaimable("")
	f.Command(items["a"], registry.ActRequeue, "")
	f.Finish(items["a"])
	f.wantClaimable("b")
}

func c13Abort(f *fixture) {
	items := f.sealed(
		registrytest.Node("done"), registrytest.Node("a", "done"), registrytest.Node("b", "a"), registrytest.Node("c", "b"), registrytest.Node("sibling", "done"), registrytest.Node("both", "b", "sibling"),
		registrytest.Node("whatever", "a:settled"), registrytest.Node("then", "whatever"), registrytest.Node("stopped", "c"),
		registrytest.Node("watch", "b:settled"))
	f.Finish(items["done"])
	f.Command(items["stopped"], registry.ActCancel, "")
	f.FailItem(items["a"], registry.SystemFault)
	f.Confirm(items["a"], registry.ActAbort)
	f.statuses(items, "a aborted, b aborted, both aborted, c aborted, done completed, sibling pending, stopped aborted, then pending, watch pending, whatever pending")
	for _, key := range []string{"b", "c", "both", "stopped"} {
		if it := f.Item(items[key]); !strings.Contains(it.Note, items["a"]) || it.FinishedAt == nil {
			f.Errorf("%s: note %q does not name the cause", key, it.Note)
		}
		_, err := f.Store.Command(f.Context(), registry.Command{ItemID: items[key], Act: registry.ActRequeue, Actor: "admin"})
		if refused := new(registry.TransitionError); !errors.As(err, &refused) {
			f.Errorf("requeue of what was aborted: %v", err)
		}
	}
	f.wantClaimable("sibling whatever watch")
	f.Finish(items["sibling"]) // "both" waited for it, too
	f.Finish(items["whatever"])
	f.Finish(items["then"])
	f.blockers(items["both"], 1)
}

func c13Through(f *fixture) {
	first := f.sealed(registrytest.Node("a"), registrytest.Node("b"))
	plain := f.Submit(func(s *registry.Submission) { s.Requires = []registry.Requirement{{ItemID: first["a"]}} })
	_, open := f.Prepare("", after(registrytest.Node("c"), plain, ""), after(registrytest.Node("d"), first["b"], ""))
	f.Confirm(first["a"], registry.ActAbort)
	for _, id := range []string{first["a"], plain, open["c"]} {
		if got := f.Item(id).Status; got != registry.Aborted {
			f.Errorf("%s is %s, want aborted", id, got)
		}
	}
	for _, id := range []string{first["b"], open["d"]} {
		if got := f.Item(id).Status; got == registry.Aborted {
			f.Errorf("%s is %s", id, got)
		}
	}
}

func c14Cycle(f *fixture) {
	id, items := f.Prepare("", registrytest.Node("in", "a"), registrytest.Node("a", "b"), registrytest.Node("b", "c", "x"), registrytest.Node("c", "a:settled"), registrytest.Node("x"))
	err := f.Store.Seal(f.Context(), id, "depositor")
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
	f.Command(items["c"], registry.ActCancel, "")
	if err := f.Store.Seal(f.Context(), id, "depositor"); !errors.As(err, &cycle) {
		f.Errorf("seal of a cycle with a cancelled item: %v", err)
	}
	f.Confirm(items["b"], registry.ActAbort)
	f.Must(f.Store.Seal(f.Context(), id, "depositor"))
	f.statuses(items, "a aborted, b aborted, c cancelled, in aborted, x pending")
}

func c14Self(f *fixture) {
	f.graphError(registry.Graph{Nodes: []registry.Node{registrytest.Node("x"), registrytest.Node("a", "a")}}, "a", "a self-edge")
	f.graphError(registry.Graph{Nodes: []registry.Node{registrytest.Node("x"), registrytest.Node("a", "a:settled")}}, "a", "a self-edge")
}

func c14Born(f *fixture) {
	completed, failed, cancelled, aborted := f.Submit(), f.Submit(), f.Submit(), f.Submit()
	f.Finish(completed)
	f.FailItem(failed, registry.ContentFault)
	f.Command(cancelled, registry.ActCancel, "")
	f.Confirm(aborted, registry.ActAbort)
	_, items := f.Prepare("",
		after(registrytest.Node("completed"), completed, ""), after(registrytest.Node("completed-settled"), completed, registry.WaitSettled),
		after(registrytest.Node("failed"), failed, registry.WaitSuccess), after(registrytest.Node("failed-settled"), failed, registry.WaitSettled),
		after(registrytest.Node("cancelled"), cancelled, ""), after(registrytest.Node("cancelled-settled"), cancelled, registry.WaitSettled),
		after(registrytest.Node("aborted-settled"), aborted, registry.WaitSettled))
	for key, id := range items {
		want := int64(0)
		if key == "failed" || key == "cancelled" {
			want = 1
		}
		if got := f.Item(id).BlockerCount; got != want {
			f.Errorf("%s: blocker_count=%d, want %d", key, got, want)
		}
		requires, _, err := f.Store.Edges(f.Context(), id)
		f.Must(err)
		if len(requires) != 1 || (requires[0].SatisfiedAt == nil) != (want == 1) {
			f.Errorf("%s: edges %+v", key, requires)
		}
	}
	f.graphError(registry.Graph{Nodes: []registry.Node{after(registrytest.Node("n"), aborted, "")}}, "n", "an aborted item never completes")
}

func c15CAN(f *fixture) {
	items := f.sealed(
		registrytest.Node("1"), registrytest.Node("2", "1"), registrytest.Node("3", "1"), registrytest.Node("4", "1"), registrytest.Node("5", "2"), registrytest.Node("6", "3"), registrytest.Node("7", "5"), registrytest.Node("8", "6"))
	f.wantClaimable("1")
	f.Finish(items["1"])
	f.wantClaimable("2 3 4") // all of them run at once
	f.Finish(items["3"])
	f.wantClaimable("2 4 6")
	f.Finish(items["2"])
	f.wantClaimable("4 5 6")
	f.Finish(items["6"])
	f.wantClaimable("4 5 8")
	f.Finish(items["5"])
	f.wantClaimable("4 7 8")
	for _, key := range []string{"8", "7", "4"} {
		f.Finish(items[key])
	}
	f.statuses(items, "1 completed, 2 completed, 3 completed, 4 completed, 5 completed, 6 completed, 7 completed, 8 completed")
}

func c24Why(f *fixture) {
	id, items := f.Prepare("", registrytest.Node("a"), registrytest.Node("b", "a"))
	why := func(key, sentence, act string) {
		f.Helper()
		w, err := f.Store.Why(f.Context(), items[key])
		f.Must(err)
		if w.Reason != registry.ReasonBlocked || !strings.Contains(w.Sentence, sentence) || !strings.Contains(w.Act, act) {
			f.Errorf("%s: %+v, want blocked, %q and %q", key, w, sentence, act)
		}
	}
	why("a", "not sealed yet", "seal graph "+id)
	f.Must(f.Store.Seal(f.Context(), id, "depositor"))
	why("b", "a "+items["a"], "")
	f.FailItem(items["a"], registry.SystemFault)
	why("b", "Failed", "requeue item "+items["a"])
}

func c27Events(f *fixture) {
	id, items := f.Prepare("", registrytest.Node("a"), registrytest.Node("b", "a"))
	f.Must(f.Store.Seal(f.Context(), id, "somebody"))
	f.Confirm(items["a"], registry.ActAbort)
	for _, key := range []string{"a", "b"} {
		es, err := f.Store.Events(f.Context(), items[key], 0, 10)
		f.Must(err)
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
	items := f.sealed(registrytest.Node("a"), registrytest.Node("b"), registrytest.Node("c"), registrytest.Node("d"),
		registrytest.Node("w", "a:settled"), registrytest.Node("x", "b:settled"), registrytest.Node("y", "c:settled"), registrytest.Node("z", "d:settled"))
	f.wantClaimable("a b c d")
	f.Finish(items["a"])
	f.FailItem(items["b"], registry.ContentFault)
	f.Command(items["c"], registry.ActCancel, "")
	f.Confirm(items["d"], registry.ActAbort)
	f.wantClaimable("w x y z")
}

func settledReopen(f *fixture) {
	items := f.sealed(registrytest.Node("a"), registrytest.Node("b", "a:settled"), registrytest.Node("c", "a:settled"), registrytest.Node("d", "a:settled"))
	f.FailItem(items["a"], registry.SystemFault)
	f.Finish(items["b"])
	running := f.TakeItem(items["c"]).Lease
	f.Command(items["a"], registry.ActRequeue, "")
	for _, key := range []string{"b", "c", "d"} {
		f.blockers(items[key], 1)
	}
	f.wantClaimable("a")
	f.Done(running) // a running step goes on; the next one waits
	if got := f.Refused(registry.Report, items["c"]).Reason; got != registry.ReasonBlocked {
		f.Errorf("c goes on: %s", got)
	}
	f.Finish(items["a"])
	f.wantClaimable("d")
	f.Finish(items["c"])
	f.Finish(items["d"])
	if got := f.Item(items["c"]).Closing; got != 1 {
		f.Errorf("closing=%d, want 1: there was one report", got)
	}
}

func startAndJobs(f *fixture) {
	items := f.sealed(registrytest.Node("a"), registrytest.Node("b", "a:settled"))
	f.FailItem(items["a"], registry.SystemFault)
	l := f.TakeItem(items["b"]).Lease
	_, err := f.Store.AddJobs(f.Context(), l, registrytest.NewJobs(2))
	f.Must(err)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeRetry})
	f.blockers(items["b"], 2)
	f.wantClaimable("b") // its own jobs do not keep a batch from being expanded
	f.Command(items["a"], registry.ActRequeue, "")
	f.blockers(items["b"], 3)
	f.wantClaimable("a")
	f.Finish(items["a"])
	wakes, err := f.Store.Due(f.Context(), registry.DueRequest{Window: 10, Renudge: time.Second, RenudgeMax: time.Minute})
	f.Must(err)
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
		pairs[i].required = f.Submit()
		f.Done(f.TakeItem(pairs[i].required).Lease)
	}
	for i := range pairs {
		leases[i] = f.TakeItem(pairs[i].required).Lease
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
			if _, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: leases[i], Outcome: outcome}); err != nil {
				f.Error(err)
			}
		})
		all.Go(func() {
			<-start
			g, err := f.Store.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{after(registrytest.Node("n"), pairs[i].required, "")}})
			if err != nil {
				f.Error(err)
				return
			}
			pairs[i].dependent = g.Items["n"]
			if err := f.Store.Seal(f.Context(), g.GraphID, "depositor"); err != nil {
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
			f.Done(f.TakeItem(p.dependent).Lease)
		} else {
			f.isBlocked(p.dependent)
		}
	}
}

func badRequirements(f *fixture) {
	there, aborted := f.Submit(), f.Submit()
	f.Confirm(aborted, registry.ActAbort)
	for name, requires := range map[string][]registry.Requirement{
		"nothing": {{}}, "key and id": {{Key: "a", ItemID: there}}, "kind": {{ItemID: there, WaitFor: "later"}},
		"twice": {{ItemID: there}, {ItemID: there, WaitFor: registry.WaitSettled}}, "a key without a graph": {{Key: "a"}}, "no text": {{ItemID: "a\x00b"}},
		"what never completes": {{ItemID: aborted}},
	} {
		s := registrytest.Submission()
		s.Requires = requires
		_, err := f.Store.Submit(f.Context(), s)
		if wrong := new(registry.GraphError); !errors.As(err, &wrong) || wrong.Problem == "" {
			f.Errorf("%s: submitted with %v", name, err)
		}
		n := registrytest.Node("n")
		n.Submission.Requires = requires
		f.graphError(registry.Graph{Nodes: []registry.Node{n}}, "n", name)
	}
	s := registrytest.Submission()
	s.Requires = []registry.Requirement{{ItemID: "nothing"}}
	_, err := f.Store.Submit(f.Context(), s)
	f.Is(err, registry.ErrNotFound)
	_, _, err = f.Store.Edges(f.Context(), "nothing")
	f.Is(err, registry.ErrNotFound)
	if n := len(f.All(registry.ItemQuery{})); n != 2 {
		f.Errorf("%d items, want the two that were there", n)
	}
}

func noMessage(f *fixture) {
	id, items := f.Prepare("", registrytest.Node("a"), registrytest.Node("b", "a"))
	due := func() []string {
		f.Helper()
		wakes, err := f.Store.Due(f.Context(), registry.DueRequest{Window: 10, Renudge: time.Second, RenudgeMax: time.Minute})
		f.Must(err)
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
	f.Must(f.Store.Seal(f.Context(), id, "depositor"))
	f.rung("the seal")
	want("after the seal", items["a"])
	f.Finish(items["a"])
	want("when what it requires is complete", items["b"])
}
