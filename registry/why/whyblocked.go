package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/work"
)

// whyPrepared explains an item whose graph is not sealed yet.
func whyPrepared(it registry.WorkItem, w *registry.Why) {
	w.Reason, w.Act = registry.ReasonBlocked, "seal graph "+it.GraphID
	w.Sentence = fmt.Sprintf("its graph %s is not sealed yet; its items start after that", it.GraphID)
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
	var parts, acts []string
	for i, r := range required {
		if i == named {
			parts = append(parts, registry.Count(int64(len(required)-named), "other item"))
			break
		}
		isStep := slices.Contains(steps, r.ID)
		text := fmt.Sprintf("%s (%s), which is %s", r.ID, r.Name, r.State)
		if isStep {
			text = "its outside step " + text
		}
		if isStep && r.Status == registry.Failed && r.Note != "" {
			text += ": " + r.Note
		}
		parts = append(parts, text)
		switch r.Status {
		case registry.Failed, registry.Cancelled:
			act := "requeue " + r.ID
			if isStep {
				act += ", or abort it to go on without it"
			}
			acts = append(acts, act)
		case registry.Prepare:
			acts = append(acts, "seal graph "+r.GraphID)
		case registry.Pending, registry.Running, registry.Completed, registry.Aborted, registry.Deleted:
		}
	}
	w.Sentence, w.Act = "waits for "+strings.Join(parts, ", and for "), strings.Join(acts, "; ")
	return nil
}

// blockingSteps returns the tasks of outside steps that a job waits for.
func (s *Reasons) blockingSteps(ctx context.Context, jobID string) ([]string, error) {
	return s.db.Column(ctx, `SELECT requires_id FROM work_dep WHERE item_id = $1 AND wait_for = $2 AND satisfied_at IS NULL`, jobID, registry.WaitOver)
}
