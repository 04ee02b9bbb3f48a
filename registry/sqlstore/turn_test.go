package sqlstore_test

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// queued is what the model of turns knows of an item.
type queued struct {
	id, collection string
	priority       int
	made, runAt    time.Time
	running        bool
	held           bool // by a hold of its own
	attempt        int64
}

// turnModel says whose turn it is, from the rules alone.
type turnModel struct {
	s      *sqlstore.Store
	clock  *clock
	items  []*queued
	shut   map[string]bool // collections
	served map[string]int  // the claim that served a collection last
	claims int
}

var turnCollections = []string{"a", "b", "c"}

// TestTurns applies random operations to a queue and compares every claim with the rules. In the
// end, without holds, every item has had its turn.
func TestTurns(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		m := &turnModel{clock: newClock(), shut: map[string]bool{}, served: map[string]int{}}
		s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.SQLiteAt(t, filepath.Join(dir, fmt.Sprint(n))), Now: m.clock.now})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		m.s = s
		for _, name := range turnCollections {
			m.must(rt, s.PutCollection(t.Context(), registry.Collection{Mnemonic: name}, "admin"))
		}
		m.submit(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":                func(t *rapid.T) { checkReady(t.Context(), t, s) },
			"submit":          m.submit,
			"submit again":    m.submit,
			"claim":           m.claim,
			"claim again":     m.claim,
			"claim once more": m.claim,
			"settle":          m.settle,
			"prioritise":      m.prioritise,
			"hold":            m.hold,
			"hold batch":      m.hold,
			"shut":            m.shutCollection,
			"due":             m.due,
			"time":            func(t *rapid.T) { m.clock.pass(time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute) },
		})
		m.drain(rt)
	})
}

func (m *turnModel) must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *turnModel) submit(t *rapid.T) {
	p := rapid.SampledFrom([]int{0, 5, 60, 99, 1000}).Draw(t, "priority")
	collection := rapid.SampledFrom(turnCollections).Draw(t, "collection")
	r, err := m.s.Submit(t.Context(), registry.Submission{Collection: collection, Priority: &p})
	m.must(t, err)
	m.items = append(m.items, &queued{id: r.BatchID, collection: collection, priority: p, made: m.clock.now(), runAt: m.clock.now()})
}

func (m *turnModel) some(t *rapid.T, fits func(*queued) bool) *queued {
	var all []*queued
	for _, q := range m.items {
		if fits(q) {
			all = append(all, q)
		}
	}
	if len(all) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(all).Draw(t, "item")
}

// turn is the item that comes next, nil when there is none.
func (m *turnModel) turn() *queued {
	var ready []*queued
	for _, q := range m.items {
		if !q.running && !q.held && !m.shut[q.collection] && !q.runAt.After(m.clock.now()) {
			ready = append(ready, q)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return slices.MinFunc(ready, func(x, y *queued) int {
		if x.priority < 0 || y.priority < 0 {
			return cmp.Or(cmp.Compare(x.priority, y.priority), cmp.Compare(x.id, y.id))
		}
		return cmp.Or(
			cmp.Compare(m.served[x.collection], m.served[y.collection]), cmp.Compare(x.collection, y.collection),
			x.made.Add(time.Duration(x.priority)*time.Minute).Compare(y.made.Add(time.Duration(y.priority)*time.Minute)),
			cmp.Compare(x.id, y.id))
	})
}

func (m *turnModel) claim(t *rapid.T) {
	hint := m.some(t, func(*queued) bool { return true }).id
	want := m.turn()
	m.claims++
	c, err := m.s.Claim(t.Context(), registry.ClaimRequest{
		RequestID: fmt.Sprint(m.claims), Stage: registry.Expand, Hint: hint, Worker: "w", Lease: modelLease,
	})
	var refused *registry.NotClaimable
	if errors.As(err, &refused) {
		if want != nil {
			t.Fatalf("refused because %s, but it is the turn of %+v", refused.Reason, *want)
		}
		return
	}
	m.must(t, err)
	if want == nil || c.Item.ID != want.id {
		t.Fatalf("claimed %s of %s with priority %d, want %+v", c.Item.ID, c.Item.Collection, c.Item.Priority, want)
	}
	want.running, want.attempt = true, c.Lease.N
	m.served[want.collection] = m.claims
}

// settle ends an attempt so that the item comes again, at once or later, or is done with the stage.
func (m *turnModel) settle(t *rapid.T) {
	q := m.some(t, func(q *queued) bool { return q.running })
	se := registry.Settlement{
		Lease: registry.Lease{ItemID: q.id, N: q.attempt}, Delay: 30 * time.Minute,
		Outcome: rapid.SampledFrom([]registry.Outcome{registry.OutcomeReleased, registry.OutcomeSnooze, registry.OutcomeDone}).Draw(t, "outcome"),
	}
	_, err := m.s.Settle(t.Context(), se)
	m.must(t, err)
	q.running, q.runAt = false, m.clock.now()
	switch se.Outcome {
	case registry.OutcomeSnooze:
		q.runAt = q.runAt.Add(se.Delay)
	case registry.OutcomeDone:
		m.forget(q)
	default:
	}
}

func (m *turnModel) forget(q *queued) {
	m.items = slices.DeleteFunc(m.items, func(x *queued) bool { return x == q })
}

func (m *turnModel) prioritise(t *rapid.T) {
	q := m.some(t, func(*queued) bool { return true })
	p := rapid.SampledFrom([]int{-5, -1, 0, 50, 200}).Draw(t, "priority")
	_, err := m.s.Command(t.Context(), registry.Command{ItemID: q.id, Act: registry.ActPriority, Priority: &p, Actor: "admin"})
	m.must(t, err)
	q.priority = p
}

// hold puts a hold on one item, or takes it away. A batch is held as an item or as a batch.
func (m *turnModel) hold(t *rapid.T) {
	q := m.some(t, func(*queued) bool { return true })
	scope := registry.HoldBatch
	if q.id[len(q.id)-1] < '8' { // the same one when it is taken away
		scope = registry.HoldItem
	}
	if q.held {
		m.must(t, m.s.RemoveHold(t.Context(), scope, q.id, "admin"))
	} else {
		m.must(t, m.s.AddHold(t.Context(), registry.Hold{Scope: scope, Key: q.id, Reason: "look", Actor: "admin"}))
	}
	q.held = !q.held
}

func (m *turnModel) shutCollection(t *rapid.T) {
	name := rapid.SampledFrom(turnCollections).Draw(t, "collection")
	if m.shut[name] {
		m.must(t, m.s.RemoveHold(t.Context(), registry.HoldCollection, name, "admin"))
	} else {
		m.must(t, m.s.AddHold(t.Context(), registry.Hold{Scope: registry.HoldCollection, Key: name, Reason: "look", Actor: "admin"}))
	}
	m.shut[name] = !m.shut[name]
}

// due offers what is due: that decides nothing, and nothing that cannot run is offered.
func (m *turnModel) due(t *rapid.T) {
	wakes, err := m.s.Due(t.Context(), registry.DueRequest{Window: 3, Renudge: time.Minute, RenudgeMax: time.Hour})
	m.must(t, err)
	for _, w := range wakes {
		for _, q := range m.items {
			if q.id == w.ItemID && (q.running || q.held || m.shut[q.collection] || q.runAt.After(m.clock.now())) {
				t.Fatalf("offered %+v", *q)
			}
		}
	}
}

// drain releases all holds and lets everything have its turn.
func (m *turnModel) drain(t *rapid.T) {
	holds, err := m.s.Holds(t.Context())
	m.must(t, err)
	for _, h := range holds {
		m.must(t, m.s.RemoveHold(t.Context(), h.Scope, h.Key, "admin"))
	}
	m.shut = map[string]bool{}
	for _, q := range m.items {
		q.held = false
	}
	m.clock.pass(time.Hour)
	for m.turn() != nil {
		m.claim(t)
	}
	for _, q := range m.items {
		if !q.running {
			t.Fatalf("%+v never had its turn", *q)
		}
	}
	checkReady(t.Context(), t, m.s)
}
