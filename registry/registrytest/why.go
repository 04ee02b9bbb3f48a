package registrytest

import (
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func whyTests() []test {
	return []test{{"each_reason", whyEach}, {"unknown", whyUnknown}}
}

func whyUnknown(f *fixture) {
	_, err := f.Why(f.Context(), "unknown")
	f.is(err, registry.ErrNotFound)
}

// why checks the reason and that the sentence says what people need.
func (f *fixture) why(id string, want registry.Reason, says ...string) registry.Why {
	f.Helper()
	w, err := f.Why(f.Context(), id)
	f.must(err)
	if w.Reason != want || w.ItemID != id || w.Since.IsZero() {
		f.Errorf("why: %+v, want %s", w, want)
	}
	for _, s := range says {
		if !strings.Contains(w.Sentence+" "+w.Act+" "+w.Actor, s) {
			f.Errorf("why: %q (%s), want it to say %q", w.Sentence, w.Act, s)
		}
	}
	return w
}

func whyEach(f *fixture) {
	batch, jobs := f.batch(2)
	f.why(batch, registry.ReasonBlocked, "2 items")
	f.why(jobs[1], registry.ReasonQueued, "position 2 of 2")
	f.hold(registry.HoldCollection, mnemonic)
	f.why(jobs[1], registry.ReasonHeld, "look at it", "admin", mnemonic)
	f.release(registry.HoldCollection, mnemonic)
	f.bring(jobs[0], registry.Provision)
	c := f.takeItem(jobs[0])
	f.clock.pass(90 * time.Second)
	f.why(jobs[0], registry.ReasonRunning, "worker-1", "1m30s")
	f.settle(registry.Settlement{
		Lease: c.Lease, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Error: "needs 9 TB", Delay: time.Minute,
	})
	f.why(jobs[0], registry.ReasonNoSpace, "needs 9 TB")
	f.clock.pass(time.Minute)
	f.settle(registry.Settlement{Lease: f.takeItem(jobs[0]).Lease, Outcome: registry.OutcomeRetry, Error: "timeout", Delay: time.Minute})
	f.why(jobs[0], registry.ReasonNotDue, "timeout", "1 counted")
	f.clock.pass(time.Minute)
	f.bring(jobs[0], registry.Process)
	f.bring(jobs[1], registry.Process)
	first, second := f.takeItem(jobs[0]), f.takeItem(jobs[1])
	f.locks(first.Lease, "x")
	f.waits(second.Lease, first.Lease, "x")
	f.snooze(second.Lease)
	f.why(jobs[1], registry.ReasonLocked, jobs[0])
	f.settle(registry.Settlement{Lease: first.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "bad bag"})
	f.why(jobs[0], registry.ReasonSettled, "bad bag", "producer")
	f.finish(jobs[1])
	f.why(jobs[1], registry.ReasonSettled, "Completed")
	f.done(f.take(registry.Report, batch).Lease)
	f.why(batch, registry.ReasonSettled, "1 of 2", "requeue")
}
