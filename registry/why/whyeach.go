package why

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/wording"
	"github.com/holdfast/holdfast/registry/work"
)

// WhyEach implements registry.Explaining. It runs the same few statements for any number of items.
func (s *Reasons) WhyEach(ctx context.Context, q registry.ReasonQuery) ([]registry.Why, error) {
	if len(q.IDs) > registry.MostReasons {
		return nil, fmt.Errorf("%w: %d items to explain at once, at most %d", registry.ErrInvalid, len(q.IDs), registry.MostReasons)
	}
	items, err := s.asked(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("explain %d items: %w", len(q.IDs), err)
	}
	open, err := s.obstacles(ctx, items)
	if err != nil {
		return nil, fmt.Errorf("explain %d items: %w", len(q.IDs), err)
	}
	var out []registry.Why
	for _, id := range q.IDs {
		if it, ok := items[id]; ok {
			out = append(out, s.phrase(it, open))
		}
	}
	return out, nil
}

// asked returns the unsettled items of a query by their ids.
func (s *Reasons) asked(ctx context.Context, q registry.ReasonQuery) (map[string]registry.WorkItem, error) {
	w := &sqldb.Where{}
	w.AddIn("i.id", q.IDs)
	w.Add("i.status IN ('prepare', 'pending', 'running')")
	w.Within("i.collection", q.Within)
	rows, err := s.work.ReadItems(ctx, work.SelectItem+w.String(), w.Args...)
	items := make(map[string]registry.WorkItem, len(rows))
	for _, it := range rows {
		items[it.ID] = it
	}
	return items, err
}

// obstacles is what more than the items' own rows says about why they wait.
type obstacles struct {
	blocked, locked map[string]bool
	wait            map[string]registry.Reason // what a worker found missing
	runs            map[string]registry.Attempt
	served          map[registry.Stage]bool
}

func (s *Reasons) obstacles(ctx context.Context, items map[string]registry.WorkItem) (o obstacles, err error) {
	o = obstacles{map[string]bool{}, map[string]bool{}, map[string]registry.Reason{}, map[string]registry.Attempt{}, map[registry.Stage]bool{}}
	var pending, running []string
	for id, it := range items {
		switch it.Status {
		case registry.Pending:
			pending = append(pending, id)
		case registry.Running:
			running = append(running, id)
		default:
		}
	}
	if len(pending) > 0 {
		if err := s.whatKeeps(ctx, pending, &o); err != nil {
			return o, err
		}
		f, err := s.work.Fleet(ctx)
		if err != nil {
			return o, err
		}
		for _, id := range pending {
			if at := items[id].Stage; !o.served[at] {
				o.served[at] = f.Of(at).Capacity > 0
			}
		}
	}
	if len(running) == 0 {
		return o, nil
	}
	w := &sqldb.Where{}
	w.AddIn("item_id", running)
	w.Add("n = (SELECT i.attempt FROM work_item i WHERE i.id = attempt.item_id)")
	attempts, err := sqldb.Collect(s.db.Read.Ask(ctx, work.SelectAttempt+w.String(), w.Args...), "read the live attempts", work.ScanAttempt)
	for _, a := range attempts {
		o.runs[a.ItemID] = a
	}
	return o, err
}

// whatKeeps reads what keeps pending items from starting.
func (s *Reasons) whatKeeps(ctx context.Context, pending []string, o *obstacles) error {
	w := &sqldb.Where{}
	w.AddIn("i.id", pending)
	return sqldb.Each(s.db.Read.Ask(ctx, `SELECT i.id, `+work.Blocked+`, `+work.LockedOut+`, i.wait_reason FROM work_item i`+w.String(), w.Args...),
		"read what keeps items", func(row sqldb.Scanner) error {
			var id string
			var blocked, locked bool
			var wait registry.Reason
			if err := row.Scan(&id, &blocked, &locked, &wait); err != nil {
				return err
			}
			o.blocked[id], o.locked[id], o.wait[id] = blocked, locked, wait
			return nil
		})
}

// phrase says what an item waits for, by the same order of reasons as [Reasons.Why].
func (s *Reasons) phrase(it registry.WorkItem, o obstacles) registry.Why {
	w := registry.Why{ItemID: it.ID, Since: it.UpdatedAt, At: s.db.Now()}
	says := func(reason registry.Reason, all ...registry.Statement) { w.Reason, w.Because = reason, all }
	switch {
	case it.Status == registry.Running:
		a := o.runs[it.ID]
		says(registry.ReasonRunning, registry.Statement{Says: registry.SaysRunning, Stage: it.Stage, Name: a.Worker})
		if a.Worker != "" {
			w.Since, w.Actor = a.StartedAt, a.Worker
		}
		if len(a.Progress) > 0 {
			w.Because = append(w.Because, registry.Statement{Says: registry.SaysProgress, Progress: a.Progress[:1]})
		}
	case it.Status == registry.Prepare:
		whyPrepared(it, &w)
	case it.HeldBy != nil:
		whyHeld(it, &w)
	case o.blocked[it.ID]:
		says(registry.ReasonBlocked, registry.Statement{Says: registry.SaysRequires, N: it.BlockerCount})
	case o.locked[it.ID]:
		says(registry.ReasonLocked, registry.Statement{Says: registry.SaysLocked})
	case it.RunAt.After(w.At):
		until := it.RunAt
		says(registry.ReasonNotDue, registry.Statement{Says: registry.SaysNoted, Text: it.Note})
		if it.Note == "" {
			w.Because[0].Says = registry.SaysNotDue
		}
		if wait := o.wait[it.ID]; wait != "" {
			w.Reason = wait
		}
		w.Until = &until
	default:
		says(registry.ReasonQueued, registry.Statement{Says: registry.SaysTurn, Stage: it.Stage})
		if !o.served[it.Stage] {
			w.Because[0].Says = registry.SaysNoWorker
		}
		w.Since = it.RunAt
	}
	w.Helps = nil // only Why says them
	wording.Say(&w)
	return w
}
