package work

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// live is an SQL condition: attempt a is not closed. Statements that look for an attempt by its key
// use it instead of finished_at IS NULL. With that PostgreSQL may read the index of all live
// attempts, and what was closed since the last VACUUM, if it was planned while there were few.
const live = `COALESCE(a.finished_at, 0) = 0`

// SelectAttempt selects what ScanAttempt reads.
const SelectAttempt = `SELECT item_id, n, stage, worker, started_at, lease_until, finished_at, outcome, error, progress FROM attempt `

// ScanAttempt reads a row of SelectAttempt.
func ScanAttempt(row sqldb.Scanner) (registry.Attempt, error) {
	var a registry.Attempt
	var started, lease int64
	var finished sql.NullInt64
	var progress string
	err := row.Scan(&a.ItemID, &a.N, &a.Stage, &a.Worker, &started, &lease, &finished, &a.Outcome, &a.Error, &progress)
	if err != nil {
		return a, err
	}
	a.StartedAt, a.LeaseUntil = sqldb.FromMicros(started), sqldb.FromMicros(lease)
	if finished.Valid {
		at := sqldb.FromMicros(finished.Int64)
		a.FinishedAt = &at
	}
	if err := json.Unmarshal([]byte(progress), &a.Progress); err != nil {
		return a, fmt.Errorf("decode progress of %s/%d: %w", a.ItemID, a.N, err)
	}
	return a, nil
}

// Attempts implements registry.AttemptReader.
func (e *Engine) Attempts(ctx context.Context, itemID string) (out []registry.Attempt, err error) {
	return sqldb.Collect(e.db.Read.Ask(ctx, SelectAttempt+`WHERE item_id = $1 ORDER BY n`, itemID), "list attempts of "+itemID, ScanAttempt)
}
