// Package work is the Registry's durable work engine. Items go from stage to stage along their
// route. Each step runs under an attempt with a lease. The engine keeps items, routes, attempts,
// leases, lanes, holds, locks, requirements, room on volumes and the feed of events. It decides
// what becomes of an item.
//
// The engine knows nothing of deposits, objects or messages. Those subjects lie above it: they
// insert items, write in its transactions and join them through [Hooks]. Its statements name no
// table of theirs.
//
// Every method is one transaction. Methods that take a lease are fenced by it. The conformance kit
// is work/worktest.
package work

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Engine is the work engine of one database. Its methods may be called concurrently.
type Engine struct {
	db    *sqldb.DB
	hooks Hooks
	tx    Tx     // the writer's: only one transaction is open at a time
	notes []byte // the secret from which items' note keys are derived
	woken chan struct{}

	renews, settles, claims, others *sqldb.Kind

	slotWaits atomic.Int64 // calls of AwaitReady that wait while there are limits: an item that ends may free a slot

	news  sqldb.Signal // an event was written
	ready sqldb.Signal // an item of a function may have become ready
	taken sqldb.Signal // an admin took attempts away

	settled waiters // callers that wait for an item to settle
}

// Hooks are the functions through which subjects join the engine's transactions. The engine calls a
// hook in the transaction that makes the change; an error rolls the change back. Several hooks of a
// kind are called in their order. All hooks must be set.
type Hooks struct {
	// Settled handles an item that settled.
	Settled []func(*Tx, Shift) error
	// SettledTogether handles items that settled together, after Settled has handled each.
	SettledTogether []func(*Tx, []Shift) error
	// Paused handles an item that left its worker and is pending again in its stage.
	Paused []func(*Tx, Shift) error
	// Outcome judges the results that a worker settles an item with, before anything is written. It
	// returns ErrInvalid for results that the subject cannot apply.
	Outcome []func(it registry.WorkItem, results map[string]json.RawMessage) error
	// Applied reports whether SettledTogether applies a result of an item. Such a result is in the
	// item's map then, and is not stored.
	Applied func(it registry.WorkItem, name string) bool
	// Stopped cleans up what an aborted or deleted item left behind.
	Stopped func(t *Tx, it registry.WorkItem, actor string) error
	// Followed reports whether something follows when the item leaves its present stage. Such an item
	// does not continue in its next stage within its settlement. It is called for each item that
	// goes on, so it must not ask the database.
	Followed func(it registry.WorkItem) bool
	// Advanced handles a followed item that went on to its next stage.
	Advanced func(*Tx, Shift) error
	// Requeued handles an item that a person requeued. it is the item before the change.
	Requeued []func(t *Tx, it registry.WorkItem, to Change) error
	// Started handles an item of a graph that was sealed: from now on the item may run.
	Started func(t *Tx, it registry.WorkItem) error
	// Family carries out an act on a batch on the batch's jobs.
	Family func(t *Tx, batch registry.WorkItem, c registry.Command) error
	// Consequences returns one statement for each irreversible effect of an act. The engine asks for
	// confirmation before it carries the act out.
	Consequences func(t *Tx, it registry.WorkItem, act registry.Act) ([]registry.Statement, error)
	// Wanted reports whether a subject still needs a batch or one of its jobs although its
	// retention has ended.
	Wanted func(t *Tx, batch registry.WorkItem) (bool, error)
	// Purged deletes a subject's rows about an item whose own rows are being deleted.
	Purged []func(t *Tx, it registry.WorkItem) error
	// Reported returns the counts of the stored report of a batch's present closing: the jobs that
	// did not complete (bad), those of them whose objects are preserved (safe), and all jobs.
	// stored is false if there is no such report.
	Reported func(t *Tx, batch registry.WorkItem) (bad, safe, all int64, stored bool, err error)
	// Committed returns the object and version that an item has announced or stored. The version is
	// 0 if the item concerns the whole object. known is false if there is none.
	Committed func(t *Tx, itemID string) (object string, version int, known bool, err error)
	// OneByOne reports whether releasing a hold on the collection releases its items one by one.
	OneByOne func(t *Tx, collection string) (bool, error)
	// RevokedToken is an SQL condition: the token of attempt a was revoked. The engine puts it into
	// the statements that check a lease, so that the check costs no statement of its own.
	RevokedToken string
	// RevokedTokens returns the names of those tokens that were revoked, by id.
	RevokedTokens func(t *Tx, ids []string) (names map[string]string, err error)
	// Reclaimed ends the leases that a subject gave to processes. The engine calls it when no other
	// process lives.
	Reclaimed func(t *Tx) error

	acts map[registry.Act]func(t *Tx, it registry.WorkItem, c registry.Command) error
}

// Act registers the function that carries out an act which belongs to a subject.
func (h *Hooks) Act(act registry.Act, do func(t *Tx, it registry.WorkItem, c registry.Command) error) {
	if h.acts == nil {
		h.acts = map[registry.Act]func(t *Tx, it registry.WorkItem, c registry.Command) error{}
	}
	h.acts[act] = do
}

// New returns the engine of a database. It creates the database's secret on first use.
// [Engine.Start] starts the engine.
func New(ctx context.Context, db *sqldb.DB) (*Engine, error) {
	e := &Engine{db: db, woken: make(chan struct{}, 1)}
	e.tx.store = e
	// Renewals come first, so that no lease expires behind other work (R25). Settles come before
	// claims, because they may free the items and locks that claims want (R11).
	e.renews = &sqldb.Kind{Order: 0}
	e.settles = &sqldb.Kind{Order: 1, Together: func(_ *sqldb.Tx, ws []*sqldb.Write) error { return e.tx.settleAll(ws) }}
	e.claims = &sqldb.Kind{Order: 2, Together: func(_ *sqldb.Tx, ws []*sqldb.Write) error { return e.tx.claimAll(ws) }}
	e.others = &sqldb.Kind{Order: 3}
	if err := e.loadNoteKey(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// Start starts the database's writer with the subjects' hooks. It must be called exactly once.
func (e *Engine) Start(ctx context.Context, hooks Hooks) {
	e.hooks = hooks
	e.db.Start(ctx, &e.tx)
}

// Write runs fn in a transaction and returns after the commit. If fn fails, Write rolls back and
// returns fn's error. fn may run twice.
func (e *Engine) Write(ctx context.Context, fn func(*Tx) error) error {
	return e.queue(ctx, e.others, fn)
}

// errDryRun undoes a dry run.
var errDryRun = errors.New("this was a dry run")

// WriteOrTry is as Write. If dryRun is set, fn's writes are undone although it succeeded.
func (e *Engine) WriteOrTry(ctx context.Context, dryRun bool, fn func(*Tx) error) error {
	err := e.Write(ctx, func(t *Tx) error {
		if err := fn(t); err != nil || !dryRun {
			return err
		}
		return errDryRun
	})
	if errors.Is(err, errDryRun) {
		return nil
	}
	return err
}

func (e *Engine) queue(ctx context.Context, kind *sqldb.Kind, fn func(*Tx) error) error {
	return e.db.Queue(&sqldb.Write{Ctx: ctx, Kind: kind, Do: func(*sqldb.Tx) error { return fn(&e.tx) }})
}

// Together returns a kind of writes of a subject. fn runs several of them with common statements; see
// [sqldb.Kind]. They come last in a group, so that they stand together.
func (e *Engine) Together(fn func(t *Tx, ws []*sqldb.Write) error) *sqldb.Kind {
	return &sqldb.Kind{Order: 4, Together: func(_ *sqldb.Tx, ws []*sqldb.Write) error { return fn(&e.tx, ws) }}
}

// Woken implements registry.Dispatching.
func (e *Engine) Woken() <-chan struct{} { return e.woken }

func (e *Engine) wake() {
	select {
	case e.woken <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// Tx is the open transaction, with the engine's state for it.
type Tx struct {
	*sqldb.Tx
	store  *Engine
	wake   bool     // an item became due, or the relay may offer more
	asked  bool     // an item of a function may have become ready
	wrote  bool     // an event
	taken  bool     // an attempt was withdrawn; its worker must learn that
	gone   []string // items that settled
	Audit  string   // id of the bulk act that the next events belong to
	events [][]any  // noted, not yet written
	took   []took   // measured, to be told if the transaction commits

	// Answers that many writes of a group need and few change.
	promoted  bool            // no item is due and waits to be made ready
	open      map[Lane]bool   // lanes known to be open
	onWorkers []registry.Hold // the holds on workers; nil: not read yet
	limited   bool            // there are limits; known if promoted is
	limits    []registry.Limit
}

// Begin implements sqldb.TxState.
func (t *Tx) Begin(tx *sqldb.Tx) {
	*t = Tx{Tx: tx, store: t.store}
}

// Next implements sqldb.TxState.
func (t *Tx) Next() { t.Audit = "" }

// Part implements sqldb.TxState.
func (t *Tx) Part() (undo func()) {
	noted, measured := len(t.events), len(t.took)
	return func() {
		t.dropCached()
		t.events = t.events[:min(noted, len(t.events))]
		t.took = t.took[:min(measured, len(t.took))]
	}
}

// Flush implements sqldb.TxState.
func (t *Tx) Flush() error { return t.writeEvents() }

// Committed implements sqldb.TxState.
func (t *Tx) Committed() {
	if t.wake {
		t.store.wake()
	}
	if t.asked {
		t.store.ready.Notify()
	}
	if t.wrote {
		t.store.news.Notify()
	}
	if t.taken {
		t.store.taken.Notify()
	}
	t.store.settled.notify(t.gone)
	for _, m := range t.took {
		m.by.Observe(m.time, m.labels...)
	}
}

// took is a duration that the transaction measured.
type took struct {
	by     metrics.Timer
	time   time.Duration
	labels []string
}

// Took tells how long something took, once the transaction has committed.
func (t *Tx) Took(by metrics.Timer, d time.Duration, labels ...string) {
	t.took = append(t.took, took{by, d, labels})
}

// attemptEnded measures the attempt of a running item.
func (t *Tx) attemptEnded(it registry.WorkItem, o registry.Outcome) {
	t.Took(metrics.Attempt, sqldb.FromMicros(t.Now).Sub(it.UpdatedAt), string(it.Stage), string(o))
}

// dropCached drops the cached answers, so that the transaction reads them again.
func (t *Tx) dropCached() { t.promoted, t.open, t.onWorkers, t.limits = false, nil, nil, nil }

// Try runs one of several parts of a transaction. If the part is refused, Try undoes the part's
// writes and returns the refusal first; the transaction goes on. The second error ends the whole
// transaction.
func (t *Tx) Try(part func() error) (refused, err error) {
	refused, err = t.Tx.Part(part)
	if err == nil && refused != nil && !isRefusal(refused) {
		return nil, refused
	}
	return refused, err
}

// loadNoteKey reads the secret from which the items' note keys are derived, and creates it on first
// use. The secret is part of the database, so backups contain it. If several processes start at
// once, all use the same one.
func (e *Engine) loadNoteKey(ctx context.Context) error {
	drawn := make([]byte, sha256.Size)
	_, _ = rand.Read(drawn) // it never fails
	text, err := e.db.Setting(ctx, "note-key", ActorRegistry, hex.EncodeToString(drawn))
	if err == nil {
		e.notes, err = hex.DecodeString(text)
	}
	if err == nil && len(e.notes) != sha256.Size {
		err = fmt.Errorf("it has %d bytes, not %d", len(e.notes), sha256.Size)
	}
	if err != nil {
		return fmt.Errorf("read the key of interim data: %w", err)
	}
	return nil
}

// NoteKey returns the key of an item's interim data. The key of one item does not reveal another's.
func (e *Engine) NoteKey(itemID string) []byte {
	h := hmac.New(sha256.New, e.notes)
	h.Write([]byte("interim data of item " + itemID))
	return h.Sum(nil)
}
