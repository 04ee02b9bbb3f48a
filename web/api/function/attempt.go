package function

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/schema"
	"github.com/holdfast/holdfast/tracing"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// errorLimit is how many bytes of an error, and of a line of a log, are kept, as those of all workers.
const errorLimit = 2000

type renewInput struct {
	Attempt
	Body wire.TaskBeat
}

// renew extends the lease. With a wait it answers after that, or at once when the task is taken
// away; the lease counts from the beginning.
func (s *Service) renew(ctx context.Context, in *renewInput) (*endpoint.Output[wire.TaskRenewal], error) {
	b, lease := in.Body, in.lease(ctx)
	it, _, err := s.task(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	long := orElse(seconds(b.LeaseSeconds), defaultLease)
	renewal, err := s.Registry.Renew(ctx, registry.RenewRequest{
		Worker: registry.WorkerInfo{ID: b.Worker, Capacity: map[registry.Stage]int{it.Stage: 1}, Free: map[registry.Stage]int{it.Stage: 0}},
		Lease:  long, Token: lease.Token,
		Beats: []registry.Beat{{Lease: lease, Progress: progressOf(b.Progress), Advanced: len(b.Progress) > 0, DoneBytes: -1, DoneFiles: -1, Log: linesOf(b.Log)}},
	})
	if err != nil {
		return nil, lost(in.Attempt, err)
	}
	if len(renewal.Lost) > 0 {
		return nil, lost(in.Attempt, registry.ErrClaimLost)
	}
	if err := s.watch(ctx, b.Worker, lease, min(seconds(b.WaitSeconds), long/2)); err != nil {
		return nil, lost(in.Attempt, err)
	}
	return &endpoint.Output[wire.TaskRenewal]{Body: wire.TaskRenewal{LeaseSeconds: int(long / time.Second), Held: renewal.Held, Drain: renewal.Drain}}, nil
}

// watch waits for a time, and returns ErrClaimLost at once if the attempt is taken away.
func (s *Service) watch(ctx context.Context, worker string, l registry.Lease, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	waiting, cancel := s.Until(ctx, wait)
	defer cancel()
	for after := int64(0); waiting.Err() == nil; {
		taken, next, err := s.Registry.Withdrawn(waiting, registry.WithdrawnQuery{Worker: worker, After: after, Token: l.Token})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(taken, func(t registry.Lease) bool { return t.ItemID == l.ItemID && t.N == l.N }) {
			return registry.ErrClaimLost
		}
		after = next
	}
	return nil
}

func progressOf(all []wire.TaskProgress) []registry.Progress {
	if len(all) == 0 {
		return nil
	}
	out := make([]registry.Progress, len(all))
	for i, p := range all {
		out[i] = registry.Progress{Title: p.Title, Unit: p.Unit, Position: p.Position, End: -1}
		if p.End != nil {
			out[i].End = *p.End
		}
	}
	return out
}

// linesOf converts lines of a log. Those without a time get that at which they are kept.
func linesOf(all []wire.TaskLogLine) []registry.LogLine {
	out := make([]registry.LogLine, len(all))
	for i, l := range all {
		out[i] = registry.LogLine{Seq: l.Seq, Level: l.Level, Text: cut(l.Text)}
		if l.At != nil {
			out[i].At = *l.At
		}
	}
	return out
}

type keepInput struct {
	Attempt
	Name string `path:"name" maxLength:"200"`
	Body wire.TaskValue
}

// keep keeps a value with the task, and answers the one that holds: that of the first request with
// the name, in this or an earlier attempt.
func (s *Service) keep(ctx context.Context, in *keepInput) (*endpoint.Output[wire.TaskValue], error) {
	if _, _, err := s.task(ctx, in.ID); err != nil {
		return nil, err
	}
	value, err := s.Registry.SaveResult(ctx, in.lease(ctx), registry.OncePrefix+in.Name, orNull(in.Body.Value))
	if err != nil {
		return nil, lost(in.Attempt, err)
	}
	return &endpoint.Output[wire.TaskValue]{Body: wire.TaskValue{Value: value}}, nil
}

type settleInput struct {
	Attempt
	Body wire.TaskSettlement
}

// settle ends an attempt. A repeat with the same outcome gets the first one's answer.
func (s *Service) settle(ctx context.Context, in *settleInput) (*endpoint.Output[wire.TaskVerdict], error) {
	it, f, err := s.task(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	settlement, err := settlementOf(in.Body, it, f)
	if err != nil {
		return nil, err
	}
	settlement.Lease = in.lease(ctx)
	v, err := s.Registry.Settle(ctx, settlement)
	if err != nil {
		return nil, lost(in.Attempt, err)
	}
	if it.Status == registry.Running && it.Attempt == in.N { // no repeat of the request
		Trace(ctx, it, settlement)
	}
	s.Log.DebugContext(ctx, "task settled", "item", it.ID, "outcome", in.Body.Outcome, "status", v.Status, "actor", access.Actor(ctx))
	return &endpoint.Output[wire.TaskVerdict]{Body: wire.TaskVerdict{Status: v.Status, Failures: v.Tries}}, nil
}

// Trace makes the span of a settled attempt at a task or a step of a process, since the program that made
// it has no receiver of traces. it is the item as it was before.
func Trace(ctx context.Context, it registry.WorkItem, s registry.Settlement) {
	of := registry.TraceOf(it.Spec)
	_, span := tracing.StartAttempt(ctx, tracing.Attempt{
		Item: it.ID, Collection: it.Collection, Stage: string(it.Stage), N: it.Attempt, Tries: it.Tries,
		Created: it.CreatedAt, Ready: it.RunAt, Claimed: it.UpdatedAt, Began: it.UpdatedAt, Parent: of.Parent, Batch: of.Batch,
	})
	span.Set("holdfast.outcome", string(s.Outcome))
	if s.Outcome == registry.OutcomeFailed || s.Outcome == registry.OutcomeRetry {
		span.Fail(string(s.Class))
	}
	span.End(nil)
}

// settlementOf converts a request. Its error is a problem of the request.
func settlementOf(b wire.TaskSettlement, it registry.WorkItem, f registry.Function) (registry.Settlement, error) {
	var faults []wire.Fault
	s := registry.Settlement{MaxAttempts: f.Policy.Attempts(), Error: cut(b.Error), Progress: progressOf(b.Progress), Log: linesOf(b.Log)}
	if b.Error == "" && b.Outcome != wire.TaskDone && b.Outcome != wire.TaskReleased {
		faults = append(faults, wire.Fault{Location: "body.error", Message: "missing: say what happened; people read it"})
	}
	if len(b.Result) > 0 && b.Outcome != wire.TaskDone {
		faults = append(faults, wire.Fault{Location: "body.result", Message: "only the outcome done has a result; remove it"})
	}
	delay := func(otherwise time.Duration) time.Duration {
		if b.DelaySeconds != nil {
			return seconds(*b.DelaySeconds)
		}
		return otherwise
	}
	switch b.Outcome {
	case wire.TaskDone:
		s.Outcome, s.Error = registry.OutcomeDone, ""
		s.Results = map[string]json.RawMessage{registry.ResultReturned: orNull(b.Result)}
		returns, err := schema.Read(f.Result)
		if err != nil {
			return s, err
		}
		if err := returns.Fits(orNull(b.Result)); err != nil {
			faults = append(faults, wire.Fault{Location: "body.result", Message: "it does not fit the function's schema: " + err.Error()})
		}
	case wire.TaskRetry:
		s.Outcome, s.Class, s.Delay = registry.OutcomeRetry, registry.SystemFault, delay(f.Policy.Backoff(it.Tries+1))
	case wire.TaskFatal:
		s.Outcome, s.Class = registry.OutcomeFailed, registry.SystemFault
	case wire.TaskInvalid:
		s.Outcome, s.Class = registry.OutcomeFailed, registry.ContentFault
	case wire.TaskLater:
		s.Outcome, s.Reason, s.Delay = registry.OutcomeSnooze, registry.ReasonNotDue, delay(defaultLater)
	case wire.TaskReleased:
		s.Outcome = registry.OutcomeReleased
	}
	return s, endpoint.Invalid("the attempt was not settled", faults...)
}

// cut shortens a text to what is kept of an error.
func cut(text string) string {
	const more = "…"
	if len(text) <= errorLimit {
		return text
	}
	kept := 0
	for at := range text {
		if at > errorLimit-len(more) {
			break
		}
		kept = at
	}
	return text[:kept] + more
}

func orNull(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}
