package deposit

import (
	"database/sql"
	"errors"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// consequences lists what an act cannot undo, a statement each.
func (t *tx) consequences(it registry.WorkItem, act registry.Act) ([]registry.Statement, error) {
	if act == registry.ActAbort {
		return t.consequencesOfAbort(it)
	}
	return t.consequencesOfDelete(it)
}

// consequencesOfAbort lists what an abort cannot undo. Every item has at least one: the abort
// itself.
func (t *tx) consequencesOfAbort(it registry.WorkItem) (out []registry.Statement, err error) {
	switch it.Action {
	case registry.Batch:
		out = []registry.Statement{{Says: registry.SaysBatchEnds}}
		notice, err := t.endNotice(it, registry.Aborted)
		if err != nil {
			return nil, err
		}
		jobs, err := t.consequencesForJobs(it, registry.ActAbort)
		if err != nil {
			return nil, err
		}
		out = append(append(out, notice), jobs...)
	case registry.Ingest:
		out = []registry.Statement{{Says: registry.SaysJobEnds}}
		open, err := t.inOpenBatch(it)
		if err != nil {
			return nil, err
		}
		if open {
			out = append(out, registry.Statement{Says: registry.SaysReportedFailed, ItemID: it.ParentID})
		}
	default:
		out = []registry.Statement{{Says: registry.SaysItemEnds}}
	}
	if it.DoneBytes > 0 {
		out = append(out, registry.Statement{Says: registry.SaysStagingGoes, Bytes: it.DoneBytes})
	}
	var waiting int64
	if err := t.Get(work.WaitsFor+`SELECT COUNT(*) FROM gone g JOIN work_item i ON i.id = g.id WHERE `+work.Abortable, []any{it.ID}, &waiting); err != nil {
		return nil, err
	}
	if waiting > 0 {
		out = append(out, registry.Statement{Says: registry.SaysWaitingAborted, N: waiting})
	}
	return out, nil
}

// inOpenBatch says whether an item is a job of a batch that has not settled yet.
func (t *tx) inOpenBatch(it registry.WorkItem) (bool, error) {
	if it.ParentID == "" {
		return false, nil
	}
	var status registry.Status
	err := t.Get(`SELECT status FROM work_item WHERE id = $1`, []any{it.ParentID}, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil && !status.Settled(), err
}

// consequencesOfDelete lists what a delete cannot undo.
func (t *tx) consequencesOfDelete(it registry.WorkItem) ([]registry.Statement, error) {
	if it.Action == registry.Batch {
		notice, err := t.endNotice(it, registry.Deleted)
		if err != nil {
			return nil, err
		}
		jobs, err := t.consequencesForJobs(it, registry.ActDelete)
		return append([]registry.Statement{notice}, jobs...), err
	}
	var out []registry.Statement
	open, err := t.inOpenBatch(it)
	if err != nil {
		return nil, err
	}
	if open {
		out = append(out, registry.Statement{Says: registry.SaysNotListed, ItemID: it.ParentID})
	}
	kept, err := t.preservedConsequences(it)
	if err != nil {
		return nil, err
	}
	out = append(out, kept...)
	if it.DoneBytes > 0 && it.Status != registry.Aborted {
		out = append(out, registry.Statement{Says: registry.SaysStagingGoes, Bytes: it.DoneBytes})
	}
	return out, nil
}

// preservedConsequences lists, for a job with a preserved object, what is kept, who is not
// notified, and what the job no longer does.
func (t *tx) preservedConsequences(it registry.WorkItem) (out []registry.Statement, err error) {
	if it.Commitment != registry.Preserved {
		return nil, nil
	}
	var object string
	var version int64
	err = t.Get(`SELECT object_id, version FROM object_version WHERE item_id = $1 AND status = 'recorded'`, []any{it.ID}, &object, &version)
	if err != nil {
		return nil, err
	}
	out = append(out, registry.Statement{Says: registry.SaysVersionStays, N: version, Name: object})
	to, err := it.Receiver()
	if err != nil {
		return nil, err
	}
	if to != nil {
		out = append(out, registry.Statement{Says: registry.SaysReceiverUntold, Name: to.Target()})
	}
	if it.Stage != registry.Notify {
		out = append(out, registry.Statement{Says: registry.SaysStepsSkipped})
	}
	return out, nil
}

// endNotice says who is notified when a batch ends with a status.
func (t *tx) endNotice(batch registry.WorkItem, status registry.Status) (says registry.Statement, err error) {
	to, err := t.out.EndRecipients(batch, status)
	if err != nil {
		return says, err
	}
	reported, err := t.out.HasReport(batch.ID)
	switch {
	case err != nil:
		return says, err
	case len(to) > 0 && status == registry.Deleted:
		return registry.Statement{Says: registry.SaysMailDeleted, Name: strings.Join(to, ", ")}, nil
	case len(to) > 0:
		return registry.Statement{Says: registry.SaysMailAborted, Name: strings.Join(to, ", ")}, nil
	case reported:
		return registry.Statement{Says: registry.SaysLastReport}, nil
	}
	return registry.Statement{Says: registry.SaysDepositorUntold}, nil
}

// consequencesForJobs lists what an abort or a delete of a batch does to its jobs.
func (t *tx) consequencesForJobs(batch registry.WorkItem, act registry.Act) (out []registry.Statement, err error) {
	const open = `j.status IN ('prepare', 'pending', 'running')`
	// reach selects the jobs that the act applies to, if nothing protects them. An announced
	// version is only rolled forward. A running job with a preserved object completes.
	reach, ended, spared := open, registry.SaysJobsAborted, registry.SaysNotAborted
	if act == registry.ActDelete {
		reach, ended, spared = `j.status NOT IN ('completed', 'deleted')`, registry.SaysJobsDeleted, registry.SaysNotDeleted
	}
	goes := reach + ` AND NOT (j.commitment = 'announced' OR j.commitment = 'preserved' AND ` + open + `)`
	var gone, stopped, carried, finishing, untold, kept, failed, undelivered, staged int64
	var bytes float64
	err = t.Get(`SELECT COUNT(CASE WHEN `+goes+` THEN 1 END), COUNT(CASE WHEN `+goes+` AND `+open+` THEN 1 END),
			COUNT(CASE WHEN `+reach+` AND j.commitment = 'announced' THEN 1 END),
			COUNT(CASE WHEN j.commitment = 'preserved' AND `+open+` THEN 1 END),
			COUNT(CASE WHEN j.commitment = 'preserved' AND `+reach+` AND NOT `+open+` THEN 1 END),
			COUNT(CASE WHEN j.status = 'completed' THEN 1 END),
			COUNT(CASE WHEN j.status IN ('failed', 'cancelled') AND j.commitment <> 'preserved' THEN 1 END),
			COUNT(CASE WHEN j.status IN ('failed', 'cancelled') AND j.commitment = 'preserved' THEN 1 END),
			COUNT(CASE WHEN `+goes+` AND j.status <> 'aborted' AND j.done_bytes > 0 THEN 1 END),
			COALESCE(`+sqldb.Sum(`CASE WHEN `+goes+` AND j.status <> 'aborted' THEN j.done_bytes ELSE 0 END`)+`, 0)
		FROM (SELECT i.status, i.done_bytes, i.commitment FROM work_item i WHERE i.parent_id = $1) j`, []any{batch.ID},
		&gone, &stopped, &carried, &finishing, &untold, &kept, &failed, &undelivered, &staged, &bytes)
	if err != nil {
		return nil, err
	}
	if gone > 0 {
		one := registry.Statement{Says: ended, N: gone}
		if act == registry.ActDelete {
			one.Of = stopped
		}
		out = append(out, one)
	}
	add := func(says registry.Says, n int64, when bool) {
		if n > 0 && when {
			out = append(out, registry.Statement{Says: says, N: n})
		}
	}
	if staged > 0 {
		out = append(out, registry.Statement{Says: registry.SaysStagingGoes, N: staged, Bytes: sqldb.Whole(bytes)})
	}
	add(registry.SaysCompletedStay, kept, true)
	add(registry.SaysFailedStay, failed, act == registry.ActAbort)
	add(registry.SaysUndelivered, undelivered, act == registry.ActAbort)
	add(registry.SaysObjectsStay, untold, true)
	add(registry.SaysCompleteUntold, finishing, act == registry.ActDelete)
	add(registry.SaysCompleteYet, finishing, act == registry.ActAbort)
	add(spared, carried, true)
	return out, nil
}
