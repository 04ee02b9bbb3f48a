package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// remove gives an item up. A batch's jobs follow by a bulk act of their own.
func (t *tx) remove(it registry.WorkItem, c registry.Command) error {
	if err := t.may(it, c.Act, registry.Deleted); err != nil {
		return err
	}
	if err := t.confirmed(it, c, t.consequencesOfDelete); err != nil {
		return err
	}
	ch := changeBy(it, c, registry.Deleted)
	ch.note = done(c)
	if err := t.move(it, ch); err != nil {
		return err
	}
	// The staging of what was aborted has been seen to, but not the upload of a batch whose jobs go only now.
	if it.Status != registry.Aborted || it.Action == registry.Batch {
		if err := t.tidy(it, c.Actor); err != nil {
			return err
		}
	}
	if err := errors.Join(t.endHold(it, c.Actor), t.abortDependents(it, c.Reason, c.Actor)); err != nil {
		return err
	}
	return t.family(it, c)
}

// endHold takes away the hold on an item that is given up for good: what of its jobs is only carried on would be held by it for ever.
func (t *tx) endHold(it registry.WorkItem, actor string) error {
	if !it.OwnHold {
		return nil
	}
	for _, scope := range []registry.HoldScope{registry.HoldItem, registry.HoldBatch} {
		if err := t.removeHold(scope, it.ID, actor); err != nil && !errors.Is(err, registry.ErrNotFound) {
			return fmt.Errorf("release the hold on item %s: %w", it.ID, err)
		}
	}
	return nil
}

// confirmed returns a *registry.ConfirmationNeeded when an act has consequences that nobody confirmed.
func (t *tx) confirmed(it registry.WorkItem, c registry.Command, consequences func(registry.WorkItem) ([]string, error)) error {
	if c.Confirmed {
		return nil
	}
	needed, err := consequences(it)
	switch {
	case err != nil:
		return fmt.Errorf("look what %s of item %s would take along: %w", c.Act, it.ID, err)
	case len(needed) > 0:
		return &registry.ConfirmationNeeded{ItemID: it.ID, Act: c.Act, Consequences: needed}
	}
	return nil
}

// inOpenBatch says whether an item is a job of a batch that has still to report.
func (t *tx) inOpenBatch(it registry.WorkItem) (bool, error) {
	if it.ParentID == "" {
		return false, nil
	}
	var status registry.Status
	err := t.get(`SELECT status FROM work_item WHERE id = $1`, []any{it.ParentID}, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil && !status.Settled(), err
}

// consequencesOfDelete are what a delete cannot take back, a sentence each.
func (t *tx) consequencesOfDelete(it registry.WorkItem) ([]string, error) {
	if it.Action == registry.Batch {
		told, err := t.endToldTo(it, registry.Deleted)
		if err != nil {
			return nil, err
		}
		jobs, err := t.consequencesForJobs(it, registry.ActDelete)
		return append([]string{told}, jobs...), err
	}
	var out []string
	open, err := t.inOpenBatch(it)
	if err != nil {
		return nil, err
	}
	if open {
		out = append(out, fmt.Sprintf("batch %s is not completed: its depositor will not be told of this job", it.ParentID))
	}
	kept, err := t.keptOf(it)
	if err != nil {
		return nil, err
	}
	out = append(out, kept...)
	if it.DoneBytes > 0 && it.Status != registry.Aborted {
		out = append(out, bytesText(it.DoneBytes)+" in staging go")
	}
	return out, nil
}

// keptOf says what stays of a job whose object is preserved, and what of it nobody is told or does any more.
func (t *tx) keptOf(it registry.WorkItem) (out []string, err error) {
	if it.Commitment != registry.Preserved {
		return nil, nil
	}
	var object string
	var version int
	err = t.get(`SELECT object_id, version FROM object_version WHERE item_id = $1 AND status = 'recorded'`, []any{it.ID}, &object, &version)
	if err != nil {
		return nil, err
	}
	out = append(out, fmt.Sprintf("version %d of %s is preserved and stays", version, object))
	to, err := it.Receiver()
	if err != nil {
		return nil, err
	}
	if to != nil {
		out = append(out, to.Target()+" is not told that it is preserved")
	}
	if it.Stage != registry.Notify {
		out = append(out, "what its job had still to do after that is not done, such as making its name public")
	}
	return out, nil
}

// endToldTo says who hears that a batch ends so.
func (t *tx) endToldTo(batch registry.WorkItem, status registry.Status) (string, error) {
	to, err := t.tellsEnd(batch, status)
	if err != nil {
		return "", err
	}
	reported, err := t.hasReport(batch.ID)
	switch {
	case err != nil:
		return "", err
	case len(to) > 0:
		return "a mail tells " + strings.Join(to, ", ") + " that it was " + string(status) + ", and the reason given; no report will come", nil
	case reported:
		return "the depositor is told nothing more than what the last report said", nil
	}
	return "the depositor is not notified of this", nil
}

// consequencesForJobs are what becomes of a batch's jobs when it is aborted or deleted, a sentence each.
func (t *tx) consequencesForJobs(batch registry.WorkItem, act registry.Act) (out []string, err error) {
	const open = `j.status IN ('prepare', 'pending', 'running')`
	// reach is what the act is asked of, besides what it leaves alone: what has begun to store its object is only carried on, and what
	// is preserved completes when it is still at work.
	reach, ended := open, "aborted"
	if act == registry.ActDelete {
		reach, ended = `j.status NOT IN ('completed', 'deleted')`, "deleted"
	}
	goes := reach + ` AND NOT (j.commitment = 'announced' OR j.commitment = 'preserved' AND ` + open + `)`
	var gone, stopped, carried, finishing, untold, kept, failed, undelivered, staged, bytes int64
	err = t.get(`SELECT COUNT(CASE WHEN `+goes+` THEN 1 END), COUNT(CASE WHEN `+goes+` AND `+open+` THEN 1 END),
			COUNT(CASE WHEN `+reach+` AND j.commitment = 'announced' THEN 1 END),
			COUNT(CASE WHEN j.commitment = 'preserved' AND `+open+` THEN 1 END),
			COUNT(CASE WHEN j.commitment = 'preserved' AND `+reach+` AND NOT `+open+` THEN 1 END),
			COUNT(CASE WHEN j.status = 'completed' THEN 1 END),
			COUNT(CASE WHEN j.status IN ('failed', 'cancelled') AND j.commitment <> 'preserved' THEN 1 END),
			COUNT(CASE WHEN j.status IN ('failed', 'cancelled') AND j.commitment = 'preserved' THEN 1 END),
			COUNT(CASE WHEN `+goes+` AND j.status <> 'aborted' AND j.done_bytes > 0 THEN 1 END),
			COALESCE(SUM(CASE WHEN `+goes+` AND j.status <> 'aborted' THEN j.done_bytes ELSE 0 END), 0)
		FROM (SELECT i.status, i.done_bytes, `+commitment+` AS commitment FROM work_item i WHERE i.parent_id = $1) j`, []any{batch.ID},
		&gone, &stopped, &carried, &finishing, &untold, &kept, &failed, &undelivered, &staged, &bytes)
	if err != nil {
		return nil, err
	}
	if gone > 0 {
		text := either(gone, "1 job is ", "%d jobs are ") + ended
		if stopped > 0 && act == registry.ActDelete {
			text += fmt.Sprintf(", %d of them stopped first", stopped)
		}
		out = append(out, text)
	}
	if staged > 0 {
		out = append(out, fmt.Sprintf("%s in staging of %s go", bytesText(bytes), count(staged, "job")))
	}
	if kept > 0 {
		out = append(out, fmt.Sprintf("what %s stored stays", count(kept, "completed job")))
	}
	if failed > 0 && act == registry.ActAbort {
		out = append(out, either(failed, "1 job that failed or was cancelled stays as it is", "%d jobs that failed or were cancelled stay as they are"))
	}
	if undelivered > 0 && act == registry.ActAbort {
		out = append(out, either(undelivered, "1 job whose object is preserved, but whose callback was not delivered, stays as it is",
			"%d jobs whose objects are preserved, but whose callbacks were not delivered, stay as they are"))
	}
	if untold > 0 {
		out = append(out, either(untold, "the object of 1 job that did not complete is preserved and stays",
			"the objects of %d jobs that did not complete are preserved and stay"))
	}
	if finishing > 0 && act == registry.ActDelete {
		out = append(out, either(finishing, "1 job whose object is preserved already completes; its receiver is not told",
			"%d jobs whose objects are preserved already complete; their receivers are not told"))
	}
	if finishing > 0 && act == registry.ActAbort {
		out = append(out, either(finishing, "1 job whose object is preserved already completes", "%d jobs whose objects are preserved already complete"))
	}
	if carried > 0 {
		out = append(out, either(carried, "1 job is past the point of no return: it is not "+ended+", and its version is carried on",
			"%d jobs are past the point of no return: they are not "+ended+", and their versions are carried on"))
	}
	return out, nil
}

// either is the sentence about one, or about several with their number in it.
func either(n int64, one, several string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(several, n)
}

// bytesText is a size for people.
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
