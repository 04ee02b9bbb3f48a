package processes

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// batch is what several operations do in one transaction with common statements. It has the processes
// that they read, with all changes so far, and keeps back what they write until flush.
type batch struct {
	*work.Tx

	known map[registry.ProcessKey]*process // nil: there is none

	items     []work.NewItem
	needs     map[string][]work.Need // by item
	steps     [][]any
	events    [][]any
	created   []*process
	changed   []*process
	answered  []registry.WorkItem // whose results changed
	over      []string            // failed steps that nobody need see to any more
	postponed map[string][]string // timers with the calls that they wait for
}

// newBatch returns a batch, which reads the processes of the keys at once.
func newBatch(t *work.Tx, keys ...registry.ProcessKey) (*batch, error) {
	b := &batch{Tx: t, known: map[registry.ProcessKey]*process{}, needs: map[string][]work.Need{}, postponed: map[string][]string{}}
	ids := sqldb.IDsByKey[string]{}
	for _, key := range keys {
		if _, ok := b.known[key]; !ok {
			b.known[key] = nil
			ids.Add(key.Namespace, key.ProcessID)
		}
	}
	for namespace, of := range ids.All() {
		for some := range slices.Chunk(of, mostKeys) {
			if err := b.read(namespace, some); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// mostKeys is how many processes one query reads.
const mostKeys = 64

// read reads processes of a namespace. While PostgreSQL has no statistics of the table, it takes the
// index process_status to find those of a namespace, and looks at all of them for one id. It does
// not, if the namespace is a list and the id is not. So the query looks for each process by itself.
func (b *batch) read(namespace string, ids []string) error {
	query := selectColumns + `FROM (VALUES `
	args := []any{b.List([]string{namespace})}
	for n := sqldb.PowerOfTwo(len(ids)); len(args) <= n; {
		id := "" // no process has it
		if len(ids) >= len(args) {
			id = ids[len(args)-1]
		}
		if len(args) > 1 {
			query += ", "
		}
		args = append(args, id)
		query += fmt.Sprintf("(CAST($%d AS TEXT))", len(args))
	}
	query += `) AS v JOIN process p ON p.seq = (SELECT q.seq FROM process q WHERE ` + b.Among("q.namespace") + ` AND q.id = v.column1) ` + joinTimer
	found, err := sqldb.Collect(b.Ask(query, args...), "read processes", scanProcess)
	for _, p := range found {
		b.known[p.ProcessKey] = p
	}
	return err
}

// load returns a process, or ErrNotFound.
func (b *batch) load(key registry.ProcessKey) (*process, error) {
	if _, ok := b.known[key]; !ok {
		if err := b.read(key.Namespace, []string{key.ProcessID}); err != nil {
			return nil, err
		}
	}
	p := b.known[key]
	if p == nil {
		return nil, registry.ErrNotFound
	}
	return p, nil
}

// insertProcess, updateProcess, insertEvent and insertStep write rows of processes.
var (
	insertProcess = sqldb.InsertInto(`INSERT INTO process (namespace, id, seq, collection, status, previous_status, status_changed_at, detail, corrupted_by,
		corrupted_kind, context, state, metadata, last_event_id, steps, timer_item, tail_item, created_by, created_at)`,
		`($1, $2, $3, $4, $5, '', $6, '', '', '', '', $7, $8, $9, $10, $11, $12, $13, $6)`)
	updateProcess = sqldb.UpdateFrom(`UPDATE process SET status = v.column2, previous_status = v.column3, status_changed_at = v.column4, detail = v.column5,
		corrupted_by = v.column6, corrupted_kind = v.column7, context = v.column8, state = v.column9, metadata = v.column10,
		last_event_id = v.column11, steps = v.column12, timer_item = v.column13, tail_item = v.column14`,
		`(CAST($1 AS BIGINT), $2, $3, CAST($4 AS BIGINT), $5, $6, $7, $8, $9, $10, CAST($11 AS BIGINT), CAST($12 AS BIGINT), $13, $14)`,
		`process.seq = v.column1`)
	insertEvent = sqldb.InsertInto(`INSERT INTO process_event (namespace, process_id, event_id, item_id, at, payload, metadata)`, `($1, $2, $3, $4, $5, $6, $7)`)
	insertStep  = sqldb.InsertInto(`INSERT INTO process_step (namespace, process_id, n, item_id)`, `($1, $2, $3, $4)`)
)

// flush writes what was kept back.
func (b *batch) flush() error {
	if err := b.writeSteps(); err != nil {
		return err
	}
	if err := b.writeCreated(); err != nil {
		return err
	}
	var rows [][]any
	for _, p := range b.changed {
		if !slices.Contains(b.created, p) {
			rows = append(rows, p.row())
		}
	}
	if err := b.InsertRows(updateProcess, rows); err != nil {
		return fmt.Errorf("write processes: %w", err)
	}
	if err := b.KeepResults(b.answered); err != nil {
		return err
	}
	if err := b.InsertRows(insertEvent, b.events); err != nil {
		return fmt.Errorf("add events of processes: %w", err)
	}
	if err := b.FailuresOver(b.over); err != nil {
		return err
	}
	postponed := b.postponed
	b.created, b.changed, b.answered, b.over, b.events, b.postponed = nil, nil, nil, nil, nil, map[string][]string{}
	return b.Behind(postponed)
}

func (b *batch) writeSteps() error {
	if len(b.items) == 0 {
		return nil
	}
	if err := b.Insert(b.items...); err != nil {
		return err
	}
	if err := b.RequireAll(b.needs); err != nil {
		return err
	}
	if err := b.InsertRows(insertStep, b.steps); err != nil {
		return fmt.Errorf("add steps of processes: %w", err)
	}
	b.items, b.steps = nil, nil
	clear(b.needs)
	return nil
}

func (b *batch) writeCreated() error {
	if len(b.created) == 0 {
		return nil
	}
	var seq int64
	if err := b.Get(`SELECT COALESCE(MAX(seq), 0) FROM process`, nil, &seq); err != nil {
		return fmt.Errorf("look for the last process: %w", err)
	}
	rows := make([][]any, len(b.created))
	for i, p := range b.created {
		p.seq = seq + int64(i) + 1
		rows[i] = []any{
			p.Namespace, p.ProcessID, p.seq, p.Collection, p.Status, sqldb.Micros(p.CreatedAt), string(p.State), string(p.Metadata), p.LastEventID,
			p.steps, p.timer, p.tail, p.CreatedBy,
		}
	}
	if err := b.InsertRows(insertProcess, rows); err != nil {
		return fmt.Errorf("add processes: %w", err)
	}
	return nil
}

// failureOver takes a failed step out of the list of failures, unless itemID is "". In that list
// each process in error has one step: the one that the error is due to.
func (b *batch) failureOver(itemID string) {
	if itemID != "" {
		b.over = append(b.over, itemID)
	}
}

// cancel cancels the items of steps, unless they are "" or have settled. The engine then calls
// settled for them, which reads the processes anew. So cancel flushes first, and forgets them: the
// caller must not change the process after it.
func (b *batch) cancel(actor, reason string, ids ...string) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
	if len(ids) == 0 {
		return nil
	}
	if err := b.flush(); err != nil {
		return err
	}
	clear(b.known)
	for _, id := range ids {
		it, err := b.Item(id)
		if err == nil && !it.Status.Settled() {
			err = b.CarryOut(it, registry.Command{ItemID: id, Act: registry.ActCancel, Actor: actor, Reason: reason})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// asking is one request of a group that adds a step or imports a process, with its answer.
type asking struct {
	request
	registry.ProcessKey

	// may returns why the request is refused, or nil. It only looks at what asks has read; p is nil if
	// there is no such process. do carries the request out and returns the item that answers it.
	may  func(all *asks, p *process) error
	do   func(b *batch, p *process) (itemID string, err error)
	of   string // the collection of a process to create
	info bool   // the answer is the process

	answer  registry.Answer
	process registry.ProcessInfo
}

func askingOf(w *sqldb.Write) *asking { return w.Of.(*asking) }

// asks is what the requests of a group need to know.
type asks struct {
	*batch

	keys        work.Keys
	shut        error            // why nothing new is admitted
	namespaces  []string         // that are announced
	collections map[string]error // of new processes: why there is none
}

// askAll carries out requests of a group, in their order. Only a request that is refused before it
// changed anything gets an error of its own.
func askAll(t *work.Tx, ws []*sqldb.Write) error {
	all, err := readAsks(t, ws)
	if err != nil {
		return err
	}
	type answered struct {
		*asking
		args, itemID string
	}
	var done []answered
	for _, w := range ws {
		a := askingOf(w)
		args, err := work.Fingerprint([]any{a.operation, a.arguments})
		if err != nil {
			return err
		}
		id, repeated, refused := all.keys.Find(a.key, args)
		if repeated {
			if w.Err, err = all.repeat(a, id); err != nil {
				return err
			}
			continue
		}
		p := all.known[a.ProcessKey]
		if refused == nil {
			refused = a.may(all, p)
		}
		if w.Err = refused; refused != nil {
			continue
		}
		if id, err = a.do(all.batch, p); err != nil {
			return err
		}
		all.keys.Add(a.key, args, id)
		done = append(done, answered{a, args, id})
		if a.info {
			a.process = all.known[a.ProcessKey].ProcessInfo
		} else {
			a.answer = registry.Answer{ProcessKey: a.ProcessKey, ItemID: id, Kind: registry.StepKind(a.operation), Status: registry.Pending}
		}
	}
	if err := all.flush(); err != nil {
		return err
	}
	for _, d := range done {
		if err := t.Answer(d.key, d.args, d.itemID, registry.ActSubmit, d.actor); err != nil {
			return err
		}
	}
	return nil
}

// repeat answers a repeated request with what became of the first one.
func (all *asks) repeat(a *asking, itemID string) (refused, err error) {
	if a.info {
		p := all.known[a.ProcessKey]
		if p == nil {
			return registry.ErrNotFound, nil // removed since
		}
		a.process = p.ProcessInfo
		return nil, nil
	}
	if err := all.flush(); err != nil { // the first one may be in this group
		return nil, err
	}
	it, err := all.Item(itemID)
	if errors.Is(err, registry.ErrNotFound) {
		return err, nil // purged since
	} else if err != nil {
		return nil, err
	}
	a.answer, err = answerOf(it)
	return nil, err
}

// readAsks reads what the requests of a group need to know.
func readAsks(t *work.Tx, ws []*sqldb.Write) (*asks, error) {
	all := &asks{collections: map[string]error{}}
	var processes []registry.ProcessKey
	var keys []string
	creates := false
	for _, w := range ws {
		a := askingOf(w)
		processes = append(processes, a.ProcessKey)
		if a.key != "" {
			keys = append(keys, a.key)
		}
		creates = creates || a.operation == opInit || a.operation == opPut
		if a.of != "" {
			all.collections[a.of] = nil
		}
	}
	var err error
	if all.batch, err = newBatch(t, processes...); err != nil {
		return nil, err
	}
	if all.keys, err = t.Keys(keys); err != nil {
		return nil, err
	}
	if all.shut = t.Accepting(); all.shut != nil {
		if _, ok := errors.AsType[*registry.NotAccepting](all.shut); !ok {
			return nil, all.shut
		}
	}
	if !creates {
		return all, nil
	}
	if all.namespaces, err = t.Strings(`SELECT name FROM namespace ORDER BY name`); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	for name := range all.collections {
		_, err := collection.Of(t, name)
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return nil, err
		}
		all.collections[name] = err
	}
	return all, nil
}
