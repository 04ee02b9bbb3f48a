// Package work is the Registry's engine: items that go from stage to stage, each step under an
// attempt with a lease. It keeps routes, attempts, leases, lanes, holds, locks, requirements, room
// on volumes, and the feed of events, and it decides what becomes of an item. What items are about
// (deposits, objects, messages) is for the subjects above it: they make items, write in its
// transactions, and are asked at a few [Hooks].
//
// Every method is one transaction. Methods that take a lease are fenced by it. The conformance kit
// is work/worktest.
package work

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Engine is the engine over a database.
type Engine struct {
	db    *sqldb.DB
	hooks Hooks
	tx    Tx     // the writer's: one transaction is open at a time
	notes []byte // that items' note keys are made of
	woken chan struct{}

	renews, settles, claims, others *sqldb.Kind

	news  sqldb.Bell // an event was written
	taken sqldb.Bell // an admin took attempts away
}

// Hooks are where subjects join the engine's transactions. Each is called in the transaction that
// makes true what it is told; its error undoes that. Several of a kind are called in their order.
type Hooks struct {
	// Settled sees to what a subject has to do with an item that settled.
	Settled []func(*Tx, Shift) error
	// Stopped sees to what an item that was given up left behind.
	Stopped func(t *Tx, it registry.WorkItem, actor string) error
	// Requeued is told of an item that somebody has sent back, as it was before, and of where it
	// goes.
	Requeued []func(t *Tx, it registry.WorkItem, to Change) error
	// Started is told of an item of a graph that was sealed: it may run from now on.
	Started func(t *Tx, it registry.WorkItem) error
	// Family carries an act on a batch out on its jobs.
	Family func(t *Tx, batch registry.WorkItem, c registry.Command) error
	// Consequences are what an act cannot take back, a sentence each: nothing is done before
	// somebody confirms them.
	Consequences func(t *Tx, it registry.WorkItem, act registry.Act) ([]string, error)
	// Wanted says that a subject still needs a batch, or a job of it, although it was kept for its
	// time.
	Wanted func(t *Tx, batch registry.WorkItem) (bool, error)
	// Purged takes away what a subject keeps of an item whose rows go for good.
	Purged []func(t *Tx, it registry.WorkItem) error
	// Reported counts a batch's jobs as its report of the present closing did: those that did not
	// complete, those of them whose objects are preserved, and all; stored is false when there is
	// no such report.
	Reported func(t *Tx, batch registry.WorkItem) (bad, safe, all int64, stored bool, err error)
	// Committed is the object that an item has announced or stored something of, with the version,
	// 0 when all of the object is meant; known is false when there is none.
	Committed func(t *Tx, itemID string) (object string, version int, known bool, err error)
	// OneByOne says that a hold on a collection is released item by item.
	OneByOne func(t *Tx, collection string) (bool, error)
	// RevokedToken is an SQL condition: the token of attempt a was revoked. Statements contain it,
	// so that the fence costs no statement of its own.
	RevokedToken string
	// RevokedTokens returns the names of those tokens that were revoked, by their ids.
	RevokedTokens func(t *Tx, ids []string) (names map[string]string, err error)
	// Reclaimed ends the leases that a subject gave to other processes: none of them lives.
	Reclaimed func(t *Tx) error

	acts map[registry.Act]func(t *Tx, it registry.WorkItem, c registry.Command) error
}

// Act has an act of admins carried out by a subject.
func (h *Hooks) Act(act registry.Act, do func(t *Tx, it registry.WorkItem, c registry.Command) error) {
	if h.acts == nil {
		h.acts = map[registry.Act]func(t *Tx, it registry.WorkItem, c registry.Command) error{}
	}
	h.acts[act] = do
}

// New makes the engine of a database and draws what its databases have drawn once. [Engine.Start]
// starts it.
func New(ctx context.Context, db *sqldb.DB) (*Engine, error) {
	e := &Engine{db: db, woken: make(chan struct{}, 1)}
	e.tx.store = e
	// No lease shall run out behind other work (R25), and settles come before claims, whose items
	// and locks they may be about to free (R11).
	e.renews = &sqldb.Kind{Order: 0}
	e.settles = &sqldb.Kind{Order: 1, Together: func(_ *sqldb.Tx, ws []*sqldb.Write) error { return e.tx.settleAll(ws) }}
	e.claims = &sqldb.Kind{Order: 2, Together: func(_ *sqldb.Tx, ws []*sqldb.Write) error { return e.tx.claimAll(ws) }}
	e.others = &sqldb.Kind{Order: 3}
	if err := e.loadNoteKey(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// Start starts the database's writer, with what the subjects hang in. It is called once.
func (e *Engine) Start(ctx context.Context, hooks Hooks) {
	e.hooks = hooks
	e.db.Start(ctx, &e.tx)
}

// Write runs fn in a transaction and returns when it is committed, or fn's error when it was rolled
// back. fn may run twice.
func (e *Engine) Write(ctx context.Context, fn func(*Tx) error) error {
	return e.queue(ctx, e.others, fn)
}

func (e *Engine) queue(ctx context.Context, kind *sqldb.Kind, fn func(*Tx) error) error {
	return e.db.Queue(&sqldb.Write{Ctx: ctx, Kind: kind, Do: func(*sqldb.Tx) error { return fn(&e.tx) }})
}

// Woken implements registry.Dispatching.
func (e *Engine) Woken() <-chan struct{} { return e.woken }

func (e *Engine) wake() {
	select {
	case e.woken <- struct{}{}:
	default: // one is waiting already
	}
}

// Tx is the open transaction, with what the engine keeps beside it.
type Tx struct {
	*sqldb.Tx
	store  *Engine
	wake   bool    // a message became due, or the relay may offer more
	wrote  bool    // an event
	taken  bool    // an attempt, from a worker that shall hear of it
	Audit  string  // the bulk act that the events now written are a part of
	events [][]any // noted and not yet written

	// What many writes of a group ask, and only few of them change.
	promoted  bool            // nothing more becomes due by time
	open      map[Lane]bool   // lanes that have been opened, and not closed since
	onWorkers []registry.Hold // the holds on workers; nil: not looked up
}

// Begin implements sqldb.Above.
func (t *Tx) Begin(tx *sqldb.Tx) {
	*t = Tx{Tx: tx, store: t.store}
}

// Next implements sqldb.Above.
func (t *Tx) Next() { t.Audit = "" }

// Part implements sqldb.Above.
func (t *Tx) Part() (undo func()) {
	noted := len(t.events)
	return func() {
		t.dropCached()
		t.events = t.events[:min(noted, len(t.events))]
	}
}

// Flush implements sqldb.Above.
func (t *Tx) Flush() error { return t.writeEvents() }

// Committed implements sqldb.Above.
func (t *Tx) Committed() {
	if t.wake {
		t.store.wake()
	}
	if t.wrote {
		t.store.news.Ring()
	}
	if t.taken {
		t.store.taken.Ring()
	}
}

// dropCached makes the transaction look anew at what it keeps of answers.
func (t *Tx) dropCached() { t.promoted, t.open, t.onWorkers = false, nil, nil }

// Try runs one of several parts of a transaction. What the part was refused is returned first, with
// nothing left of its writes, and the others go on; the second error ends the whole transaction.
func (t *Tx) Try(part func() error) (refused, err error) {
	refused, err = t.Tx.Part(part)
	if err == nil && refused != nil && !isRefusal(refused) {
		return nil, refused
	}
	return refused, err
}
