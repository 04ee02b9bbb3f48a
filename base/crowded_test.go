package base_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
)

// crowdedUntil refuses each claim for an item before its time as one whose collection has all the
// slots that it may have.
func crowdedUntil(from map[string]time.Duration, after time.Duration) func(int, registry.ClaimRequest) error {
	begun := time.Now()
	return func(_ int, r registry.ClaimRequest) error {
		if time.Since(begun) < from[r.Hint] {
			return &registry.NotClaimable{ItemID: r.Hint, Reason: registry.ReasonCrowded, Again: after}
		}
		return nil
	}
}

// If an item must leave its slot to others, its message is kept, and the worker asks again in time
// without requeueing it.
func TestCrowded_AsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		fake.onClaim = crowdedUntil(map[string]time.Duration{"a": 70 * time.Second}, 2*time.Second)
		w := &worker{Worker: base.Worker{Slots: 1, Extra: 1}, work: until(0, nil)}
		start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
		m := f.deliver("a")
		if got := <-m.answered; got != "finish" {
			t.Errorf("answered with %s, want finish", got)
		}
		if got := len(fake.settled()); got != 1 {
			t.Errorf("%d steps were done, want 1", got)
		}
		if got := len(fake.claimed()); got < 30 || got > 40 {
			t.Errorf("asked %d times in 70 s, want every 2 s", got)
		}
		if m.touches() < 3 { // nsqd takes a message back after a minute
			t.Errorf("the message was touched %d times in 70 s", m.touches())
		}
	})
}

// A free slot is used at once. A stopping worker leaves the message to others.
func TestCrowded_SlotOrStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		begun := time.Now()
		fake.onClaim = crowdedUntil(map[string]time.Duration{"b": 10 * time.Second, "c": time.Hour}, time.Minute)
		w := &worker{Worker: base.Worker{Slots: 1, Extra: 1}, work: until(10*time.Second, nil)}
		stop := start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
		synctest.Wait()
		if got := lastRenewal(fake).Worker; got.Capacity[registry.Expand] != 2 || got.Spare[registry.Expand] != 1 {
			t.Errorf("announced %+v, want 2 slots, one of them spare", got)
		}
		first, second := f.deliver("a"), f.deliver("b")
		<-first.answered
		<-second.answered
		if took := time.Since(begun); took > 21*time.Second {
			t.Errorf("the second item was done after %s, want right after the first one's 10 s", took)
		}
		third := f.deliver("c")
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := <-third.answered; got != "requeue 0s" {
			t.Errorf("answered with %s, want that another worker gets it at once", got)
		}
	})
}
