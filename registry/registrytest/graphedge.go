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
	f.sure(items["a"], registry.ActAbort)
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
	f.sure(first["a"], registry.ActAbort)
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
	f.sure(items["b"], registry.ActAbort)
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
	f.sure(aborted, registry.ActAbort)
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
	f.sure(items["a"], registry.ActAbort)
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
	f.sure(items["d"], registry.ActAbort)
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
	f.sure(aborted, registry.ActAbort)
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
	f.rung("the seal")
	want("after the seal", items["a"])
	f.finish(items["a"])
	want("when what it requires is complete", items["b"])
}
