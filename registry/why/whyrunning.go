package why

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/work"
)

func (s *Reasons) whyRunning(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	a, err := work.ScanAttempt(s.db.Read.QueryRowContext(ctx, work.SelectAttempt+`WHERE item_id = $1 AND n = $2`, it.ID, it.Attempt))
	if err != nil {
		return err
	}
	now := s.db.Now()
	w.Reason, w.Since, w.Actor = registry.ReasonRunning, a.StartedAt, a.Worker
	w.Sentence = fmt.Sprintf("running %s on %s for %s, lease until %s", a.Stage, a.Worker, span(now.Sub(a.StartedAt)), s.moment(a.LeaseUntil))
	if now.After(a.LeaseUntil) {
		w.Sentence = fmt.Sprintf("was running %s on %s, whose lease ended at %s; another worker will take over",
			a.Stage, a.Worker, s.moment(a.LeaseUntil))
	}
	for i, p := range a.Progress {
		sep := ", "
		if i == 0 {
			sep = "; "
		}
		w.Sentence += sep + progressText(p)
	}
	if it.HeldBy != nil {
		w.Sentence += "; before its next step: " + holdSentence(*it.HeldBy, it)
		w.Act = releaseAct(*it.HeldBy)
	}
	return nil
}

// progressText describes one measure: 48 of 70 files, 1.2 GiB of 3 GiB.
func progressText(p registry.Progress) string {
	number, unit := func(n int64) string { return fmt.Sprint(n) }, " "+p.Unit
	if p.Unit == "bytes" {
		number, unit = registry.SizeText, ""
	}
	if p.End < 0 {
		return number(p.Position) + unit
	}
	return number(p.Position) + " of " + number(p.End) + unit
}
