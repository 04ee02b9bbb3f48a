package sqlstore

import (
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

const selectAttempt = `SELECT item_id, n, stage, worker, started_at, lease_until, finished_at, outcome, error, progress FROM attempt `

func scanAttempt(row scanner) (registry.Attempt, error) {
	var a registry.Attempt
	var started, lease int64
	var finished sql.NullInt64
	var progress string
	err := row.Scan(&a.ItemID, &a.N, &a.Stage, &a.Worker, &started, &lease, &finished, &a.Outcome, &a.Error, &progress)
	if err != nil {
		return a, err
	}
	a.StartedAt, a.LeaseUntil = fromMicros(started), fromMicros(lease)
	if finished.Valid {
		at := fromMicros(finished.Int64)
		a.FinishedAt = &at
	}
	if err := json.Unmarshal([]byte(progress), &a.Progress); err != nil {
		return a, fmt.Errorf("decode progress of %s/%d: %w", a.ItemID, a.N, err)
	}
	return a, nil
}
