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

// expanding returns the batch of a lease. It returns ErrInvalid unless the batch is at expand.
func (t *tx) expanding(l registry.Lease) (registry.WorkItem, error) {
	batch, err := t.Live(l)
	if err == nil && (batch.Action != registry.Batch || batch.Stage != registry.Expand) {
		err = fmt.Errorf("%w: item %s is not a batch being expanded", registry.ErrInvalid, batch.ID)
	}
	return batch, err
}

// addJobs adds the jobs of lines that have none yet (R22), with a constant number of statements. It
// returns how many it added.
func (t *tx) addJobs(batch registry.WorkItem, jobs []registry.NewJob) (added int, err error) {
	if len(jobs) == 0 {
		return 0, nil
	}
	existing, err := t.existingLines(batch.ID, jobs)
	if err != nil {
		return 0, err
	}
	counted, err := t.hasOrdinals(batch.ID)
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
	var begin []work.NewItem // the items without a fault
	for _, j := range jobs {
		if j.Row > j.Line {
			return 0, fmt.Errorf("line %d, row %d: %w: the row number is larger than the line number", j.Line, j.Row, registry.ErrInvalid)
		}
		if existing[j.Line] {
			continue
		}
		existing[j.Line] = true
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
		if n.Spec.Trace = submitted.Trace; j.Spec.URL != submitted.URL { // a row of a manifest
			n.Spec.Trace = submitted.Trace.OfRow(n.ID)
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
	waiting, err := t.lockPlaces(batch, begin)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(t.InsertRows(insertWaiting, waiting), t.InsertRows(insertEdge, edges)); err != nil {
		return 0, fmt.Errorf("write locks and edges of jobs: %w", err)
	}
	if err := t.out.QueueFailureCallbacks(items); err != nil {
		return 0, fmt.Errorf("queue callbacks for refused rows: %w", err)
	}
	if err := t.noteExpanded(batch, jobs); err != nil {
		return 0, err
	}
	// One update for all rows: the parent is the hot row of a large batch (R23).
	return len(items), t.Do(`UPDATE work_item SET blocker_count = blocker_count + $2, updated_at = $3 WHERE id = $1`, batch.ID, len(begin), t.Now)
}

// lockPlaces returns the places of new jobs in the lines for their locks. A job stands where its
// batch stands.
func (t *tx) lockPlaces(batch registry.WorkItem, jobs []work.NewItem) (places [][]any, err error) {
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

// noteExpanded records in the batch's results the last line that has a job.
func (t *tx) noteExpanded(batch registry.WorkItem, jobs []registry.NewJob) error {
	var line int64
	if raw, ok := batch.Results[registry.ResultExpanded]; ok {
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("decode the last expanded line of batch %s: %w", batch.ID, err)
		}
	}
	for _, j := range jobs {
		line = max(line, j.Line)
	}
	return t.SetResult(batch, registry.ResultExpanded, json.RawMessage(strconv.FormatInt(line, 10)))
}

// Statements that write the locks and the edge of a new job.
var (
	insertWaiting = sqldb.InsertInto(`INSERT INTO lock_wait (key, item_id, submitted_at)`, `($1, $2, $3)`)
	insertEdge    = sqldb.InsertInto(`INSERT INTO work_dep (item_id, requires_id, wait_for, satisfied_at)`, `($1, $2, 'settled', $3)`)
)

// hasOrdinals says whether the batch's jobs have ordinals so far. During a rolling upgrade, an
// older program may add jobs without. Then later ones go without as well, so that lists keep the
// order of the rows.
func (t *tx) hasOrdinals(batch string) (counted bool, err error) {
	var last int64
	err = t.Get(`SELECT ordinal FROM work_item WHERE parent_id = $1 ORDER BY row_no DESC LIMIT 1`, []any{batch}, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("look up the ordinals of jobs: %w", err)
	}
	return last > 0, nil
}

// existingLines returns which lines have a job, between the first and the last line of jobs.
func (t *tx) existingLines(batch string, jobs []registry.NewJob) (existing map[int64]bool, err error) {
	existing = map[int64]bool{}
	byLine := func(a, b registry.NewJob) int { return cmp.Compare(a.Line, b.Line) }
	err = sqldb.Each(t.Ask(`SELECT row_no FROM work_item WHERE parent_id = $1 AND row_no BETWEEN $2 AND $3`,
		batch, slices.MinFunc(jobs, byLine).Line, slices.MaxFunc(jobs, byLine).Line), "list lines that have a job", func(row sqldb.Scanner) error {
		var line int64
		if err := row.Scan(&line); err != nil {
			return err
		}
		existing[line] = true
		return nil
	})
	return existing, err
}
