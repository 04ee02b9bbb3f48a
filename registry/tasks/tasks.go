// Package tasks keeps functions and adds their tasks. The engine carries a task like any other item;
// this package knows what functions take, and judges arguments by that.
package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Tasks keeps functions and adds their tasks. Its methods may be called concurrently.
type Tasks struct {
	db   *sqldb.DB
	work *work.Engine
}

// New returns the tasks of an engine's items.
func New(db *sqldb.DB, engine *work.Engine) *Tasks { return &Tasks{db, engine} }

// AddTask implements registry.Tasking.
func (s *Tasks) AddTask(ctx context.Context, n registry.NewTask) (it registry.WorkItem, err error) {
	err = s.write(ctx, n, func(t *work.Tx) error {
		id, err := Add(t, n)
		if err == nil {
			it, err = t.Item(id)
		}
		return err
	})
	return it, err
}

// StartTask implements registry.Serving.
func (s *Tasks) StartTask(ctx context.Context, n registry.NewTask, r registry.ClaimRequest) (c registry.Claim, err error) {
	r.Stage, r.Hint = registry.Run.Of(n.Function), ""
	if err := bounds.Check(n, r); err != nil {
		return c, err
	}
	err = s.write(ctx, n, func(t *work.Tx) error {
		id, err := Add(t, n)
		if err == nil {
			c, err = t.StartItem(id, r)
		}
		return err
	})
	if err != nil {
		return registry.Claim{}, err
	}
	c.NoteKey = s.work.NoteKey(c.Item.ID)
	return c, nil
}

// write judges a task and runs fn in a transaction.
func (s *Tasks) write(ctx context.Context, n registry.NewTask, fn func(*work.Tx) error) error {
	err := n.Check()
	if err == nil {
		defer metrics.Submit.Since(time.Now(), "task")
		err = s.work.Write(ctx, fn)
	}
	if err != nil {
		return fmt.Errorf("add a task of %s: %w", n.Function, err)
	}
	return nil
}

// Add adds a task that passes its Check, unless a request with its key has added it already. Its
// errors are those of registry.Tasking.
func Add(t *work.Tx, n registry.NewTask) (id string, err error) {
	args, err := Fingerprint(n)
	if err != nil {
		return "", err
	}
	if id, repeated, err := t.Keyed(n.IdempotencyKey, args); err != nil || repeated {
		return id, err
	}
	if err := t.Accepting(); err != nil {
		return "", err
	}
	if problems := registry.RequirementProblems(n.Requires); len(problems) > 0 {
		return "", problems[0]
	}
	needs, err := t.NeedsOf(n.Requires)
	if err != nil {
		return "", err
	}
	it, err := Item(t, n)
	if err != nil {
		return "", err
	}
	it.Blockers = work.OpenNeeds(needs)
	if err := t.Insert(it); err != nil {
		return "", err
	}
	if err := t.Require(it.ID, needs); err != nil {
		return "", err
	}
	return it.ID, t.Answer(n.IdempotencyKey, args, it.ID, registry.ActSubmit, n.Actor)
}

// Fingerprint returns a digest of what a task says, with its requirements. An idempotency key is
// bound to it.
func Fingerprint(n registry.NewTask) (string, error) {
	n.Actor, n.IdempotencyKey = "", ""
	return work.Fingerprint(n)
}

// Item returns the item of a task, without its requirements. The arguments must fit the function's
// schema, and a collection must exist.
func Item(t *work.Tx, n registry.NewTask) (work.NewItem, error) {
	f, err := judge(t, n)
	if err != nil {
		return work.NewItem{}, err
	}
	if n.Collection != "" {
		if _, err := collection.Of(t, n.Collection); err != nil {
			return work.NewItem{}, err
		}
	}
	n.Title = cmp.Or(n.Title, f.Title, f.Name)
	return ItemOf(t, n), nil
}

// ItemOf is [Item] without a look at the function and the collection. A function that cannot take
// the arguments fails the task.
func ItemOf(t *work.Tx, n registry.NewTask) work.NewItem {
	route, _ := registry.RouteOf(registry.Task)
	it := work.NewItem{
		ID: sqldb.NewID(), Tenant: sqldb.Tenant, Collection: n.Collection, Action: registry.Task, Stage: registry.Run.Of(n.Function),
		Status: registry.Pending, Name: n.Title, Actor: n.Actor,
		Input: registry.TaskSpec{RouteVersion: route.Version, Function: n.Function, Args: orNull(n.Args), Subject: n.Subject, Cause: n.Cause},
	}
	if n.Priority != nil {
		it.Priority = *n.Priority
	}
	if !n.NotBefore.IsZero() {
		it.Delay = max(0, sqldb.Micros(n.NotBefore)-t.Now)
	}
	it.EventSpec = struct {
		Function string `json:"function"`
		Subject  string `json:"subject,omitempty"`
		Cause    string `json:"cause,omitempty"`
	}{n.Function, n.Subject, n.Cause}
	return it
}

func orNull(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("null")
	}
	return args
}

// Parents implements registry.Serving.
func (s *Tasks) Parents(ctx context.Context, l registry.Lease) (out []registry.Parent, err error) {
	if err := bounds.Check(l); err != nil {
		return nil, err
	}
	it, err := s.work.LiveItem(ctx, l)
	if route, _ := it.Route(); err == nil && !route.Functions {
		err = fmt.Errorf("%w: it is no call of a function", registry.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("read what item %s requires: %w", l.ItemID, err)
	}
	return sqldb.Collect(s.db.Read.Ask(ctx, `SELECT i.id, COALESCE(g.key, ''), i.stage, i.status, i.note, p.results FROM work_dep d
		JOIN work_item i ON i.id = d.requires_id JOIN work_detail p ON p.item_id = i.id
		LEFT JOIN graph_node g ON g.graph_id = i.graph_id AND g.item_id = i.id
		WHERE d.item_id = $1 AND d.at_start = 1 ORDER BY i.id`, l.ItemID), "read what item "+l.ItemID+" requires", scanParent)
}

func scanParent(row sqldb.Scanner) (p registry.Parent, err error) {
	var text string
	if err := row.Scan(&p.ItemID, &p.Key, &p.Stage, &p.Status, &p.Error, &text); err != nil {
		return p, err
	}
	var results struct {
		Returned json.RawMessage `json:"returned"`
	}
	if err := json.Unmarshal([]byte(text), &results); err != nil {
		return p, fmt.Errorf("decode the results of item %s: %w", p.ItemID, err)
	}
	if p.Status == registry.Completed {
		p.Result = results.Returned
	}
	return p, nil
}
