package why

import (
	"context"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/work"
)

// whyPrepared explains an item whose graph is not sealed yet.
func whyPrepared(it registry.WorkItem, w *registry.Why) {
	w.Reason = registry.ReasonBlocked
	w.Because = []registry.Statement{{Says: registry.SaysNotSealed, GraphID: it.GraphID}}
	w.Helps = []registry.Statement{{Says: registry.SaysSeal, GraphID: it.GraphID}}
}

// whyBlocked names the items that an item requires, and what would help. Items that need a person
// come first.
func (s *Reasons) whyBlocked(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	const named = 3
	w.Reason = registry.ReasonBlocked
	required, err := s.work.ReadItems(ctx, work.SelectItem+`JOIN work_dep d ON d.requires_id = i.id
		WHERE d.item_id = $1 AND d.at_start = 1 AND d.satisfied_at IS NULL
		ORDER BY CASE WHEN i.status IN ('failed', 'cancelled', 'prepare') THEN 0 ELSE 1 END, i.id`, it.ID)
	if err != nil {
		return err
	}
	if len(required) == 0 {
		return s.whyJobsOpen(ctx, it, w)
	}
	steps, err := s.blockingSteps(ctx, it.ID)
	if err != nil {
		return err
	}
	waits := registry.Statement{Says: registry.SaysRequires, N: int64(len(required))}
	for i, r := range required {
		if i == named {
			break
		}
		o := obstacle(r)
		o.Step = slices.Contains(steps, r.ID)
		if o.Step && r.Status == registry.Failed {
			o.Note = r.Note
		}
		waits.Items = append(waits.Items, o)
		switch r.Status {
		case registry.Failed, registry.Cancelled:
			w.Helps = append(w.Helps, registry.Statement{Says: registry.SaysRequeue, Items: []registry.Obstacle{o}})
		case registry.Prepare:
			w.Helps = append(w.Helps, registry.Statement{Says: registry.SaysSeal, GraphID: r.GraphID})
		case registry.Pending, registry.Running, registry.Completed, registry.Aborted, registry.Deleted:
		}
	}
	w.Because = []registry.Statement{waits}
	return nil
}

// blockingSteps returns the tasks of outside steps that a job waits for.
func (s *Reasons) blockingSteps(ctx context.Context, jobID string) ([]string, error) {
	return s.db.Column(ctx, `SELECT requires_id FROM work_dep WHERE item_id = $1 AND wait_for = $2 AND satisfied_at IS NULL`, jobID, registry.WaitOver)
}
