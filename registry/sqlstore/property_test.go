package sqlstore_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

const modelLease = 30 * time.Second

// modelled is what the model knows of an item.
type modelled struct {
	Stage   registry.Stage
	Status  registry.Status
	Attempt int64
	Tries   int
	Retries int
	runAt   time.Time
	until   time.Time // of its lease, when it runs
	action  registry.Action
	parent  string
	jobs    bool // it failed because its jobs did
}

// model is a store beside a small picture of what must be in it.
type model struct {
	t     *rapid.T
	s     *sqlstore.Store
	clock *clock
	items map[string]*modelled
	order []string
	held  bool
	stale []registry.Lease // attempts that are over
	calls int
}

// TestProperties applies random operations to a store and compares every item with a model after
// each.
func TestProperties(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		m := &model{t: rt, clock: newClock(), items: map[string]*modelled{}}
		s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.SQLiteAt(t, filepath.Join(dir, fmt.Sprint(n))), Now: m.clock.now})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		m.s = s
		m.must(s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"))
		m.submit(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"submit":  m.submit,
			"claim":   m.claim,
			"claim2":  m.claim, // more often than the rest
			"settle":  m.settle,
			"settle2": m.settle,
			"zombie":  m.zombie,
			"renew":   m.renew,
			"time":    m.time,
			"requeue": m.requeue,
			"cancel":  m.cancel,
			"abort":   m.abort,
			"delete":  m.remove,
			"update":  m.updateReport,
			"hold":    m.hold,
		})
		m.checkFilters(rt)
	})
}

func (m *model) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// check compares all items with the model, and with what always holds.
func (m *model) check(t *rapid.T) {
	registrytest.CheckInvariants(t, m.s)
	checkReady(t.Context(), t, m.s)
	page, err := m.s.Items(t.Context(), registry.ItemQuery{Limit: 500})
	m.must(err)
	rows := slices.DeleteFunc(page.Rows, func(it registry.WorkItem) bool { return it.Action == registry.Tidy })
	if len(rows) != len(m.order) {
		t.Fatalf("%d items, want %d", len(rows), len(m.order))
	}
	for _, it := range rows {
		id, want := it.ID, m.items[it.ID]
		got := modelled{Stage: it.Stage, Status: it.Status, Attempt: it.Attempt, Tries: it.Tries, Retries: it.RetryCount}
		if got != (modelled{Stage: want.Stage, Status: want.Status, Attempt: want.Attempt, Tries: want.Tries, Retries: want.Retries}) {
			t.Fatalf("item %s is %+v, want %+v", id, got, *want)
		}
	}
}

// checkFilters: no filter is refused as taking nothing that takes an event which there is.
func (m *model) checkFilters(t *rapid.T) {
	events, err := m.s.Feed(t.Context(), registry.FeedQuery{Limit: 500})
	m.must(err)
	for _, e := range events {
		p, ok := e.Position()
		if !ok {
			continue
		}
		exactly := registry.FeedFilter{Types: []string{e.Type}, Actions: []registry.Action{p.Action}, States: []registry.State{registry.StateOf(p)}}
		if err := exactly.Check(); err != nil || !exactly.Takes(e) {
			t.Fatalf("the filter of event %+v alone: %v", e, err)
		}
	}
}

func (m *model) submit(t *rapid.T) {
	r, err := m.s.Submit(t.Context(), registry.Submission{Collection: "c"})
	m.must(err)
	m.add(r.BatchID, &modelled{Stage: registry.Expand, Status: registry.Pending, action: registry.Batch})
}

func (m *model) add(id string, it *modelled) {
	it.runAt = m.clock.now()
	m.items[id] = it
	m.order = append(m.order, id)
}

// open counts an item's open prerequisites, as a recount would.
func (m *model) open(id string) (n int) {
	for _, it := range m.items {
		if it.parent == id && !it.Status.Settled() {
			n++
		}
	}
	return n
}

func (m *model) ready(id string) bool {
	it := m.items[id]
	return !m.held && it.Status == registry.Pending && !it.runAt.After(m.clock.now()) &&
		(it.Stage == registry.Expand || m.open(id) == 0)
}

// some draws one of the items that fit; "" when there is none.
func (m *model) some(t *rapid.T, fits func(it *modelled) bool) string {
	var all []string
	for _, id := range m.order {
		if fits(m.items[id]) {
			all = append(all, id)
		}
	}
	if len(all) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(all).Draw(t, "item")
}

func (m *model) claim(t *rapid.T) {
	stage := m.items[m.some(t, func(it *modelled) bool { return it.Status == registry.Pending })].Stage
	m.calls++
	c, err := m.s.Claim(t.Context(), registry.ClaimRequest{
		RequestID: fmt.Sprint(m.calls), Stage: stage, Hint: rapid.SampledFrom(m.order).Draw(t, "hint"), Lease: modelLease, MaxAttempts: 3,
		// Each loss is one of a worker's only item, and so charged.
		Worker: fmt.Sprintf("w-%d", m.calls),
	})
	var refused *registry.NotClaimable
	if errors.As(err, &refused) {
		for _, id := range m.order {
			if m.items[id].Stage == stage && m.ready(id) {
				t.Fatalf("refused because %s, but %s is ready", refused.Reason, id)
			}
		}
		return
	}
	m.must(err)
	it := m.items[c.Item.ID]
	if !m.ready(c.Item.ID) || it.Stage != stage {
		t.Fatalf("claimed %s, which is %+v", c.Item.ID, *it)
	}
	it.Status, it.Attempt, it.until = registry.Running, it.Attempt+1, m.clock.now().Add(modelLease)
	if c.Lease != (registry.Lease{ItemID: c.Item.ID, N: it.Attempt}) {
		t.Fatalf("lease %+v", c.Lease)
	}
	if stage == registry.Expand {
		m.expand(t, c.Lease)
	}
}

// expand adds some rows, of which some may be there already.
func (m *model) expand(t *rapid.T, l registry.Lease) {
	var jobs []registry.NewJob
	for row := range rapid.IntRange(0, 3).Draw(t, "rows") {
		j := registry.NewJob{Line: int64(row + 1)}
		if row == 2 {
			j.Fault = "bad"
		}
		jobs = append(jobs, j)
	}
	added, err := m.s.AddJobs(t.Context(), l, jobs)
	m.must(err)
	page, err := m.s.Items(t.Context(), registry.ItemQuery{ParentID: l.ItemID})
	m.must(err)
	for _, it := range page.Rows {
		if m.items[it.ID] != nil {
			continue
		}
		added--
		status := registry.Pending
		if it.Row == 3 {
			status = registry.Failed
		}
		m.add(it.ID, &modelled{Stage: registry.Estimate, Status: status, action: registry.Ingest, parent: l.ItemID})
	}
	if added != 0 {
		t.Fatalf("%d rows more were added than are there", added)
	}
}

func (m *model) settle(t *rapid.T) {
	id := m.some(t, func(it *modelled) bool { return it.Status == registry.Running })
	it := m.items[id]
	s := registry.Settlement{
		Lease: registry.Lease{ItemID: id, N: it.Attempt}, MaxAttempts: 3, Delay: rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "delay"),
		Outcome: rapid.SampledFrom([]registry.Outcome{
			registry.OutcomeDone, registry.OutcomeDone, registry.OutcomeRetry, registry.OutcomeSnooze, registry.OutcomeReleased, registry.OutcomeFailed,
		}).Draw(t, "outcome"),
	}
	next := m.next(it.Stage)
	var v registry.Verdict
	var c *registry.Claim
	var err error
	if rapid.Bool().Draw(t, "continues") {
		m.calls++
		v, c, err = m.s.SettleAndClaim(t.Context(), s, registry.ClaimRequest{
			RequestID: fmt.Sprint(m.calls), Stage: next, Lease: modelLease, MaxAttempts: 3, Worker: fmt.Sprintf("w-%d", m.calls),
		})
	} else {
		v, err = m.s.Settle(t.Context(), s)
	}
	m.must(err)
	m.stale = append(m.stale, s.Lease)
	it.Status, it.runAt = registry.Pending, m.clock.now()
	switch s.Outcome {
	case registry.OutcomeDone:
		m.advance(id)
	case registry.OutcomeRetry:
		it.Tries++
		it.runAt = it.runAt.Add(s.Delay)
		m.usedUp(id)
	case registry.OutcomeSnooze:
		it.runAt = it.runAt.Add(s.Delay)
	case registry.OutcomeFailed:
		it.Status, it.jobs = registry.Failed, false
	case registry.OutcomeReleased, registry.OutcomeLost, registry.OutcomeWithdrawn:
	}
	if v.Stage != it.Stage || v.Status != it.Status || v.Tries != it.Tries {
		t.Fatalf("verdict %+v, want %+v", v, *it)
	}
	if c != nil {
		m.continued(t, id, next, *c)
	}
	again, err := m.s.Settle(t.Context(), s)
	m.must(err)
	if again != v {
		t.Fatalf("the repeat's verdict is %+v, want %+v", again, v)
	}
}

// next returns the stage after one on its route.
func (m *model) next(stage registry.Stage) registry.Stage {
	action, _ := registry.ActionOf(stage)
	route, _ := registry.RouteOf(action)
	next, _ := route.With(nil).Next(stage)
	return next
}

// continued notes that an item went on to its next stage without waiting there.
func (m *model) continued(t *rapid.T, id string, stage registry.Stage, c registry.Claim) {
	it := m.items[id]
	if it.Stage != stage || !m.ready(id) {
		t.Fatalf("%s continued at %s, but it is %+v", id, stage, *it)
	}
	for _, other := range m.order {
		if other != id && m.items[other].Stage == stage && m.ready(other) {
			t.Fatalf("%s continued at %s, where %s is ready", id, stage, other)
		}
	}
	it.Status, it.Attempt, it.until = registry.Running, it.Attempt+1, m.clock.now().Add(modelLease)
	if c.Lease != (registry.Lease{ItemID: id, N: it.Attempt}) {
		t.Fatalf("lease %+v", c.Lease)
	}
}

// usedUp fails an item whose tries are used up, or lets it go on from where nothing fails.
func (m *model) usedUp(id string) {
	it := m.items[id]
	switch {
	case it.Tries < 3:
	case it.Stage == registry.Estimate:
		it.runAt = m.clock.now()
		m.advance(id)
	default:
		it.Status, it.jobs = registry.Failed, false
	}
}

func (m *model) advance(id string) {
	it := m.items[id]
	it.Tries = 0
	route, _ := registry.RouteOf(it.action)
	route = route.With(nil)
	if next, ok := route.Next(it.Stage); ok {
		it.Stage = next
		return
	}
	it.Status = registry.Completed
	for _, job := range m.items {
		if job.parent == id && job.Status != registry.Completed {
			it.Status, it.jobs = registry.Failed, true
		}
	}
}

// zombie tries to write under an attempt that is over.
func (m *model) zombie(t *rapid.T) {
	if len(m.stale) == 0 {
		t.Skip("there is none")
	}
	l := rapid.SampledFrom(m.stale).Draw(t, "lease")
	if _, err := m.s.SaveResult(t.Context(), l, "zombie", []byte(`1`)); !errors.Is(err, registry.ErrClaimLost) {
		t.Fatalf("a zombie wrote: %v", err)
	}
	lost, err := m.s.Renew(t.Context(), registry.RenewRequest{Lease: modelLease, Beats: []registry.Beat{{Lease: l, DoneBytes: 1}}})
	m.must(err)
	if len(lost.Lost) != 1 {
		t.Fatalf("a zombie renewed %+v", l)
	}
}

func (m *model) renew(t *rapid.T) {
	id := m.some(t, func(it *modelled) bool { return it.Status == registry.Running })
	lost, err := m.s.Renew(t.Context(), registry.RenewRequest{
		Lease: modelLease, Beats: []registry.Beat{{Lease: registry.Lease{ItemID: id, N: m.items[id].Attempt}, DoneBytes: -1, DoneFiles: -1}},
	})
	m.must(err)
	if len(lost.Lost) != 0 {
		t.Fatalf("lost %+v", lost)
	}
	m.items[id].until = m.clock.now().Add(modelLease)
}

// time passes, and the sweep looks often enough not to be quiet.
func (m *model) time(t *rapid.T) {
	for range rapid.IntRange(1, 8).Draw(t, "looks") {
		m.clock.pass(modelLease / 3)
		lost, err := m.s.Sweep(t.Context(), modelLease)
		m.must(err)
		for _, l := range lost {
			it := m.items[l.ItemID]
			if it.Status != registry.Running || it.Attempt != l.N || !it.until.Before(m.clock.now()) {
				t.Fatalf("lost %+v, which is %+v", l, *it)
			}
			m.stale = append(m.stale, l)
			it.Status, it.runAt = registry.Pending, m.clock.now()
			it.Tries++ // so few losses cost no time
			m.usedUp(l.ItemID)
		}
		for _, id := range m.order {
			if it := m.items[id]; it.Status == registry.Running && it.until.Before(m.clock.now()) {
				t.Fatalf("item %s was not taken away", id)
			}
		}
	}
}

func (m *model) command(t *rapid.T, id string, act registry.Act, from registry.Stage) {
	_, err := m.s.Command(t.Context(), registry.Command{ItemID: id, Act: act, From: from, Actor: "admin", Confirmed: true})
	m.must(err)
	m.items[id].Tries, m.items[id].runAt = 0, m.clock.now()
}

func (m *model) requeue(t *rapid.T) {
	// What failed before a worker had it is a row that was refused, which never runs. Of a batch
	// whose jobs failed, these are requeued.
	id := m.some(t, func(it *modelled) bool {
		return it.Status == registry.Failed && it.Attempt > 0 && !it.jobs || it.Status == registry.Cancelled
	})
	it := m.items[id]
	route, _ := registry.RouteOf(it.action)
	route = route.With(nil)
	to := rapid.SampledFrom(route.UpTo(it.Stage)).Draw(t, "stage")
	m.command(t, id, registry.ActRequeue, to)
	it.Stage, it.Status = to, registry.Pending
	it.Retries++
}

func (m *model) cancel(t *rapid.T) {
	id := m.some(t, func(it *modelled) bool {
		return (it.Status == registry.Pending || it.Status == registry.Running) && it.action == registry.Ingest
	})
	m.stop(t, id, registry.ActCancel, registry.Cancelled)
}

func (m *model) abort(t *rapid.T) {
	id := m.some(t, func(it *modelled) bool {
		return !slices.Contains([]registry.Status{registry.Completed, registry.Aborted, registry.Deleted}, it.Status) && it.action == registry.Ingest
	})
	m.stop(t, id, registry.ActAbort, registry.Aborted)
}

// stop ends an item; what it was running under is over.
func (m *model) stop(t *rapid.T, id string, act registry.Act, to registry.Status) {
	it := m.items[id]
	if it.Status == registry.Running {
		m.stale = append(m.stale, registry.Lease{ItemID: id, N: it.Attempt})
	}
	m.command(t, id, act, "")
	it.Status = to
}

// remove deletes what failed or was stopped.
func (m *model) remove(t *rapid.T) {
	id := m.some(t, func(it *modelled) bool {
		return slices.Contains([]registry.Status{registry.Failed, registry.Cancelled, registry.Aborted}, it.Status) && it.action == registry.Ingest
	})
	m.command(t, id, registry.ActDelete, "")
	m.items[id].Status = registry.Deleted
}

func (m *model) updateReport(t *rapid.T) {
	id := m.some(t, func(it *modelled) bool { return it.Status == registry.Failed && it.Stage == registry.Report })
	m.command(t, id, registry.ActUpdateReport, "")
	m.items[id].Status = registry.Pending
}

func (m *model) hold(t *rapid.T) {
	if m.held {
		m.must(m.s.RemoveHold(t.Context(), registry.HoldAll, "", "admin"))
	} else {
		m.must(m.s.AddHold(t.Context(), registry.Hold{Scope: registry.HoldAll, Actor: "admin"}))
	}
	m.held = !m.held
}
