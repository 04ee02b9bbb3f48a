package deposit

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
)

// phase is what a deposit's state means for its depositor.
type phase string

const (
	phaseMine    phase = "mine"    // the depositor must correct something
	phaseTheirs  phase = "theirs"  // an operator must act
	phaseWaiting phase = "waiting" // it waits for something
	phaseRunning phase = "running"
	phaseDone    phase = "done"
	// phaseCorrected: what failed was submitted again, corrected.
	phaseCorrected phase = "corrected"
	phaseStopped   phase = "stopped" // cancelled, aborted or deleted
)

// standing is how a deposit stands.
type standing struct {
	Batch    registry.WorkItem
	Progress registry.BatchProgress
	Phase    phase
	// About is the item that the reason is about: the batch, or the job that it waits for.
	About registry.WorkItem
	Why   *registry.Why // nil: it has ended
	Rate  float64       // bytes a second over the last minutes; 0: unknown
	Left  time.Duration // 0: unknown
	Mine  bool          // the viewer may cancel it
	May   bool          // the viewer may correct it
	Rows  bool          // its failed rows can be corrected on their own

	Jobs []registry.JobResult // the first ones, if it has few
}

// CanCorrect reports whether what failed can be submitted again now, corrected: rows at any time, a whole
// deposit when it has ended.
func (s standing) CanCorrect() bool { return s.Rows || s.Phase == phaseMine && s.Progress.Settled }

// ToCorrect is how many of its failed rows no deposit corrects.
func (s standing) ToCorrect() int64 { return s.Progress.Content - s.Progress.Corrected }

// mayCancel reports whether the viewer may cancel a deposit, if that is possible at all.
func (p pages) mayCancel(ctx context.Context, batch registry.WorkItem, me registry.Token) bool {
	return p.May(ctx, "cancel-batch") && (p.MayAct(ctx) || batch.CreatedBy == me.Name)
}

// mayCorrect reports whether the viewer may submit what failed of a deposit, corrected.
func (p pages) mayCorrect(ctx context.Context, batch registry.WorkItem, me registry.Token) bool {
	return p.May(ctx, "submit-payload") && (p.MayAct(ctx) || batch.CreatedBy == me.Name)
}

// standingOf asks how a deposit stands. me is the viewer's token.
func (p pages) standingOf(ctx context.Context, batch registry.WorkItem, me registry.Token) (s standing, err error) {
	s = standing{Batch: batch, About: batch}
	if s.Progress, err = p.API.BatchProgress(ctx, batch.ID); err != nil {
		return s, err
	}
	s.Mine = slices.Contains(batch.AllowedActs, registry.ActCancel) && p.mayCancel(ctx, batch, me)
	s.May = p.mayCorrect(ctx, batch, me)
	s.Phase, s.Rows = phaseOf(batch, s.Progress), correctable(batch, s.Progress)
	s.Rows = s.Rows && correctedBy(s.Progress) == nil
	if batch.Status.Settled() {
		return s, nil
	}
	s.Rate = p.paces.add(batch.ID, s.Progress.DoneBytes, time.Now())
	if left := s.Progress.Bytes - s.Progress.DoneBytes; s.Rate > 0 && s.Progress.SizeKnown && left > 0 {
		s.Left = time.Duration(float64(left) / s.Rate * float64(time.Second))
	}
	if s.Progress.Open > 0 {
		if s.About, err = p.slowest(ctx, batch, s.Progress); err != nil {
			return s, err
		}
	}
	why, err := p.API.Why(ctx, s.About.ID)
	if err != nil {
		return s, err
	}
	s.Why = &why
	if s.Phase == phaseRunning && (s.About.NextTry != nil || s.About.HeldBy != nil || s.About.State == registry.StatePending) {
		s.Phase = phaseWaiting
	}
	return s, nil
}

// slowest returns the job that tells why a batch is not complete: its only job, or, if none is
// running, one that waits for its next try; otherwise the batch.
func (p pages) slowest(ctx context.Context, batch registry.WorkItem, progress registry.BatchProgress) (registry.WorkItem, error) {
	q := registry.ItemQuery{ParentID: batch.ID, Limit: 1}
	if progress.Jobs > 1 {
		running, err := p.API.Items(ctx, registry.ItemQuery{ParentID: batch.ID, Status: registry.Running, Limit: 1})
		if err != nil || len(running.Rows) > 0 || !progress.Expanded { // it goes on
			return batch, err
		}
		q.Match = registry.Query{Terms: []registry.Term{{Field: "delayed", Value: "yes"}}}
	}
	jobs, err := p.API.Items(ctx, q)
	if err != nil || len(jobs.Rows) == 0 {
		return batch, err
	}
	return jobs.Rows[0], nil
}

// phaseOf tells what a batch's state means for its depositor. Those are unresolved that the query finds,
// see [unresolved]: of a batch that has not ended, rows can be corrected already. Its only object cannot:
// nothing is to be done before it has ended.
func phaseOf(batch registry.WorkItem, p registry.BatchProgress) phase {
	if !batch.Status.Settled() && p.Content > 0 && p.Jobs > 1 && correctedBy(p) == nil {
		return phaseMine
	}
	switch batch.Status {
	case registry.Completed:
		return phaseDone
	case registry.Failed:
		if p.Content > 0 || batch.FailedItself() && batch.ErrorClass == registry.ContentFault {
			if correctedBy(p) != nil {
				return phaseCorrected
			}
			return phaseMine
		}
		return phaseTheirs
	case registry.Cancelled, registry.Aborted, registry.Deleted:
		return phaseStopped
	case registry.Prepare:
		return phaseWaiting
	case registry.Pending, registry.Running:
		if batch.State == registry.StatePending || batch.State == registry.StateHeld || batch.NextTry != nil || p.Held {
			return phaseWaiting
		}
	}
	return phaseRunning
}

// correctedBy returns the oldest of the corrections that have all that failed; nil: something is left.
func correctedBy(p registry.BatchProgress) *registry.Correction {
	by := p.CorrectedBy()
	i := slices.IndexFunc(p.Corrections, func(c registry.Correction) bool { return c.BatchID == by })
	if i < 0 {
		return nil
	}
	return &p.Corrections[i]
}

// safety tells whether the depositor's copy of an object is still needed.
type safety struct {
	Version  int
	Replicas []registry.Replica // verified
	Safe     bool               // verified in two storages or more, and nothing is damaged
	Damaged  bool
}

// safetyOf reads where a version is verified; nil if it is not recorded.
func (p pages) safetyOf(ctx context.Context, objectID string, version int) (*safety, error) {
	object, err := p.API.Object(ctx, objectID)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(object.Versions, func(v registry.ObjectVersion) bool { return v.Version == version })
	if i < 0 || object.Gone != "" {
		return nil, nil //nolint:nilnil // as it says
	}
	s := safeAs(object.Versions[i], object.Damaged > 0)
	return &s, nil
}

// safeAs tells how safe a version is. One storage is not enough: the depositor's copy is then the only
// other one.
func safeAs(v registry.ObjectVersion, damaged bool) safety {
	s := safety{Version: v.Version, Damaged: damaged}
	for _, r := range v.Replicas {
		if !r.VerifiedAt.IsZero() {
			s.Replicas = append(s.Replicas, r)
		}
	}
	s.Safe = len(s.Replicas) > 1 && !damaged
	return s
}

// specOf reads a batch's spec for display, with secrets removed from its address.
func specOf(it registry.WorkItem) registry.Spec {
	var spec registry.Spec
	if json.Unmarshal(it.Spec, &spec) == nil {
		spec.URL = source.Redact(spec.URL)
	}
	return spec
}
