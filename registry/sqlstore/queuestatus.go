package sqlstore

import (
	"context"
	"database/sql"
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

// Each waiting item is counted once: as held, as waiting for something else, or as ready.
var waitingByStage = `SELECT stage, SUM(held), SUM(CASE WHEN held = 0 THEN waits ELSE 0 END), COUNT(*),
		MIN(CASE WHEN held = 0 AND waits = 0 THEN run_at END)
	FROM (SELECT i.stage AS stage, i.run_at AS run_at,
			CASE WHEN ` + heldBy + ` THEN 1 ELSE 0 END AS held,
			CASE WHEN i.run_at > $2 OR ` + blocked + ` OR ` + lockedOut + ` THEN 1 ELSE 0 END AS waits
		FROM work_item i WHERE i.tenant = $1 AND i.status = 'pending') w
	GROUP BY stage`

func (s *Store) addWaiting(ctx context.Context, q *registry.QueueStatus) (err error) {
	rows, err := s.read.QueryContext(ctx, waitingByStage, Tenant, micros(s.now()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var stage registry.Stage
		var held, waiting, all int64
		var oldest sql.NullInt64
		if err := rows.Scan(&stage, &held, &waiting, &all, &oldest); err != nil {
			return err
		}
		line := stageOf(q, stage)
		line.Held, line.Waiting, line.Ready = held, waiting, all-held-waiting
		if oldest.Valid {
			at := fromMicros(oldest.Int64)
			line.OldestReady = &at
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
