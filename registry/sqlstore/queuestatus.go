package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// QueueStatus implements registry.Reading. It reads the rows that wait or run, however many are settled.
func (s *Store) QueueStatus(ctx context.Context) (registry.QueueStatus, error) {
	q, err := s.queueStatus(ctx)
	if err != nil {
		return q, fmt.Errorf("add up the queue: %w", err)
	}
	return q, nil
}

func (s *Store) queueStatus(ctx context.Context) (q registry.QueueStatus, err error) {
	if q.Accepting, err = s.Accepting(ctx); err != nil {
		return q, err
	}
	paused, holds, err := s.paused(ctx)
	if err != nil {
		return q, err
	}
	q.Paused, q.Holds = paused, holds
	for _, stage := range registry.Stages() {
		q.Stages = append(q.Stages, registry.StageQueue{Stage: stage})
	}
	if err := s.addWaiting(ctx, &q); err != nil {
		return q, err
	}
	if err := s.addRunning(ctx, &q); err != nil {
		return q, err
	}
	f, err := s.fleet(ctx)
	if err != nil {
		return q, err
	}
	for i := range q.Stages {
		crew := f.of(q.Stages[i].Stage)
		q.Stages[i].Capacity, q.Stages[i].Free = crew.capacity, crew.free
	}
	return q, nil
}

// paused returns the hold on everything, nil when there is none, and the number of holds of any scope.
func (s *Store) paused(ctx context.Context) (*registry.Hold, int, error) {
	var n int
	if err := s.read.QueryRowContext(ctx, `SELECT COUNT(*) FROM hold`).Scan(&n); err != nil {
		return nil, 0, err
	}
	rows, err := s.read.QueryContext(ctx, selectHold+`WHERE scope = 'all'`)
	if err != nil {
		return nil, 0, err
	}
	holds, err := scanHolds(rows)
	if err != nil || len(holds) == 0 {
		return nil, n, err
	}
	return &holds[0], n, nil
}

// stageOf is the line of a stage; a stage of an older route has none.
func stageOf(q *registry.QueueStatus, stage registry.Stage) *registry.StageQueue {
	i := slices.IndexFunc(q.Stages, func(s registry.StageQueue) bool { return s.Stage == stage })
	if i < 0 {
		return &registry.StageQueue{}
	}
	return &q.Stages[i]
}

// heldApart is 1 for the rows i that a hold on a batch or a single item covers. The other scopes cover groups of rows
// alike, so that the aggregates ask registry.Hold.Covers once for each group instead of SQL for each row.
const heldApart = `CASE WHEN i.id IN (SELECT key FROM hold WHERE scope IN ('item', 'batch'))
	OR i.parent_id IN (SELECT key FROM hold WHERE scope = 'batch') THEN 1 ELSE 0 END`

// sharedHolds are the holds that cover groups of rows alike.
func (s *Store) sharedHolds(ctx context.Context) ([]registry.Hold, error) {
	rows, err := s.read.QueryContext(ctx, selectHold+`WHERE scope IN ('all', 'stage', 'collection', 'volume')`)
	if err != nil {
		return nil, fmt.Errorf("look up holds: %w", err)
	}
	return scanHolds(rows)
}

var waitingByGroup = `SELECT stage, collection, volume, apart, waits, COUNT(*), MIN(run_at)
	FROM (SELECT i.stage AS stage, i.collection AS collection, i.volume AS volume, i.run_at AS run_at, ` + heldApart + ` AS apart,
			CASE WHEN i.run_at > $2 OR ` + blocked + ` OR ` + lockedOut + ` THEN 1 ELSE 0 END AS waits
		FROM work_item i WHERE i.tenant = $1 AND i.status = 'pending') w
	GROUP BY stage, collection, volume, apart, waits`

// addWaiting counts each waiting item once: as held, as waiting for something else, or as ready.
func (s *Store) addWaiting(ctx context.Context, q *registry.QueueStatus) (err error) {
	holds, err := s.sharedHolds(ctx)
	if err != nil {
		return err
	}
	rows, err := s.read.QueryContext(ctx, waitingByGroup, Tenant, micros(s.now()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		group := registry.WorkItem{Status: registry.Pending}
		var apart, waits, n, oldest int64
		if err := rows.Scan(&group.Stage, &group.Collection, &group.Volume, &apart, &waits, &n, &oldest); err != nil {
			return err
		}
		line := stageOf(q, group.Stage)
		switch {
		case apart == 1 || slices.ContainsFunc(holds, func(h registry.Hold) bool { return h.Covers(group) }):
			line.Held += n
		case waits == 1:
			line.Waiting += n
		default:
			line.Ready += n
			if at := fromMicros(oldest); line.OldestReady == nil || at.Before(*line.OldestReady) {
				line.OldestReady = &at
			}
		}
	}
	return rows.Err()
}

func (s *Store) addRunning(ctx context.Context, q *registry.QueueStatus) (err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT stage, COUNT(*) FROM work_item WHERE tenant = $1 AND status = 'running' GROUP BY stage`, Tenant)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var stage registry.Stage
		var n int64
		if err := rows.Scan(&stage, &n); err != nil {
			return err
		}
		stageOf(q, stage).Running = n
		q.Running += n
	}
	return rows.Err()
}
