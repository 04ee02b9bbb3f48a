package base_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
)

// TestWithdrawn_EndsTheStepWithinASecond: with a real Registry, a waiting step is cancelled at once
// by a cancel or an abort, and its later writes are refused.
func TestWithdrawn_EndsTheStepWithinASecond(t *testing.T) {
	for _, act := range []registry.Act{registry.ActCancel, registry.ActAbort} {
		t.Run(string(act), func(t *testing.T) {
			s := openRegistry(t)
			id := submit(t, s)
			f, running, heard := newFeed(), make(chan struct{}), make(chan error, 1)
			w := &worker{work: func(ctx context.Context, it *base.Item) error {
				close(running)
				<-ctx.Done()
				heard <- context.Cause(ctx)
				return it.Writable(ctx)
			}}
			stop := start(t, &base.Runner{Registry: s, Interim: openInterim(t), Connect: f.connect}, w)
			m := f.deliver(id)
			<-running
			asked := time.Now()
			if _, err := s.Command(t.Context(), registry.Command{ItemID: id, Act: act, Reason: "wrong file", Actor: "admin", Confirmed: true}); err != nil {
				t.Fatal(err)
			}
			if cause := <-heard; !errors.Is(cause, registry.ErrClaimLost) {
				t.Errorf("the step ended with %v", cause)
			}
			if took := time.Since(asked); took > time.Second {
				t.Errorf("it heard after %s, want less than a second", took)
			}
			if got := <-m.answered; got != "finish" {
				t.Errorf("the message was answered by %s", got)
			}
			want := map[registry.Act]registry.Status{registry.ActCancel: registry.Cancelled, registry.ActAbort: registry.Aborted}[act]
			if it := itemOf(t, s, id); it.Status != want || it.Tries != 0 {
				t.Errorf("status=%s tries=%d, want %s", it.Status, it.Tries, want)
			}
			as, err := s.Attempts(t.Context(), id)
			if err != nil || len(as) != 1 || as[0].Outcome != registry.OutcomeWithdrawn || as[0].FinishedAt == nil {
				t.Errorf("attempts %+v, %v", as, err)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A late success of a withdrawn attempt is refused, although the step never checked its context.
func TestWithdrawn_LateSuccessIsRefused(t *testing.T) {
	s := openRegistry(t)
	id := submit(t, s)
	w := &worker{work: func(ctx context.Context, _ *base.Item) error {
		_, err := s.Command(context.WithoutCancel(ctx), registry.Command{ItemID: id, Act: registry.ActCancel, Actor: "admin"})
		if err != nil {
			t.Error(err)
		}
		return nil
	}}
	_, err := (&base.Runner{Registry: s, Interim: openInterim(t)}).RunOne(t.Context(), w, id)
	if !errors.Is(err, registry.ErrClaimLost) {
		t.Errorf("error %v, want a lost claim", err)
	}
	if it := itemOf(t, s, id); it.Status != registry.Cancelled || it.Stage != registry.Expand {
		t.Errorf("%s at %s", it.Status, it.Stage)
	}
}

// The withdrawal may arrive before the answer to the claim.
func TestWithdrawn_BeforeTheClaimIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		fake.taken = make(chan registry.Lease)
		fake.onClaim = func(call int, r registry.ClaimRequest) error {
			fake.taken <- registry.Lease{ItemID: r.Hint, N: int64(call)}
			time.Sleep(time.Second)
			return nil
		}
		w := &worker{work: func(context.Context, *base.Item) error {
			t.Error("the step was begun")
			return nil
		}}
		_, err := (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i")
		if !errors.Is(err, registry.ErrClaimLost) || len(fake.settled()) > 0 {
			t.Errorf("error %v, settled %+v", err, fake.settled())
		}
	})
}
