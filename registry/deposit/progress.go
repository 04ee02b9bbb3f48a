package deposit

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
	if p.Corrections, err = correctionsOf(batch, func(id string) (registry.WorkItem, error) { return s.work.Item(ctx, id) }); err != nil {
		return p, err
	}
	route, _ := registry.RouteOf(registry.Ingest) // there is one
	for _, step := range route.Steps {
		p.Stages = append(p.Stages, registry.StageProgress{Stage: step.Stage})
	}
	p.RecentSeconds = int64(min(registry.RecentSpan, s.db.Now().Sub(batch.CreatedAt)).Seconds())
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
	holds, err := s.work.Holds(ctx)
	if err != nil {
		return err
	}
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
		if err := s.sumRows(ctx, p, &sum, len(holds) > 0, after+1, last.Int64); err != nil {
			return err
		}
		if err := s.sumCorrected(ctx, p, after+1, last.Int64); err != nil {
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

// sizes are the sums of a statement over jobs. A refused row has no size, and the total counts as
// known without it.
type sizes struct {
	jobs, recent, sizeless             int64
	files, doneFiles, bytes, doneBytes float64
}

func (z *sizes) into() []any {
	return []any{&z.jobs, &z.recent, &z.sizeless, &z.files, &z.doneFiles, &z.bytes, &z.doneBytes}
}

var sumsOfSizes = `COUNT(*), COUNT(CASE WHEN i.finished_at >= $4 THEN 1 END), COUNT(CASE WHEN i.size_bytes < 0 AND i.status IN ('pending', 'running') THEN 1 END),
	COALESCE(` + sqldb.Sum(`CASE WHEN i.files > 0 THEN i.files ELSE 0 END`) + `, 0), COALESCE(` + sqldb.Sum(`i.done_files`) + `, 0),
	COALESCE(` + sqldb.Sum(`CASE WHEN i.size_bytes > 0 THEN i.size_bytes ELSE 0 END`) + `, 0), COALESCE(` + sqldb.Sum(`i.done_bytes`) + `, 0)`

// add adds the sums to the progress.
func (z *sizes) add(p *registry.BatchProgress, sum *jobSums) {
	p.Files, p.DoneFiles = sqldb.Whole(float64(p.Files)+z.files), sqldb.Whole(float64(p.DoneFiles)+z.doneFiles)
	p.Bytes, p.DoneBytes = sqldb.Whole(float64(p.Bytes)+z.bytes), sqldb.Whole(float64(p.DoneBytes)+z.doneBytes)
	p.Recent += z.recent
	sum.sizeless += z.sizeless
}

// sumRows adds the jobs with row numbers from first to last, by one statement: otherwise a job that
// changes meanwhile could count twice. Most jobs are completed or pending. These are counted without
// groups, because a database sorts what it groups, which takes several times as long as reading it.
func (s *Deposits) sumRows(ctx context.Context, p *registry.BatchProgress, sum *jobSums, held bool, first, last int64) error {
	since := sqldb.Micros(s.db.Now().Add(-registry.RecentSpan))
	rows := ` FROM work_item i WHERE i.parent_id = $1 AND i.row_no BETWEEN $2 AND $3 AND i.status `
	columns := fmt.Sprintf(`, COUNT(CASE WHEN i.stage = '%s' AND i.attempt = 0 THEN 1 END)`, p.Stages[0].Stage)
	for _, at := range p.Stages {
		columns += fmt.Sprintf(`, COUNT(CASE WHEN i.stage = '%s' THEN 1 END)`, at.Stage)
	}
	none := strings.Repeat(`, 0`, 1+len(p.Stages))
	query := `SELECT 'completed', '', '', '', '', 0, FALSE, '', ` + sumsOfSizes + none + rows + `= 'completed'`
	// Named one by one they are found by the index of statuses; excluded ones are read, too.
	others := slices.DeleteFunc(registry.Statuses(), func(s registry.Status) bool { return s == registry.Completed })
	if !held {
		query += ` UNION ALL SELECT 'pending', '', '', '', '', 0, FALSE, '', ` + sumsOfSizes + columns + rows + `= 'pending'`
		others = slices.DeleteFunc(others, func(s registry.Status) bool { return s == registry.Pending })
	}
	query += ` UNION ALL SELECT 'other', i.action, i.stage, i.status, i.error_class, CASE WHEN i.attempt > 0 THEN 1 ELSE 0 END,
			i.status = 'pending' AND ` + work.HeldBy + `, CASE WHEN i.status IN ('failed', 'deleted') THEN i.commitment ELSE '' END, ` +
		sumsOfSizes + none + rows + `IN ` + sqldb.Names(others) + ` GROUP BY 2, 3, 4, 5, 6, 7, 8`
	return sqldb.Each(s.db.Read.Ask(ctx, query, p.BatchID, first, last, since), "", func(row sqldb.Scanner) error {
		var kind string
		var pos registry.Position
		var class registry.ErrorClass
		var z sizes
		var fresh int64                      // pending in the first stage, never claimed
		here := make([]int64, len(p.Stages)) // pending, by stage
		into := append([]any{&kind, &pos.Action, &pos.Stage, &pos.Status, &class, &pos.Attempt, &pos.Held, &pos.Commitment}, z.into()...)
		into = append(into, &fresh)
		for i := range here {
			into = append(into, &here[i])
		}
		if err := row.Scan(into...); err != nil {
			return err
		}
		z.add(p, sum)
		switch kind {
		case "completed":
			p.Add(registry.Position{Action: registry.Ingest, Stage: p.Stages[len(p.Stages)-1].Stage, Status: registry.Completed}, "", z.jobs)
		case "pending":
			here[0] -= fresh
			p.Add(registry.Position{Action: registry.Ingest, Stage: p.Stages[0].Stage, Status: registry.Pending}, "", fresh)
			for i, at := range p.Stages {
				p.Add(registry.Position{Action: registry.Ingest, Stage: at.Stage, Status: registry.Pending, Attempt: 1}, "", here[i])
			}
		default:
			p.Add(pos, class, z.jobs)
			if pos.Held {
				sum.held += z.jobs
			}
		}
		return nil
	})
}

// runningJobs returns the names of up to three running jobs.
func (s *Deposits) runningJobs(ctx context.Context, id string) ([]string, error) {
	return s.db.Column(ctx, `SELECT name FROM work_item WHERE parent_id = $1 AND status = 'running' ORDER BY row_no LIMIT 3`, id)
}
