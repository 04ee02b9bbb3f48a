// Package deposit keeps what depositors submit: uploads with their quotas, submissions alone and in
// graphs, the jobs of a batch with their progress, and reports. It creates the items that the
// engine carries through the pipeline.
package deposit

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/outbound"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Deposits keeps uploads, submissions, batches and reports.
type Deposits struct {
	db   *sqldb.DB
	work *work.Engine
	out  *outbound.Outbound
}

// New returns the deposits of an engine's items.
func New(db *sqldb.DB, engine *work.Engine, out *outbound.Outbound) *Deposits {
	return &Deposits{db: db, work: engine, out: out}
}

// tx is the engine's open transaction with this subject's statements.
type tx struct {
	*work.Tx
	store *Deposits
	out   *outbound.Tx
}

func (s *Deposits) in(t *work.Tx) *tx { return &tx{Tx: t, store: s, out: s.out.In(t)} }

func (s *Deposits) write(ctx context.Context, fn func(*tx) error) error {
	return s.work.Write(ctx, func(t *work.Tx) error { return fn(s.in(t)) })
}

// Join adds the hooks of deposits to the engine.
func (s *Deposits) Join(h *work.Hooks) {
	h.Settled = append(h.Settled, func(t *work.Tx, end work.Shift) error {
		if end.Status != registry.Completed {
			return nil
		}
		in := s.in(t)
		return errors.Join(in.releaseRoom(end.Item), in.queueTidyAgain(end.Item))
	})
	s.joinSteps(h)
	h.Reported = func(t *work.Tx, batch registry.WorkItem) (int64, int64, int64, bool, error) {
		return s.in(t).reported(batch)
	}
	h.Stopped = func(t *work.Tx, it registry.WorkItem, actor string) error { return s.in(t).queueTidy(it, actor) }
	h.Consequences = func(t *work.Tx, it registry.WorkItem, act registry.Act) ([]registry.Statement, error) {
		return s.in(t).consequences(it, act)
	}
	h.Purged = append(h.Purged, func(t *work.Tx, it registry.WorkItem) error { return s.in(t).purged(it) })
}

// purged deletes the reports and corrections of a purged batch, or a purged job from its batch's reports.
func (t *tx) purged(it registry.WorkItem) error {
	if it.ParentID != "" {
		return t.Do(`DELETE FROM report_job WHERE batch_id = $1 AND row_no = $2
			AND closing IN (SELECT closing FROM report WHERE batch_id = $1)`, it.ParentID, it.Line)
	}
	for _, query := range []string{
		`DELETE FROM report_job WHERE batch_id = $1`,
		`DELETE FROM report WHERE batch_id = $1`,
		`DELETE FROM report_draft WHERE batch_id = $1`,
		`DELETE FROM correction WHERE batch_id = $1`,
		`DELETE FROM correction WHERE corrected_by = $1`,
	} {
		if err := t.Do(query, it.ID); err != nil {
			return err
		}
	}
	return nil
}

// reported returns the counts of the report of the batch's present closing. stored is false if
// there is none.
func (t *tx) reported(batch registry.WorkItem) (bad, safe, all int64, stored bool, err error) {
	err = t.Get(`SELECT failed + preserved, preserved, jobs FROM report WHERE batch_id = $1 AND closing = $2`, []any{batch.ID, batch.Closing}, &bad, &safe, &all)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, 0, false, nil
	}
	return bad, safe, all, err == nil, err
}
