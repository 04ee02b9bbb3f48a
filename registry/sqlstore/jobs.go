package sqlstore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// mostJobs bounds a call of AddJobs, so that no transaction gets long (R25).
const mostJobs = 500

// AddJobs implements registry.Working.
func (s *Store) AddJobs(ctx context.Context, l registry.Lease, jobs []registry.NewJob) (int, error) {
	if len(jobs) > mostJobs {
		return 0, fmt.Errorf("add jobs to batch %s: %w: %d rows in one call, at most %d are taken", l.ItemID, registry.ErrInvalid, len(jobs), mostJobs)
	}
	added := 0
	err := s.write(ctx, func(t *tx) error {
		added = 0
		batch, err := t.live(l)
		if err != nil {
			return err
		}
		if batch.Action != registry.Batch || batch.Stage != registry.Expand {
			return fmt.Errorf("%w: item %s is not a batch being expanded", registry.ErrInvalid, batch.ID)
		}
		open := 0
		for _, j := range jobs {
			isNew, isOpen, err := t.addJob(batch, j)
			if err != nil {
				return fmt.Errorf("row %d: %w", j.Row, err)
			}
			if isNew {
				added++
			}
			if isOpen {
				open++
			}
		}
		// One update of the parent for all rows: it is the hot row of a large batch (R23).
		err = t.do(`UPDATE work_item SET blocker_count = blocker_count + $2, updated_at = $3 WHERE id = $1`,
			batch.ID, open, t.now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("add jobs to batch %s: %w", l.ItemID, err)
	}
	return added, nil
}

func (t *tx) addJob(batch registry.WorkItem, j registry.NewJob) (added, open bool, err error) {
	if j.Row < 1 {
		return false, false, fmt.Errorf("%w: rows count from 1", registry.ErrInvalid)
	}
	var there int
	err = t.get(`SELECT COUNT(*) FROM work_item WHERE parent_id = $1 AND row_no = $2`, []any{batch.ID, j.Row}, &there)
	if err != nil || there > 0 {
		return false, false, err
	}
	route, _ := registry.RouteOf(registry.Ingest)
	j.Spec.RouteVersion = route.Version
	n := newItem{
		id: newID(), tenant: batch.Tenant, collection: batch.Collection, parent: batch.ID, row: j.Row,
		action: registry.Ingest, stage: route.First(), status: registry.Pending, priority: j.Priority, name: j.Name,
		spec: j.Spec, actor: batch.CreatedBy, volume: batch.Volume,
	}
	if j.Fault != "" {
		n.status, n.note, n.class = registry.Failed, j.Fault, cmp.Or(j.Class, registry.ContentFault)
	}
	if err := t.insert(n); err != nil {
		return false, false, err
	}
	if n.status == registry.Pending {
		if err := t.standInLine(n.id, t.now, keysOf(n.spec)); err != nil {
			return false, false, err
		}
	}
	satisfied := any(nil)
	if n.status.Settled() {
		satisfied = t.now
	}
	err = t.do(`INSERT INTO work_dep (item_id, requires_id, wait_for, satisfied_at) VALUES ($1, $2, 'settled', $3)`,
		batch.ID, n.id, satisfied)
	return true, satisfied == nil, err
}
