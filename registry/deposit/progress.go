package deposit

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// BatchProgress implements registry.ReportReader. It sums up rows and keeps no counters (I9).
func (s *Deposits) BatchProgress(ctx context.Context, id string) (registry.BatchProgress, error) {
	batch, err := s.work.Item(ctx, id)
	if err != nil {
		return registry.BatchProgress{}, err
	}
	p := registry.BatchProgress{
		BatchID: id, State: batch.State, Settled: batch.Status.Settled(), Expanded: batch.Stage != registry.Expand,
		States: map[registry.State]int64{}, Error: batch.Note, Class: batch.ErrorClass,
		Held: batch.State == registry.StateHeld,
	}
	if raw, ok := batch.Results[registry.ResultDuplicateOf]; ok {
		if err := json.Unmarshal(raw, &p.DuplicateOf); err != nil {
			return p, fmt.Errorf("decode the duplicate of batch %s: %w", id, err)
		}
	}
	if err := s.sumJobs(ctx, &p); err != nil {
		return p, fmt.Errorf("sum up the jobs of batch %s: %w", id, err)
	}
	if p.Current, err = s.runningJobs(ctx, id); err != nil {
		return p, fmt.Errorf("list running jobs of batch %s: %w", id, err)
	}
	return p, nil
}

// progressRows is how many jobs one statement sums up. SQLite sorts groups in memory, and a slow
// reader keeps it from truncating the log (R25). Each job has one row, so it counts once even if it
// changes meanwhile.
const progressRows = 20_000

func (s *Deposits) sumJobs(ctx context.Context, p *registry.BatchProgress) error {
	var sum jobSums
	for after := int64(-1); ; {
		// Portions follow the rows that exist: workers choose the line numbers.
		var last sql.NullInt64
		err := s.db.Read.QueryRowContext(ctx, `SELECT MAX(row_no) FROM (SELECT row_no FROM work_item WHERE parent_id = $1 AND row_no > $2
			ORDER BY row_no`+sqldb.Limit(progressRows)+`) AS portion`, p.BatchID, after).Scan(&last)
		if err != nil {
			return err
		}
		if !last.Valid {
			break
		}
		if err := s.sumRows(ctx, p, &sum, after+1, last.Int64); err != nil {
			return err
		}
		after = last.Int64
	}
	p.SizeKnown = p.Expanded && sum.sizeless == 0
	p.Held = p.Held || (p.Expanded && p.Open > 0 && sum.held == p.Open)
	return nil
}

// jobSums are sums that the progress does not show.
type jobSums struct{ held, sizeless int64 }

// sumRows adds the jobs with line numbers from first to last.
func (s *Deposits) sumRows(ctx context.Context, p *registry.BatchProgress, sum *jobSums, first, last int64) (err error) {
	// A refused row has no size, and the total counts as known without it.
	return sqldb.Each(s.db.Read.Ask(ctx, `SELECT i.action, i.stage, i.status, i.error_class, CASE WHEN i.attempt > 0 THEN 1 ELSE 0 END,
			i.status = 'pending' AND `+work.HeldBy+`, CASE WHEN i.status IN ('failed', 'deleted') THEN i.commitment ELSE '' END, COUNT(*),
			`+sqldb.Sum(`CASE WHEN i.files > 0 THEN i.files ELSE 0 END`)+`, `+sqldb.Sum(`i.done_files`)+`,
			`+sqldb.Sum(`CASE WHEN i.size_bytes > 0 THEN i.size_bytes ELSE 0 END`)+`, `+sqldb.Sum(`i.done_bytes`)+`,
			COUNT(CASE WHEN i.size_bytes < 0 AND i.status IN ('pending', 'running') THEN 1 END)
		FROM work_item i WHERE i.parent_id = $1 AND i.row_no BETWEEN $2 AND $3 GROUP BY 1, 2, 3, 4, 5, 6, 7`, p.BatchID, first, last), "", func(row sqldb.Scanner) error {
		var pos registry.Position
		var class registry.ErrorClass
		var n, sizeless int64
		var files, doneFiles, bytes, doneBytes float64
		err := row.Scan(&pos.Action, &pos.Stage, &pos.Status, &class, &pos.Attempt, &pos.Held, &pos.Commitment, &n,
			&files, &doneFiles, &bytes, &doneBytes, &sizeless)
		if err != nil {
			return err
		}
		p.States[registry.StateOf(pos)] += n
		p.Jobs += n
		p.Files, p.DoneFiles = sqldb.Whole(float64(p.Files)+files), sqldb.Whole(float64(p.DoneFiles)+doneFiles)
		p.Bytes, p.DoneBytes = sqldb.Whole(float64(p.Bytes)+bytes), sqldb.Whole(float64(p.DoneBytes)+doneBytes)
		sum.sizeless += sizeless
		switch {
		case pos.Status == registry.Completed:
			p.Completed += n
		case pos.Commitment == registry.Preserved:
			p.Preserved += n
		case pos.Status == registry.Deleted: // not part of the batch any more
		case pos.Status.Settled():
			p.Failed += n
			if class == registry.ContentFault {
				p.Content += n
			}
		default:
			p.Open += n
			if pos.Held {
				sum.held += n
			}
		}
		return nil
	})
}

// runningJobs returns the names of up to three running jobs.
func (s *Deposits) runningJobs(ctx context.Context, id string) ([]string, error) {
	return s.db.Column(ctx, `SELECT name FROM work_item WHERE parent_id = $1 AND status = 'running' ORDER BY row_no LIMIT 3`, id)
}
