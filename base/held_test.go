package base_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
)

// TestHeldWorker: running steps finish, messages go to other workers, no slot counts as free.
// Removing the hold restores everything.
func TestHeldWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		var held atomic.Bool
		fake.heldAt = func(int) bool { return held.Load() }
		w := &worker{Worker: base.Worker{Slots: 2}, work: until(20*time.Second, nil)}
		start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
		first := f.deliver("first")
		time.Sleep(time.Second)

		held.Store(true)
		time.Sleep(10 * time.Second)
		if got := f.allowed(); got[len(got)-1] != 0 {
			t.Errorf("allowed %v messages, want none while held", got)
		}
		if got := lastRenewal(fake).Worker; got.Free[registry.Expand] != 0 || got.Capacity[registry.Expand] != 2 || got.Draining {
			t.Errorf("announced %+v while held, want 2 slots, none of them free", got)
		}
		if got := lastRenewal(fake).Beats; len(got) != 1 || got[0].Lease.ItemID != "first" {
			t.Errorf("renewed %+v while held, want what runs", got)
		}
		if got := <-f.deliver("second").answered; got != "requeue 0s" {
			t.Errorf("a message to a held worker was answered with %s, want that others get it at once", got)
		}
		if got := <-first.answered; got != "finish" {
			t.Errorf("the message of the step under way was answered with %s, want finish", got)
		}
		if got := fake.settled(); len(got) != 1 || got[0].Outcome != registry.OutcomeDone {
			t.Errorf("settled %+v, want the step under way done", got)
		}

		held.Store(false)
		time.Sleep(10 * time.Second)
		if got := f.allowed(); got[len(got)-1] != 2 {
			t.Errorf("allowed %v messages, want 2 after the release", got)
		}
		if got := lastRenewal(fake).Worker.Free[registry.Expand]; got != 2 {
			t.Errorf("announced %d free slots after the release, want 2", got)
		}
		if got := <-f.deliver("third").answered; got != "finish" {
			t.Errorf("a message after the release was answered with %s, want finish", got)
		}
	})
}

// TestHeldWorker_FromTheStart: a worker that starts on a held host takes nothing.
func TestHeldWorker_FromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		fake.heldAt = func(int) bool { return true }
		w := &worker{work: until(0, nil)}
		start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
		if got := <-f.deliver("a").answered; got != "requeue 0s" {
			t.Errorf("message was answered with %s", got)
		}
		synctest.Wait() // its first message may be answered before it has told how many it takes
		if got := f.allowed(); !slices.Equal(got, []int{0}) {
			t.Errorf("allowed %v messages, want none at all", got)
		}
	})
}

// TestHeldWorker_Stops: a hold does not keep a worker from draining, and a release does not bring a
// draining one back.
func TestHeldWorker_Stops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		fake.heldAt = func(n int) bool { return n == 2 }
		w := &worker{work: until(time.Second, nil)}
		stop := start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
		m := f.deliver("a")
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		<-m.answered
		if got := f.allowed(); got[len(got)-1] != 0 {
			t.Errorf("allowed %v messages, want none after the stop", got)
		}
		if !lastRenewal(fake).Worker.Draining {
			t.Error("the last renewal does not say that it drains")
		}
	})
}

func lastRenewal(f *fakeRegistry) registry.RenewRequest {
	renews, _ := f.renewals()
	return renews[len(renews)-1]
}
