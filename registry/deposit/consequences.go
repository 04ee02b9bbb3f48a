package deposit

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// consequences lists what an act cannot undo, a sentence each.
func (t *tx) consequences(it registry.WorkItem, act registry.Act) ([]string, error) {
	if act == registry.ActAbort {
		return t.consequencesOfAbort(it)
	}
	return t.consequencesOfDelete(it)
}

// consequencesOfAbort lists what an abort cannot undo. Every item has at least one: the abort
// itself.
func (t *tx) consequencesOfAbort(it registry.WorkItem) (out []string, err error) {
	switch it.Action {
	case registry.Batch:
		out = []string{"the batch ends for good: neither it nor the jobs aborted with it can be requeued; to try again, submit what is still wanted"}
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
		out = []string{"the job ends for good: it cannot be requeued; to try again, submit what is still wanted"}
		open, err := t.inOpenBatch(it)
		if err != nil {
			return nil, err
		}
		if open {
			out = append(out, fmt.Sprintf("batch %s reports it as failed", it.ParentID))
		}
	default:
		out = []string{"it ends for good: it cannot be requeued"}
	}
	if it.DoneBytes > 0 {
		out = append(out, bytesText(it.DoneBytes)+" in staging are deleted")
	}
	var waiting int64
	if err := t.Get(work.WaitsFor+`SELECT COUNT(*) FROM gone g JOIN work_item i ON i.id = g.id WHERE `+work.Abortable, []any{it.ID}, &waiting); err != nil {
		return nil, err
	}
	if waiting > 0 {
		out = append(out, registry.Either(waiting, "1 item that waits for its success is aborted, too", "%d items that wait for its success are aborted, too"))
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
func (t *tx) consequencesOfDelete(it registry.WorkItem) ([]string, error) {
	if it.Action == registry.Batch {
		notice, err := t.endNotice(it, registry.Deleted)
		if err != nil {
			return nil, err
		}
		jobs, err := t.consequencesForJobs(it, registry.ActDelete)
		return append([]string{notice}, jobs...), err
	}
	var out []string
	open, err := t.inOpenBatch(it)
	if err != nil {
		return nil, err
	}
	if open {
		out = append(out, fmt.Sprintf("batch %s is not completed: its report will not list this job", it.ParentID))
	}
	kept, err := t.preservedConsequences(it)
	if err != nil {
		return nil, err
	}
	out = append(out, kept...)
	if it.DoneBytes > 0 && it.Status != registry.Aborted {
		out = append(out, bytesText(it.DoneBytes)+" in staging are deleted")
	}
	return out, nil
}

// preservedConsequences lists, for a job with a preserved object, what is kept, who is not
// notified, and what the job no longer does.
func (t *tx) preservedConsequences(it registry.WorkItem) (out []string, err error) {
	if it.Commitment != registry.Preserved {
		return nil, nil
	}
	var object string
	var version int
	err = t.Get(`SELECT object_id, version FROM object_version WHERE item_id = $1 AND status = 'recorded'`, []any{it.ID}, &object, &version)
	if err != nil {
		return nil, err
	}
	out = append(out, fmt.Sprintf("version %d of %s is preserved and stays", version, object))
	to, err := it.Receiver()
	if err != nil {
		return nil, err
	}
	if to != nil {
		out = append(out, to.Target()+" is not notified that it is preserved")
	}
	if it.Stage != registry.Notify {
		out = append(out, "the job's remaining steps are skipped, such as making the object's name public")
	}
	return out, nil
}

// endNotice says who is notified when a batch ends with a status.
func (t *tx) endNotice(batch registry.WorkItem, status registry.Status) (string, error) {
	to, err := t.out.EndRecipients(batch, status)
	if err != nil {
		return "", err
	}
	reported, err := t.out.HasReport(batch.ID)
	switch {
	case err != nil:
		return "", err
	case len(to) > 0:
		return "a mail to " + strings.Join(to, ", ") + " says that it was " + string(status) + ", with the reason given; there will be no report", nil
	case reported:
		return "the depositor gets no further message after the last report", nil
	}
	return "the depositor is not notified of this", nil
}

// consequencesForJobs lists what an abort or a delete of a batch does to its jobs.
func (t *tx) consequencesForJobs(batch registry.WorkItem, act registry.Act) (out []string, err error) {
	const open = `j.status IN ('prepare', 'pending', 'running')`
	// reach selects the jobs that the act applies to, if nothing protects them. An announced
	// version is only rolled forward. A running job with a preserved object completes.
	reach, ended := open, "aborted"
	if act == registry.ActDelete {
		reach, ended = `j.status NOT IN ('completed', 'deleted')`, "deleted"
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
		text := registry.Either(gone, "1 job is ", "%d jobs are ") + ended
		if stopped > 0 && act == registry.ActDelete {
			text += fmt.Sprintf(", %d of them stopped first", stopped)
		}
		out = append(out, text)
	}
	if staged > 0 {
		out = append(out, fmt.Sprintf("%s in staging of %s are deleted", bytesText(sqldb.Whole(bytes)), registry.Count(staged, "job")))
	}
	if kept > 0 {
		out = append(out, fmt.Sprintf("what %s stored stays", registry.Count(kept, "completed job")))
	}
	if failed > 0 && act == registry.ActAbort {
		out = append(out, registry.Either(failed, "1 job that failed or was cancelled stays as it is", "%d jobs that failed or were cancelled stay as they are"))
	}
	if undelivered > 0 && act == registry.ActAbort {
		out = append(out, registry.Either(undelivered, "1 job whose object is preserved, but whose callback was not delivered, stays as it is",
			"%d jobs whose objects are preserved, but whose callbacks were not delivered, stay as they are"))
	}
	if untold > 0 {
		out = append(out, registry.Either(untold, "the object of 1 job that did not complete is preserved and stays",
			"the objects of %d jobs that did not complete are preserved and stay"))
	}
	if finishing > 0 && act == registry.ActDelete {
		out = append(out, registry.Either(finishing, "1 job whose object is preserved already completes; its receiver is not notified",
			"%d jobs whose objects are preserved already complete; their receivers are not notified"))
	}
	if finishing > 0 && act == registry.ActAbort {
		out = append(out, registry.Either(finishing, "1 job whose object is preserved already completes", "%d jobs whose objects are preserved already complete"))
	}
	if carried > 0 {
		out = append(out, registry.Either(carried, "1 job is past the point of no return: it is not "+ended+", and its version is carried on",
			"%d jobs are past the point of no return: they are not "+ended+", and their versions are carried on"))
	}
	return out, nil
}

// bytesText returns a size for people, such as "1.5 kB".
func bytesText(n int64) string {
	v, unit := float64(n), 0
	for units := len(" kMGTPE"); v >= 999.95 && unit < units-1; unit++ {
		v /= 1000
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %cB", v, " kMGTPE"[unit])
}
