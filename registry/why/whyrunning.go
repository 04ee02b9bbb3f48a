package why

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/work"
)

func (s *Reasons) whyRunning(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	a, err := work.ScanAttempt(s.db.Read.QueryRowContext(ctx, work.SelectAttempt+`WHERE item_id = $1 AND n = $2`, it.ID, it.Attempt))
	if err != nil {
		return err
	}
	w.Reason, w.Since, w.Actor = registry.ReasonRunning, a.StartedAt, a.Worker
	runs := registry.Statement{Says: registry.SaysRunning, Stage: a.Stage, Name: a.Worker, Since: &a.StartedAt, Until: &a.LeaseUntil}
	if w.At.After(a.LeaseUntil) {
		runs.Says = registry.SaysLeaseOver
	}
	w.Because = []registry.Statement{runs}
	if len(a.Progress) > 0 {
		w.Because = append(w.Because, registry.Statement{Says: registry.SaysProgress, Progress: a.Progress})
	}
	if it.HeldBy != nil {
		w.Because = append(w.Because, registry.Statement{Says: registry.SaysHeldNext, Hold: it.HeldBy})
		w.Helps = []registry.Statement{release(*it.HeldBy)}
	}
	return nil
}
