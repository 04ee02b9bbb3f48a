package deposit

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/catalog"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// AddJobs implements registry.Batching.
func (s *Deposits) AddJobs(ctx context.Context, l registry.Lease, jobs []registry.NewJob) (int, error) {
	if err := bounds.Check(l, jobs); err != nil {
		return 0, err
	}
	added := 0
	err := s.write(ctx, func(t *tx) error {
		batch, err := t.expanding(l)
		if err != nil {
			return err
		}
		added, err = t.addJobs(batch, jobs)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("add jobs to batch %s: %w", l.ItemID, err)
	}
	return added, nil
}

// expanding returns the batch that a lease is of, which is being expanded.
func (t *tx) expanding(l registry.Lease) (registry.WorkItem, error) {
	batch, err := t.Live(l)
	if err == nil && (batch.Action != registry.Batch || batch.Stage != registry.Expand) {
		err = fmt.Errorf("%w: item %s is not a batch being expanded", registry.ErrInvalid, batch.ID)
	}
	return batch, err
}

// addJobs makes jobs of those rows that are none yet (R22), all of them with a few statements.
func (t *tx) addJobs(batch registry.WorkItem, jobs []registry.NewJob) (added int, err error) {
	if len(jobs) == 0 {
		return 0, nil
	}
	there, err := t.rowsThere(batch.ID, jobs)
	if err != nil {
		return 0, err
	}
	counted, err := t.rowsCounted(batch.ID)
	if err != nil {
		return 0, err
	}
	submitted, err := work.SpecOf(batch)
	if err != nil {
		return 0, err
	}
	route, _ := registry.RouteOf(registry.Ingest)
	var items []work.NewItem
	var edges [][]any
	var begin []work.NewItem // of items, those that are no bad rows
	for _, j := range jobs {
		if j.Row > j.Line {
			return 0, fmt.Errorf("line %d, row %d: %w: a row is not behind its line", j.Line, j.Row, registry.ErrInvalid)
		}
		if there[j.Line] {
			continue
		}
		there[j.Line] = true
		if j, err = ownJob(batch, submitted, j); err != nil {
			return 0, err
		}
		if !counted {
			j.Row = 0
		}
		j.Spec.RouteVersion = route.Version
		n := work.NewItem{
			ID: sqldb.NewID(), Tenant: batch.Tenant, Collection: batch.Collection, Parent: batch.ID, Line: j.Line, Row: j.Row,
			Action: registry.Ingest, Stage: route.First(), Status: registry.Pending, Priority: j.Priority, Name: j.Name,
			Spec: j.Spec, Actor: batch.CreatedBy, Storages: batch.Storages, Optional: batch.Optional,
		}
		var satisfied any
		if j.Fault != "" {
			n.Status, n.Note, n.Code, n.Class, satisfied = registry.Failed, j.Fault, j.Code, cmp.Or(j.Class, registry.ContentFault), t.Now
		} else {
			begin = append(begin, n)
		}
		items = append(items, n)
		edges = append(edges, []any{batch.ID, n.ID, satisfied})
	}
	if err := t.Insert(items...); err != nil {
		return 0, err
	}
	waiting, err := t.linesOf(batch, begin)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(t.InsertRows(insertWaiting, waiting), t.InsertRows(insertEdge, edges)); err != nil {
		return 0, fmt.Errorf("write locks and edges of jobs: %w", err)
	}
	if err := t.out.TellBorn(items); err != nil {
		return 0, fmt.Errorf("have bad rows told of: %w", err)
	}
	if err := t.expandedTo(batch, jobs); err != nil {
		return 0, err
	}
	// One update of the parent for all rows: it is the hot row of a large batch (R23).
	return len(items), t.Do(`UPDATE work_item SET blocker_count = blocker_count + $2, updated_at = $3 WHERE id = $1`, batch.ID, len(begin), t.Now)
}

// linesOf are the places that new jobs of a batch have in the queues for locks: their batch's.
func (t *tx) linesOf(batch registry.WorkItem, jobs []work.NewItem) (places [][]any, err error) {
	specs := make([]registry.Spec, len(jobs))
	for i, n := range jobs {
		specs[i] = n.Spec
	}
	lines, err := catalog.LockKeys(t.Tx, batch.Tenant, specs...)
	for i, keys := range lines {
		for _, key := range keys {
			places = append(places, []any{key, jobs[i].ID, sqldb.Micros(batch.CreatedAt)})
		}
	}
	return places, err
}

// expandedTo notes in a batch's results how far it is expanded.
func (t *tx) expandedTo(batch registry.WorkItem, jobs []registry.NewJob) error {
	var line int64
	if raw, ok := batch.Results[registry.ResultExpanded]; ok {
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("read how far batch %s is expanded: %w", batch.ID, err)
		}
	}
	for _, j := range jobs {
		line = max(line, j.Line)
	}
	return t.SetResult(batch, registry.ResultExpanded, json.RawMessage(strconv.FormatInt(line, 10)))
}

// The statements that write what a job begins with.
var (
	insertWaiting = sqldb.InsertInto(`INSERT INTO lock_wait (key, item_id, submitted_at)`, `($1, $2, $3)`)
	insertEdge    = sqldb.InsertInto(`INSERT INTO work_dep (item_id, requires_id, wait_for, satisfied_at)`, `($1, $2, 'settled', $3)`)
)

// rowsCounted says whether a batch's rows have their ordinals so far. While a fleet is replaced, a
// program that does not count rows may make some jobs of a batch; the later ones go without
// ordinals then, so that those that are shown keep their order.
func (t *tx) rowsCounted(batch string) (counted bool, err error) {
	var last int64
	err = t.Get(`SELECT ordinal FROM work_item WHERE parent_id = $1 ORDER BY row_no DESC LIMIT 1`, []any{batch}, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("look whether rows are counted: %w", err)
	}
	return last > 0, nil
}

// rowsThere says which of a batch's lines, from the first to the last of some, are jobs already.
func (t *tx) rowsThere(batch string, jobs []registry.NewJob) (there map[int64]bool, err error) {
	there = map[int64]bool{}
	byLine := func(a, b registry.NewJob) int { return cmp.Compare(a.Line, b.Line) }
	err = sqldb.Each(t.Ask(`SELECT row_no FROM work_item WHERE parent_id = $1 AND row_no BETWEEN $2 AND $3`,
		batch, slices.MinFunc(jobs, byLine).Line, slices.MaxFunc(jobs, byLine).Line), "look for rows that are jobs", func(row sqldb.Scanner) error {
		var line int64
		if err := row.Scan(&line); err != nil {
			return err
		}
		there[line] = true
		return nil
	})
	return there, err
}
