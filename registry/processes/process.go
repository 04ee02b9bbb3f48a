package processes

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// process is the row of a process. Write transactions are serial, so it cannot change while one
// has it.
type process struct {
	registry.ProcessInfo

	seq           int64
	corruptedKind registry.StepKind
	context       json.RawMessage // of the timer that failed
	steps         int64
	timer, tail   string // items: see table process

	timerStatus, tailStatus registry.Status // of these items
}

const selectProcess = selectColumns + `FROM process p ` + joinTimer

const selectColumns = `SELECT p.namespace, p.id, p.seq, p.collection, p.status, p.previous_status, p.status_changed_at, p.detail, p.corrupted_by,
	p.corrupted_kind, p.context, p.state, p.metadata, p.last_event_id, p.steps, p.timer_item, p.tail_item, p.created_by, p.created_at,
	i.run_at, COALESCE(i.status, ''), COALESCE(d.spec, ''), COALESCE((SELECT t.status FROM work_item t WHERE t.id = p.tail_item), '') `

const joinTimer = `LEFT JOIN work_item i ON i.id = p.timer_item LEFT JOIN work_detail d ON d.item_id = i.id `

func scanProcess(row sqldb.Scanner) (*process, error) {
	var p process
	var changed, created int64
	var due sql.NullInt64
	var context, state, metadata, spec string
	err := row.Scan(&p.Namespace, &p.ProcessID, &p.seq, &p.Collection, &p.Status, &p.PreviousStatus, &changed, &p.Detail, &p.CorruptedBy,
		&p.corruptedKind, &context, &state, &metadata, &p.LastEventID, &p.steps, &p.timer, &p.tail, &p.CreatedBy, &created, &due,
		&p.timerStatus, &spec, &p.tailStatus)
	if err != nil {
		return nil, err
	}
	p.StatusChangedAt, p.CreatedAt = sqldb.FromMicros(changed), sqldb.FromMicros(created)
	p.context, p.State, p.Metadata = optional(context), optional(state), optional(metadata)
	if due.Valid {
		var of registry.StepSpec
		if err := json.Unmarshal([]byte(spec), &of); err != nil {
			return nil, fmt.Errorf("decode the input of step %s: %w", p.timer, err)
		}
		p.Timer = &registry.ProcessTimer{ItemID: p.timer, Kind: of.Kind, At: sqldb.FromMicros(due.Int64)}
	}
	return &p, nil
}

// optional returns a column of JSON that may be empty.
func optional(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func found(p *process, err error) (*process, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return nil, registry.ErrNotFound
	}
	return p, err
}

// selectOne selects the process of a key. While PostgreSQL has no statistics of the table, it would find
// the id among all processes of the namespace, by the index process_status. That index has not the
// order of ids. A list would keep PostgreSQL from it, too, but it makes a new plan for each list.
const selectOne = selectColumns + `FROM (SELECT * FROM process q WHERE q.namespace = $1 AND q.id >= $2 ORDER BY q.id LIMIT 1) p ` + joinTimer + `WHERE p.id = $2`

// read reads a process with a range of its history on the reading connections.
func (s *Keeper) read(ctx context.Context, key registry.ProcessKey, r registry.HistoryRange) (*process, error) {
	p, err := found(scanProcess(s.db.Read.QueryRowContext(ctx, selectOne, key.Namespace, key.ProcessID)))
	if err != nil || r.None || p.LastEventID == 0 {
		return p, err
	}
	limit := registry.MostHistory
	if r.Limit > 0 {
		limit = min(r.Limit, limit)
	}
	side, order := "event_id > $3", "event_id"
	if r.Backward {
		order = "event_id DESC"
		if side = "event_id < $3"; r.Offset == 0 {
			side = "event_id > $3"
		}
	}
	p.History, err = sqldb.Collect(s.db.Read.Ask(ctx, selectEvent+`WHERE namespace = $1 AND process_id = $2 AND `+side+` ORDER BY `+order+sqldb.Limit(limit),
		key.Namespace, key.ProcessID, r.Offset), "read the history of process "+key.String(), scanEvent)
	return p, err
}

const selectEvent = `SELECT event_id, item_id, at, payload, metadata FROM process_event `

func scanEvent(row sqldb.Scanner) (e registry.ProcessEvent, err error) {
	var at int64
	var payload, metadata string
	if err := row.Scan(&e.ID, &e.ItemID, &at, &payload, &metadata); err != nil {
		return e, err
	}
	e.At, e.Payload, e.Metadata = sqldb.FromMicros(at), json.RawMessage(payload), optional(metadata)
	return e, nil
}

// save has the batch write the row of the process as it is then.
func (p *process) save(b *batch) {
	if !slices.Contains(b.changed, p) {
		b.changed = append(b.changed, p)
	}
}

// row returns the row of the process for updateProcess.
func (p *process) row() []any {
	return []any{
		p.seq, p.Status, p.PreviousStatus, sqldb.Micros(p.StatusChangedAt), sqldb.Clean(p.Detail), p.CorruptedBy, p.corruptedKind,
		string(p.context), string(p.State), string(p.Metadata), p.LastEventID, p.steps, p.timer, p.tail,
	}
}

// cause is who or what changes a process, for its event.
type cause struct {
	actor, item string
	kind        registry.StepKind
	reason      string
}

// stepped is the cause of what a step does.
func stepped(itemID string, kind registry.StepKind, reason string) cause {
	return cause{work.ActorWorker, itemID, kind, reason}
}

// asked is the cause of what a person does.
func asked(a registry.ProcessAct) cause { return cause{actor: a.Actor, reason: a.Reason} }

// note appends an event about the process to the feed.
func (p *process) note(b *batch, kind string, c cause) error {
	return b.Note(work.Entry{
		ItemID: registry.ProcessOwner(p.ProcessKey), Kind: kind, Actor: c.actor, Collection: p.Collection,
		Data: registry.ProcessChange{ProcessKey: p.ProcessKey, Status: p.Status, Step: c.item, Kind: c.kind, Reason: sqldb.Clean(c.reason)},
	})
}

// turned is the type of the event of a change of status.
func turned(from, to registry.ProcessStatus) string {
	switch {
	case to == registry.ProcessFailed:
		return registry.EventProcessError
	case to == registry.ProcessDone:
		return registry.EventProcessDone
	case from == registry.ProcessFailed:
		return registry.EventProcessRepaired
	}
	return registry.EventProcessStarted
}

// turn changes the status of the process. A process that leaves its error forgets it.
func (p *process) turn(b *batch, to registry.ProcessStatus, c cause) error {
	if p.Status == to {
		return nil
	}
	p.PreviousStatus, p.Status, p.StatusChangedAt = p.Status, to, sqldb.FromMicros(b.Now)
	if to != registry.ProcessFailed {
		b.failureOver(p.CorruptedBy)
		p.Detail, p.CorruptedBy, p.corruptedKind, p.context = "", "", "", nil
	}
	return p.note(b, turned(p.PreviousStatus, to), c)
}

// repairable returns an error unless the process is in error and nothing repairs it.
func (p *process) repairable() error {
	if p.Status == registry.ProcessFailed && p.tail == "" && p.timer == "" {
		return nil
	}
	e := &registry.ProcessStateError{ProcessKey: p.ProcessKey, Status: p.Status, Detail: p.Detail}
	if p.Status == registry.ProcessFailed {
		if e.Repairing = p.tail; e.Repairing == "" {
			e.Repairing = p.timer
		}
	}
	return e
}

// append adds an event to the history. The caller saves the process.
func (p *process) append(b *batch, itemID string, at int64, e registry.NewProcessEvent) {
	p.LastEventID++
	b.events = append(b.events, []any{p.Namespace, p.ProcessID, p.LastEventID, itemID, at, string(orNull(e.Payload)), string(e.Metadata)})
}

// enqueue adds a step that somebody asks for, behind those that were asked for before, and saves the
// process. A timer that has not started waits for it.
func (p *process) enqueue(b *batch, spec registry.StepSpec, actor string) (itemID string, err error) {
	before, status, pending := p.tail, p.tailStatus, ""
	if p.timer != "" {
		if p.timerStatus != registry.Running {
			pending = p.timer
		} else if before == "" {
			before, status = p.timer, p.timerStatus
		}
	}
	if itemID, err = p.insert(b, spec, 0, before, status, actor); err != nil {
		return "", err
	}
	if pending != "" {
		b.postponed[pending] = append(b.postponed[pending], itemID)
	}
	p.tail, p.tailStatus = itemID, registry.Pending
	p.save(b)
	return itemID, nil
}

// setTimer sets the timer of the process to a time in microseconds. The timer waits for the calls
// that are open. The caller cancels the timer before it, if there is one.
func (p *process) setTimer(b *batch, kind registry.StepKind, at int64, context json.RawMessage) error {
	delay := max(0, at-b.Now)
	id, err := p.insert(b, registry.StepSpec{Kind: kind, Context: context}, delay, p.tail, p.tailStatus, work.ActorRegistry)
	if err != nil {
		return err
	}
	p.timer, p.timerStatus = id, registry.Pending
	p.Timer = &registry.ProcessTimer{ItemID: id, Kind: kind, At: sqldb.FromMicros(b.Now + delay)}
	p.save(b)
	return nil
}

// replaceTimer is setTimer in place of the timer that the process has.
func (p *process) replaceTimer(b *batch, kind registry.StepKind, at int64, context json.RawMessage) error {
	old := p.timer
	if err := p.setTimer(b, kind, at, context); err != nil {
		return err
	}
	return b.cancel(work.ActorRegistry, "its process has another timer", old)
}

// insert adds the item of a step, behind the item before with its status unless that is "". The
// caller saves the process.
func (p *process) insert(b *batch, spec registry.StepSpec, delay int64, before string, status registry.Status, actor string) (string, error) {
	route, _ := registry.RouteOf(registry.StepProcess)
	spec.RouteVersion, spec.ProcessKey = route.Version, p.ProcessKey
	var needs []work.Need
	if before != "" {
		need, err := work.NeedAt(registry.Requirement{ItemID: before, WaitFor: registry.WaitSettled}, status)
		if err != nil {
			return "", err
		}
		needs = append(needs, need)
	}
	it := work.NewItem{
		ID: sqldb.NewID(), Tenant: sqldb.Tenant, Collection: p.Collection, Action: registry.StepProcess, Stage: registry.ProcessStep.Of(p.Namespace),
		Status: registry.Pending, Name: p.ProcessID, Actor: actor, Input: spec, Delay: delay, Blockers: work.OpenNeeds(needs),
	}
	it.EventSpec = struct {
		registry.ProcessKey

		Kind registry.StepKind `json:"kind"`
	}{p.ProcessKey, spec.Kind}
	p.steps++
	b.items, b.needs[it.ID] = append(b.items, it), needs
	b.steps = append(b.steps, []any{p.Namespace, p.ProcessID, p.steps, it.ID})
	return it.ID, nil
}

// open returns the open steps of the process but for one, in their order.
func (p *process) open(b *batch, but string) ([]string, error) {
	if err := b.flush(); err != nil {
		return nil, err
	}
	ids, err := b.Strings(`SELECT s.item_id FROM process_step s JOIN work_item i ON i.id = s.item_id
		WHERE s.namespace = $1 AND s.process_id = $2 AND i.status IN ('pending', 'running') AND i.id <> $3 ORDER BY s.n`, p.Namespace, p.ProcessID, but)
	if err != nil {
		return nil, fmt.Errorf("list the open steps of process %s: %w", p.ProcessKey, err)
	}
	return ids, nil
}

// cancelOpen cancels the open steps of the process, as they were before it was saved without them.
func (p *process) cancelOpen(b *batch, actor, reason string) error {
	ids, err := p.open(b, "")
	if err != nil {
		return err
	}
	return b.cancel(actor, reason, ids...)
}

// remove deletes the process with its history, and cancels its open steps for a reason.
func (p *process) remove(b *batch, c cause, reason string) error {
	begun := time.Now()
	open, err := p.open(b, c.item)
	if err == nil {
		err = p.note(b, registry.EventProcessRemoved, c)
	}
	if err != nil {
		return err
	}
	for _, query := range []string{
		`DELETE FROM process WHERE namespace = $1 AND id = $2`,
		`DELETE FROM process_event WHERE namespace = $1 AND process_id = $2`,
		`DELETE FROM process_step WHERE namespace = $1 AND process_id = $2`,
	} {
		if err := b.Do(query, p.Namespace, p.ProcessID); err != nil {
			return fmt.Errorf("remove process %s: %w", p.ProcessKey, err)
		}
	}
	b.known[p.ProcessKey] = nil
	b.failureOver(p.CorruptedBy)
	actor := c.actor
	if c.item != "" {
		actor = work.ActorRegistry // nobody asked for the cancellations
	}
	if err := b.cancel(actor, reason, open...); err != nil {
		return err
	}
	b.Took(metrics.Removal, time.Since(begun), p.Namespace)
	return nil
}
