package processes

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// judge is the engine's Outcome hook: it refuses results that settled could not apply.
func judge(it registry.WorkItem, results map[string]json.RawMessage) error {
	text, ok := results[registry.ResultStep]
	if it.Action != registry.StepProcess || !ok {
		return nil
	}
	var r registry.StepResult
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("%w: the result of the step: %w", registry.ErrInvalid, err)
	}
	return r.Check()
}

// settled is the engine's SettledTogether hook: it applies completed steps to their processes, or
// records that steps failed.
func settled(t *work.Tx, all []work.Shift) error {
	var steps []work.Shift
	var keys []registry.ProcessKey
	for _, s := range all {
		if s.Item.Action != registry.StepProcess || s.Item.Status.Settled() {
			continue // a settled item that is aborted or deleted has had its effect
		}
		spec, err := specOf(s.Item)
		if err != nil {
			return err
		}
		steps, keys = append(steps, s), append(keys, spec.ProcessKey)
	}
	if len(steps) == 0 {
		return nil
	}
	b, err := newBatch(t, keys...)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if err := b.settled(s); err != nil {
			return err
		}
	}
	return b.flush()
}

// settled applies one step.
func (b *batch) settled(s work.Shift) error {
	spec, err := specOf(s.Item)
	if err != nil {
		return err
	}
	p, err := b.load(spec.ProcessKey)
	if errors.Is(err, registry.ErrNotFound) {
		b.failureOver(s.Item.ID)
		return nil // it was removed
	} else if err != nil {
		return err
	}
	if spec.Kind.IsTimer() && p.timer != s.Item.ID {
		b.failureOver(s.Item.ID)
		return nil // it was replaced
	}
	if s.Status == registry.Completed {
		return p.apply(b, s.Item, spec)
	}
	return p.fail(b, s, spec)
}

// apply applies what a completed step makes of the process.
func (p *process) apply(b *batch, it registry.WorkItem, spec registry.StepSpec) error {
	var r registry.StepResult
	if text, ok := it.Results[registry.ResultStep]; ok {
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("decode the result of step %s: %w", it.ID, err)
		}
		// The process has the events and the state now. Only the response is the step's own.
		delete(it.Results, registry.ResultStep)
		it.Results[registry.ResultReturned] = orNull(r.Response)
		b.answered = append(b.answered, it)
	}
	p.leave(it.ID)
	if spec.Kind == registry.StepRemove || r.Then.Do == registry.ThenRemove && r.Then.At.IsZero() {
		return p.remove(b, stepped(it.ID, spec.Kind, ""), "its process was removed")
	}
	for _, e := range r.Events {
		p.append(b, it.ID, b.Now, e)
	}
	if r.State != nil {
		p.State = r.State
	}
	if r.Metadata != nil {
		p.Metadata = r.Metadata
	}
	again, context := registry.StepKind(""), p.context
	if spec.Kind == registry.StepRepair && p.corruptedKind.IsTimer() {
		again = p.corruptedKind
	}
	c := stepped(it.ID, spec.Kind, "")
	if err := p.turn(b, registry.ProcessRunning, c); err != nil {
		return err
	}
	if r.Then.Do == registry.ThenDone {
		return p.end(b, c)
	}
	return p.then(b, r.Then, spec.Context, again, context)
}

// end ends the process after a step.
func (p *process) end(b *batch, c cause) error {
	if err := p.turn(b, registry.ProcessDone, c); err != nil {
		return err
	}
	p.timer, p.Timer, p.tail = "", nil, ""
	p.save(b)
	return p.cancelOpen(b, work.ActorRegistry, "its process is done")
}

// then sets what the process does after a step that does not end it. again is the timer that a repair
// starts again.
func (p *process) then(b *batch, then registry.StepThen, context json.RawMessage, again registry.StepKind, failed json.RawMessage) error {
	switch then.Do {
	case registry.ThenContinue:
		return p.replaceTimer(b, registry.StepTimeout, sqldb.Micros(then.At), context)
	case registry.ThenRemove:
		return p.replaceTimer(b, registry.StepRemove, sqldb.Micros(then.At), context)
	case registry.ThenSuspend:
		old := p.timer
		p.timer, p.Timer = "", nil
		p.save(b)
		return b.cancel(work.ActorRegistry, "its process is suspended", old)
	case registry.ThenKeep, registry.ThenDone:
	}
	if again != "" {
		return p.replaceTimer(b, again, b.Now, failed)
	}
	p.save(b)
	return nil
}

// leave takes a settled step off the process.
func (p *process) leave(itemID string) {
	if p.timer == itemID {
		p.timer, p.Timer = "", nil
	}
	if p.tail == itemID {
		p.tail = ""
	}
}

// fail records that a step failed or was stopped. It puts the process into error, with two
// exceptions: a repair leaves the process as it is, and a call that never started concerns nobody
// else.
func (p *process) fail(b *batch, s work.Shift, spec registry.StepSpec) error {
	if s.Item.Attempt == 0 && spec.Kind == registry.StepCall {
		return p.skip(b, s.Item.ID)
	}
	if p.Status == registry.ProcessDone || p.Status == registry.ProcessFailed && spec.Kind == registry.StepCall {
		b.failureOver(s.Item.ID)
		return nil // the process ended, or went into error, before
	}
	p.leave(s.Item.ID)
	if spec.Kind == registry.StepRepair {
		b.failureOver(s.Item.ID)
		p.save(b)
		return nil
	}
	if err := p.turn(b, registry.ProcessFailed, stepped(s.Item.ID, spec.Kind, s.Note)); err != nil {
		return err
	}
	b.failureOver(p.CorruptedBy) // a timer that was started again has failed again
	p.Detail, p.CorruptedBy, p.corruptedKind, p.context = s.Note, s.Item.ID, spec.Kind, spec.Context
	p.timer, p.Timer, p.tail = "", nil, ""
	p.save(b)
	return p.cancelOpen(b, work.ActorRegistry, "its process is in error")
}

// skip lets those that wait for a stopped call wait for what the call waited for. Otherwise they
// could run beside that.
func (p *process) skip(b *batch, itemID string) error {
	if err := b.flush(); err != nil {
		return err
	}
	before, err := b.Strings(`SELECT requires_id FROM work_dep WHERE item_id = $1 AND satisfied_at IS NULL ORDER BY requires_id`, itemID)
	if err != nil {
		return fmt.Errorf("look for what call %s waits for: %w", itemID, err)
	}
	after, err := b.Strings(`SELECT item_id FROM work_dep WHERE requires_id = $1 AND satisfied_at IS NULL ORDER BY item_id`, itemID)
	if err != nil {
		return fmt.Errorf("look for what waits for call %s: %w", itemID, err)
	}
	for _, a := range after {
		for _, id := range before {
			if err := b.Postpone(a, id); err != nil {
				return err
			}
		}
	}
	if p.tail != itemID {
		return nil
	}
	p.tail = ""
	for _, id := range before {
		if id != p.timer {
			p.tail, p.tailStatus = id, registry.Pending
		}
	}
	p.save(b)
	return nil
}

// paused is the engine's Paused hook: the calls that came while a timer ran go first, when the timer
// waits for its next try.
func paused(t *work.Tx, s work.Shift) error {
	if s.Item.Action != registry.StepProcess {
		return nil
	}
	spec, err := specOf(s.Item)
	if err != nil || !spec.Kind.IsTimer() {
		return err
	}
	b, err := newBatch(t, spec.ProcessKey)
	if err != nil {
		return err
	}
	p, err := b.load(spec.ProcessKey)
	if errors.Is(err, registry.ErrNotFound) {
		return nil
	}
	if err != nil || p.timer != s.Item.ID || p.tail == "" {
		return err
	}
	if _, err := t.Overtake(s.Item.ID); err != nil {
		return err
	}
	return t.Postpone(s.Item.ID, p.tail)
}
