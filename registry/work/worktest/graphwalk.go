package worktest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// walk does random things to random graphs and keeps a simple model of the expected result.
type walk struct {
	*fixture

	r        *rand.Rand
	ids      []string
	statuses map[string]registry.Status
	requires map[string][]registry.Requirement // by item id
	running  map[string]registry.Lease
	open     map[string]bool // items of graphs that are not sealed
}

// c09Recount walks at random. The seeds are fixed, so a failure repeats.
func c09Recount(f *fixture) {
	for seed := range uint64(6) {
		w := &walk{
			fixture: f, r: rand.New(rand.NewPCG(seed, 9)), statuses: map[string]registry.Status{},
			requires: map[string][]registry.Requirement{}, running: map[string]registry.Lease{}, open: map[string]bool{},
		}
		w.build()
		for step := range 50 {
			w.step()
			w.check(fmt.Sprintf("seed %d, step %d", seed, step))
			if f.Failed() {
				return
			}
		}
		w.empty()
	}
}

// build makes two graphs in two calls each, and seals the first. Nodes require earlier nodes of
// either graph.
func (w *walk) build() {
	w.Helper()
	var graphs [2]string
	for call := range 4 {
		g := registry.Graph{ID: graphs[call%2], Actor: "depositor"}
		var wanted [][]registry.Requirement
		for i := range 3 {
			n := registrytest.Node(fmt.Sprintf("%d-%d", call, i))
			wanted = append(wanted, w.some(&n))
			g.Nodes = append(g.Nodes, n)
		}
		p, err := w.Store.Prepare(w.Context(), g)
		w.Must(err)
		graphs[call%2] = p.GraphID
		for i, n := range g.Nodes {
			id := p.Items[n.Key]
			w.ids, w.statuses[id], w.requires[id], w.open[id] = append(w.ids, id), registry.Prepare, wanted[i], true
		}
	}
	for i, graph := range graphs {
		if i == 1 && w.r.IntN(2) == 0 {
			continue // it stays unsealed: nothing of it may ever run
		}
		w.Must(w.Store.Seal(w.Context(), graph, "depositor"))
		for _, it := range w.graph(graph).Items {
			w.statuses[it.ID] = registry.Pending
			delete(w.open, it.ID)
		}
	}
}

// some chooses requirements among the existing items.
func (w *walk) some(n *registry.Node) []registry.Requirement {
	var all []registry.Requirement
	for _, i := range w.r.Perm(len(w.ids))[:min(len(w.ids), w.r.IntN(4))] {
		r := registry.Requirement{ItemID: w.ids[i], WaitFor: registry.WaitSuccess}
		if w.r.IntN(3) == 0 {
			r.WaitFor = registry.WaitSettled
		}
		all = append(all, r)
	}
	n.Submission.Requires = all
	return all
}

func (w *walk) free(id string) bool {
	for _, r := range w.requires[id] {
		if !r.WaitFor.SatisfiedBy(w.statuses[r.ItemID]) {
			return false
		}
	}
	return true
}

func (w *walk) step() {
	w.Helper()
	switch w.r.IntN(8) {
	case 0, 1, 2:
		w.claim()
	case 3, 4, 5:
		w.finishOne()
	default:
		w.act()
	}
}

func (w *walk) claim() {
	w.Helper()
	for _, stage := range []registry.Stage{registry.Expand, registry.Report} {
		c, err := w.Store.Claim(w.Context(), w.Request(stage, ""))
		if refused := new(registry.NotClaimable); errors.As(err, &refused) {
			w.nothingReady(stage)
			continue
		}
		w.Must(err)
		id := c.Item.ID
		if !w.free(id) || w.open[id] || w.statuses[id] != registry.Pending {
			w.Errorf("claimed %s, which is %s and requires %v", id, w.statuses[id], w.requires[id])
		}
		w.statuses[id], w.running[id] = registry.Running, c.Lease
	}
}

// nothingReady checks that nothing can be claimed.
func (w *walk) nothingReady(stage registry.Stage) {
	w.Helper()
	for _, id := range w.ids {
		if w.statuses[id] == registry.Pending && w.free(id) && w.Item(id).Stage == stage {
			w.Errorf("nothing was claimed, but %s is free", id)
		}
	}
}

// finishOne settles the step of a running item.
func (w *walk) finishOne() {
	w.Helper()
	for _, i := range w.r.Perm(len(w.ids)) {
		id := w.ids[i]
		l, ok := w.running[id]
		if !ok {
			continue
		}
		s := registry.Settlement{Lease: l, Outcome: registry.OutcomeDone}
		switch w.r.IntN(5) {
		case 0:
			s.Outcome = registry.OutcomeFailed
		case 1:
			s.Outcome = registry.OutcomeReleased
		}
		w.statuses[id] = w.Settle(s).Status
		delete(w.running, id)
		return
	}
}

// act applies an admin's act to an item that does not run.
func (w *walk) act() {
	w.Helper()
	id := w.ids[w.r.IntN(len(w.ids))]
	switch w.statuses[id] {
	case registry.Failed, registry.Cancelled:
		if w.open[id] {
			return
		}
		if w.r.IntN(4) == 0 {
			w.abort(id)
			return
		}
		w.Command(id, registry.ActRequeue, "")
		w.statuses[id] = registry.Pending
	case registry.Prepare, registry.Pending:
		switch w.r.IntN(6) {
		case 0:
			w.abort(id)
		case 1, 2:
			if w.Item(id).Stage == registry.Report {
				return // a report that is due goes out
			}
			w.Command(id, registry.ActCancel, "")
			w.statuses[id] = registry.Cancelled
		}
	case registry.Running, registry.Completed, registry.Aborted, registry.Deleted:
	}
}

func (w *walk) abort(id string) {
	w.Helper()
	w.Confirm(id, registry.ActAbort)
	w.gone(id)
}

// gone updates the model for an aborted item and those that wait for its success.
func (w *walk) gone(id string) {
	w.statuses[id] = registry.Aborted
	for _, other := range w.ids {
		for _, r := range w.requires[other] {
			if s := w.statuses[other]; r.ItemID == id && r.WaitFor == registry.WaitSuccess && s != registry.Aborted {
				w.gone(other)
			}
		}
	}
}

// check compares every item with the model. CheckInvariants recounts blocker_count.
func (w *walk) check(when string) {
	w.Helper()
	for _, id := range w.ids {
		it := w.Item(id)
		if it.Status != w.statuses[id] {
			w.Errorf("%s: %s is %s, want %s", when, id, it.Status, w.statuses[id])
		}
		open := int64(0)
		for _, r := range w.requires[id] {
			if !r.WaitFor.SatisfiedBy(w.statuses[r.ItemID]) {
				open++
			}
		}
		if it.BlockerCount != open {
			w.Errorf("%s: %s has blocker_count %d, want %d", when, id, it.BlockerCount, open)
		}
	}
}

// empty removes the walk's items before the next walk.
func (w *walk) empty() {
	w.Helper()
	for id, l := range w.running {
		w.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed})
		w.statuses[id] = registry.Failed
	}
	for _, id := range w.ids {
		if s := w.statuses[id]; s == registry.Pending || s == registry.Prepare {
			w.abort(id)
		}
	}
}
