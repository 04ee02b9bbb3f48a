// Package processes keeps processes: long-lived state machines whose steps are items. The engine
// carries a step like any other item. This package decides which step may start when, and applies
// what a step makes of its process in the transaction that settles it.
//
// Requirements order the steps, so that one step of a process runs at a time: each call requires the
// open call before it, or the timer that runs. A timer that has not started requires every open
// call.
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
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Keeper keeps processes. Its methods may be called concurrently.
type Keeper struct {
	db   *sqldb.DB
	work *work.Engine
	asks *sqldb.Kind // requests that add steps or import processes
}

// New returns the processes whose steps an engine carries.
func New(db *sqldb.DB, engine *work.Engine) *Keeper {
	return &Keeper{db, engine, engine.Together(askAll)}
}

// Join adds what processes do in the engine's transactions.
func (s *Keeper) Join(h *work.Hooks) {
	h.Outcome = append(h.Outcome, judge)
	h.Applied = func(it registry.WorkItem, name string) bool {
		return it.Action == registry.StepProcess && name == registry.ResultStep
	}
	h.SettledTogether = append(h.SettledTogether, settled)
	h.Paused = append(h.Paused, paused)
	h.Purged = append(h.Purged, purged)
}

// AnnounceNamespaces implements registry.Stepping.
func (s *Keeper) AnnounceNamespaces(ctx context.Context, all []registry.Namespace) error {
	if err := bounds.Check(all); err != nil {
		return fmt.Errorf("announce namespaces: %w", err)
	}
	for _, n := range all {
		if err := registry.CheckFunctionName(n.Name); err != nil {
			return fmt.Errorf("announce namespace %.100q: %w", n.Name, err)
		}
	}
	err := s.work.Write(ctx, func(t *work.Tx) error {
		for _, n := range all {
			policy, err := json.Marshal(n.Policy)
			if err != nil {
				return fmt.Errorf("encode the policy of namespace %s: %w", n.Name, err)
			}
			err = t.Do(`INSERT INTO namespace (name, title, policy, seen_at) VALUES ($1, $2, $3, $4)
				ON CONFLICT (name) DO UPDATE SET title = $2, policy = $3, seen_at = $4`, n.Name, sqldb.Clean(n.Title), string(policy), t.Now)
			if err == nil {
				err = t.AnnounceLimit(n.Stage(), n.Policy.AtOnce)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("announce %d namespaces: %w", len(all), err)
	}
	return nil
}

// Namespaces implements registry.Processing.
func (s *Keeper) Namespaces(ctx context.Context) ([]registry.Namespace, error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, `SELECT name, title, policy, seen_at FROM namespace ORDER BY name`), "list namespaces",
		func(row sqldb.Scanner) (n registry.Namespace, err error) {
			var policy string
			var seen int64
			if err := row.Scan(&n.Name, &n.Title, &policy, &seen); err != nil {
				return n, err
			}
			n.SeenAt = sqldb.FromMicros(seen)
			if err := json.Unmarshal([]byte(policy), &n.Policy); err != nil {
				return n, fmt.Errorf("decode the policy of namespace %s: %w", n.Name, err)
			}
			return n, nil
		})
}

// request is an operation that may be repeated with its idempotency key.
type request struct {
	operation  string
	key, actor string
	arguments  any // all that the key is bound to
}

// once carries a request out and returns the item that answers it. A repeat gets the item of the
// first one.
func once(t *work.Tx, r request, do func() (itemID string, err error)) (itemID string, err error) {
	args, err := work.Fingerprint([]any{r.operation, r.arguments})
	if err != nil {
		return "", err
	}
	if id, repeated, err := t.Keyed(r.key, args); err != nil || repeated {
		return id, err
	}
	if itemID, err = do(); err != nil {
		return "", err
	}
	return itemID, t.Answer(r.key, args, itemID, registry.ActSubmit, r.actor)
}

// The operations of requests. Those that add a step are its kind.
const (
	opInit = string(registry.StepInit)
	opPut  = "put"
)

// ask carries out a request that adds a step or imports a process.
func (s *Keeper) ask(ctx context.Context, what string, a *asking) error {
	defer metrics.Submit.Since(time.Now(), a.operation+"-process")
	if err := s.db.Queue(&sqldb.Write{Ctx: ctx, Kind: s.asks, Of: a}); err != nil {
		return fmt.Errorf("%s process %s: %w", what, a.ProcessKey, err)
	}
	return nil
}

// InitProcess implements registry.Processing.
func (s *Keeper) InitProcess(ctx context.Context, n registry.NewProcess) (registry.Answer, error) {
	if err := n.Check(); err != nil {
		return registry.Answer{}, fmt.Errorf("start process %s: %w", n.ProcessKey, err)
	}
	args := n
	args.Actor, args.IdempotencyKey = "", ""
	a := &asking{request: request{opInit, n.IdempotencyKey, n.Actor, args}, ProcessKey: n.ProcessKey, of: n.Collection}
	a.may = func(all *asks, p *process) error { return all.mayCreate(n.ProcessKey, n.Collection, p) }
	a.do = func(b *batch, _ *process) (string, error) {
		p := create(b, n.ProcessKey, n.Collection, n.Actor, registry.ProcessInit)
		return p.enqueue(b, registry.StepSpec{Kind: registry.StepInit, Args: orNull(n.Args), Context: n.Context}, n.Actor)
	}
	if err := s.ask(ctx, "start", a); err != nil {
		return registry.Answer{}, err
	}
	return a.answer, nil
}

// CallProcess implements registry.Processing.
func (s *Keeper) CallProcess(ctx context.Context, n registry.NewCall) (registry.Answer, error) {
	return s.call(ctx, "call", registry.StepCall, n, func(all *asks, p *process) error {
		if p.Status != registry.ProcessRunning {
			return &registry.ProcessStateError{ProcessKey: p.ProcessKey, Status: p.Status, Detail: p.Detail}
		}
		return all.shut
	})
}

// RepairProcess implements registry.Processing.
func (s *Keeper) RepairProcess(ctx context.Context, n registry.NewCall) (registry.Answer, error) {
	return s.call(ctx, "repair", registry.StepRepair, n, func(_ *asks, p *process) error { return p.repairable() })
}

// call adds a step that somebody asks for, if the process may take it.
func (s *Keeper) call(ctx context.Context, what string, kind registry.StepKind, n registry.NewCall, may func(*asks, *process) error) (registry.Answer, error) {
	if err := n.Check(); err != nil {
		return registry.Answer{}, fmt.Errorf("%s process %s: %w", what, n.ProcessKey, err)
	}
	args := n
	args.Actor, args.IdempotencyKey = "", ""
	a := &asking{request: request{string(kind), n.IdempotencyKey, n.Actor, args}, ProcessKey: n.ProcessKey}
	a.may = func(all *asks, p *process) error {
		if p == nil {
			return registry.ErrNotFound
		}
		return may(all, p)
	}
	a.do = func(b *batch, p *process) (string, error) {
		return p.enqueue(b, registry.StepSpec{Kind: kind, Args: orNull(n.Args), Context: n.Context, Range: n.Range}, n.Actor)
	}
	if err := s.ask(ctx, what, a); err != nil {
		return registry.Answer{}, err
	}
	return a.answer, nil
}

// RetryProcess implements registry.Processing.
func (s *Keeper) RetryProcess(ctx context.Context, a registry.ProcessAct) (info registry.ProcessInfo, err error) {
	args := a
	args.Actor, args.IdempotencyKey = "", ""
	err = s.act(ctx, "retry", a, request{"retry", a.IdempotencyKey, a.Actor, args}, func(b *batch) (string, error) {
		p, err := b.load(a.ProcessKey)
		if err != nil {
			return "", err
		}
		if err := p.repairable(); err != nil {
			return "", err
		}
		if a.Context != nil {
			p.context = a.Context
		}
		if err := p.note(b, registry.EventProcessRetried, asked(a)); err != nil {
			return "", err
		}
		failed := p.CorruptedBy
		if !p.corruptedKind.IsTimer() {
			p.save(b)
			return failed, p.turn(b, registry.ProcessRunning, cause{actor: work.ActorRegistry})
		}
		return failed, p.replaceTimer(b, p.corruptedKind, b.Now, p.context)
	}, func(b *batch) error {
		p, err := b.load(a.ProcessKey)
		if err == nil {
			info = p.ProcessInfo
		}
		return err
	})
	return info, err
}

// RemoveProcess implements registry.Processing.
func (s *Keeper) RemoveProcess(ctx context.Context, a registry.ProcessAct) error {
	args := a
	args.Actor, args.IdempotencyKey = "", ""
	return s.act(ctx, "remove", a, request{"remove", a.IdempotencyKey, a.Actor, args}, func(b *batch) (string, error) {
		p, err := b.load(a.ProcessKey)
		if err != nil {
			return "", err
		}
		return p.timer, p.remove(b, asked(a), "its process is removed: "+a.Reason)
	}, nil)
}

// act carries out a request of a person, once, and then reads what there is now.
func (s *Keeper) act(ctx context.Context, what string, a registry.ProcessAct, r request, do func(*batch) (string, error), then func(*batch) error) error {
	err := a.Check()
	if err == nil {
		defer metrics.Submit.Since(time.Now(), r.operation+"-process")
		err = s.work.Write(ctx, func(t *work.Tx) error {
			b, err := newBatch(t, a.ProcessKey)
			if err == nil {
				_, err = once(t, r, func() (string, error) { return do(b) })
			}
			if err == nil {
				err = b.flush()
			}
			if err == nil && then != nil {
				err = then(b)
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("%s process %s: %w", what, a.ProcessKey, err)
	}
	return nil
}

// PutProcess implements registry.Processing.
func (s *Keeper) PutProcess(ctx context.Context, n registry.PutProcess) (info registry.ProcessInfo, err error) {
	if err := n.Check(); err != nil {
		return info, fmt.Errorf("import process %s: %w", n.ProcessKey, err)
	}
	args := n
	args.Actor, args.IdempotencyKey = "", ""
	a := &asking{request: request{opPut, n.IdempotencyKey, n.Actor, args}, ProcessKey: n.ProcessKey, of: n.Collection, info: true}
	a.may = func(all *asks, p *process) error { return all.mayCreate(n.ProcessKey, n.Collection, p) }
	a.do = func(b *batch, _ *process) (string, error) {
		p := create(b, n.ProcessKey, n.Collection, n.Actor, registry.ProcessRunning)
		p.State, p.Metadata = n.State, n.Metadata
		for _, e := range n.History {
			if e.ID > p.LastEventID {
				p.LastEventID = e.ID - 1
			}
			at := b.Now
			if !e.At.IsZero() {
				at = sqldb.Micros(e.At)
			}
			p.append(b, "", at, registry.NewProcessEvent{Payload: e.Payload, Metadata: e.Metadata})
		}
		if err := p.note(b, registry.EventProcessImported, cause{actor: n.Actor}); err != nil || n.Timer == nil {
			return "", err
		}
		err := p.setTimer(b, n.Timer.Kind, sqldb.Micros(n.Timer.At), nil)
		return p.timer, err
	}
	err = s.ask(ctx, "import", a)
	return a.process, err
}

// mayCreate returns why a process cannot be created, or nil. p is nil if there is none of that key.
func (all *asks) mayCreate(key registry.ProcessKey, collection string, p *process) error {
	switch {
	case all.shut != nil:
		return all.shut
	case p != nil:
		return registry.ErrProcessExists
	case !slices.Contains(all.namespaces, key.Namespace):
		return &registry.UnknownNamespaceError{Namespace: key.Namespace, Known: all.namespaces}
	}
	return all.collections[collection]
}

// create adds a process to a batch.
func create(b *batch, key registry.ProcessKey, collection, actor string, status registry.ProcessStatus) *process {
	now := sqldb.FromMicros(b.Now)
	p := &process{ProcessInfo: registry.ProcessInfo{
		ProcessKey: key, Collection: collection, Status: status, StatusChangedAt: now, CreatedBy: sqldb.Clean(actor), CreatedAt: now,
	}}
	b.known[key] = p
	b.created = append(b.created, p)
	return p
}

// purged forgets a step whose item is purged. The events that it made stay.
func purged(t *work.Tx, it registry.WorkItem) error {
	if it.Action != registry.StepProcess {
		return nil
	}
	return t.Do(`DELETE FROM process_step WHERE item_id = $1`, it.ID)
}

// answerOf returns the answer of a step.
func answerOf(it registry.WorkItem) (a registry.Answer, err error) {
	if it.Action != registry.StepProcess {
		return a, fmt.Errorf("item %s is no step of a process: %w", it.ID, registry.ErrNotFound)
	}
	spec, err := specOf(it)
	if err != nil {
		return a, err
	}
	a = registry.Answer{ProcessKey: spec.ProcessKey, ItemID: it.ID, Kind: spec.Kind, Status: it.Status}
	switch {
	case it.Status == registry.Completed:
		a.Response = it.Results[registry.ResultReturned]
	case it.Status.Settled():
		a.Error = it.Note
	}
	return a, nil
}

func specOf(it registry.WorkItem) (spec registry.StepSpec, err error) {
	if err := json.Unmarshal(it.Spec, &spec); err != nil {
		return spec, fmt.Errorf("decode the input of step %s: %w", it.ID, err)
	}
	return spec, nil
}

func orNull(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("null")
	}
	return args
}

// AwaitAnswer implements registry.Processing.
func (s *Keeper) AwaitAnswer(ctx context.Context, itemID string) (a registry.Answer, err error) {
	look := context.WithoutCancel(ctx)
	err = s.work.AwaitItem(ctx, itemID, func() (bool, error) {
		var err error
		a, err = s.answer(look, itemID)
		return a.Status.Settled(), err
	})
	if err != nil {
		return registry.Answer{}, fmt.Errorf("wait for an answer: %w", err)
	}
	return a, nil
}

// answer returns the answer of a step as it is now. It reads no more of the item than that takes,
// since a caller waits.
func (s *Keeper) answer(ctx context.Context, itemID string) (registry.Answer, error) {
	it := registry.WorkItem{ID: itemID}
	var spec, results []byte
	err := s.db.Read.QueryRowContext(ctx, `SELECT i.action, i.status, i.note, d.spec, d.results
		FROM work_item i JOIN work_detail d ON d.item_id = i.id WHERE i.id = $1`, itemID).Scan(&it.Action, &it.Status, &it.Note, &spec, &results)
	if errors.Is(err, sql.ErrNoRows) {
		return registry.Answer{}, fmt.Errorf("item %s: %w", itemID, registry.ErrNotFound)
	} else if err != nil {
		return registry.Answer{}, fmt.Errorf("read item %s: %w", itemID, err)
	}
	response, err := returned(results)
	if err != nil {
		return registry.Answer{}, fmt.Errorf("decode the results of step %s: %w", itemID, err)
	}
	it.Spec, it.Results = spec, map[string]json.RawMessage{registry.ResultReturned: response}
	return answerOf(it)
}

// Process implements registry.Processing.
func (s *Keeper) Process(ctx context.Context, key registry.ProcessKey, r registry.HistoryRange) (registry.ProcessInfo, error) {
	look := context.WithoutCancel(ctx)
	p, err := s.read(look, key, r)
	if err == nil && p.Status == registry.ProcessInit && p.tail != "" {
		if err = s.work.AwaitSettled(ctx, p.tail); err == nil || errors.Is(err, registry.ErrNotFound) {
			p, err = s.read(look, key, r)
		}
	}
	if err != nil {
		return registry.ProcessInfo{}, fmt.Errorf("read process %s: %w", key, err)
	}
	return p.ProcessInfo, nil
}

// ProcessOf implements registry.Stepping.
func (s *Keeper) ProcessOf(ctx context.Context, l registry.Lease, r registry.HistoryRange) (info registry.ProcessInfo, err error) {
	if err := bounds.Check(l, r); err != nil {
		return info, err
	}
	p, err := s.ofStep(ctx, l, r)
	if err != nil {
		return info, fmt.Errorf("read the process of item %s: %w", l.ItemID, err)
	}
	return p.ProcessInfo, nil
}

// ofStep reads the process of a lease's step.
func (s *Keeper) ofStep(ctx context.Context, l registry.Lease, r registry.HistoryRange) (*process, error) {
	it, err := s.work.LiveItem(ctx, l)
	if err != nil {
		return nil, err
	}
	if it.Action != registry.StepProcess {
		return nil, fmt.Errorf("%w: it is no step of a process", registry.ErrInvalid)
	}
	spec, err := specOf(it)
	if err != nil {
		return nil, err
	}
	return s.read(ctx, spec.ProcessKey, r)
}
