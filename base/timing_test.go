package base_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
)

// The tests of this file run on synctest's clock.

// until runs a step for d, and then lets it come to err; it ends early with its context.
func until(d time.Duration, err error) func(context.Context, *base.Item) error {
	return func(ctx context.Context, _ *base.Item) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d):
			return err
		}
	}
}

func TestR09_RenewsExactlyWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		w := &worker{Worker: base.Worker{Slots: 3}, work: func(ctx context.Context, it *base.Item) error {
			return until(map[string]time.Duration{"a": 12 * time.Second, "b": 25 * time.Second}[it.ID], nil)(ctx, it)
		}}
		stop := start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect, WorkerID: "w", Version: "v1"}, w)
		a := f.deliver("a")
		synctest.Wait()
		b := f.deliver("b")
		<-a.answered
		<-b.answered
		time.Sleep(20 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		renews, at := fake.renewals()
		var last time.Duration
		listed := map[string]int{}
		for i, r := range renews {
			if at[i]-last > 10500*time.Millisecond {
				t.Errorf("no renewal between %v and %v, want one every third of a lease", last, at[i])
			}
			last = at[i]
			for _, beat := range r.Beats {
				listed[beat.Lease.ItemID]++
				if limit := map[string]time.Duration{"a": 12 * time.Second, "b": 25 * time.Second}[beat.Lease.ItemID]; at[i] > limit {
					t.Errorf("%s was renewed at %v, after it had ended", beat.Lease.ItemID, at[i])
				}
			}
			if r.Worker.ID != "w" || r.Worker.Version != "v1" || r.Worker.Capacity[registry.Expand] != 3 || r.Lease != 30*time.Second {
				t.Errorf("renewal %d: %+v", i, r)
			}
		}
		if listed["a"] < 1 || listed["b"] < 2 {
			t.Errorf("listed %v", listed)
		}
		if first := renews[0]; at[0] != 0 || len(first.Beats) != 0 || first.Worker.Free[registry.Expand] != 3 {
			t.Errorf("first renewal at %v: %+v; want the capacity before any message", at[0], first)
		}
		if final := renews[len(renews)-1]; !final.Worker.Draining {
			t.Errorf("last renewal: %+v, want draining", final.Worker)
		}
	})
}

func TestRenew_ShowsProgressLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		w := &worker{work: func(_ context.Context, it *base.Item) error {
			bytes, _ := it.Transfer()
			for range 100 {
				bytes.Add(1 << 20)
				time.Sleep(50 * time.Millisecond)
			}
			time.Sleep(4 * time.Second)
			return nil
		}}
		if _, err := (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i"); err != nil {
			t.Fatal(err)
		}
		renews, at := fake.renewals()
		if len(renews) < 9 || len(renews) > 12 {
			t.Errorf("%d renewals in 9 s, want one each half second while progress moves", len(renews))
		}
		for i, r := range renews {
			if at[i] < 5*time.Second && (!r.Beats[0].Advanced || r.Beats[0].DoneBytes < int64(i)*(1<<20) || r.Beats[0].DoneFiles != 0) {
				t.Errorf("renewal %d at %v: %+v", i, at[i], r.Beats[0])
			}
		}
		if last := renews[len(renews)-1].Beats[0]; last.DoneBytes != 100<<20 && last.Advanced {
			t.Errorf("last news: %+v", last)
		}
	})
}

// TestR15_FencesItself: a worker that is cut off gives up its claim before the Registry does, and
// writes nothing afterwards.
func TestR15_FencesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, kept, f, book := newFake(), newFakeInterim(), newFeed(), &logbook{}
		fake.onRenew = func(call int, _ registry.RenewRequest) ([]registry.Lease, error) {
			if call > 4 {
				return nil, errDown
			}
			return nil, nil
		}
		var ended time.Duration
		var lastRenewal time.Duration
		w := &worker{work: func(ctx context.Context, it *base.Item) error {
			begun := time.Now()
			<-ctx.Done()
			ended = time.Since(begun)
			if !errors.Is(context.Cause(ctx), registry.ErrClaimLost) {
				t.Errorf("cause %v, want ErrClaimLost", context.Cause(ctx))
			}
			writes := kept.written()
			assertRefuses(context.WithoutCancel(ctx), t, it)
			if kept.written() != writes || len(fake.saves) != 0 {
				t.Error("something was written after the claim was lost")
			}
			return base.Content(errors.New("looks bad"))
		}}
		start(t, &base.Runner{Registry: fake, Interim: kept, Connect: f.connect, Log: book.logger()}, w)
		if got := <-f.deliver("i").answered; got != "finish" {
			t.Errorf("message was answered with %s, want finish", got)
		}
		_, at := fake.renewals()
		lastRenewal = at[3]
		if want := lastRenewal + 25*time.Second; ended != want {
			t.Errorf("fenced after %v, want 25 s after the last answered renewal was sent: %v", ended, want)
		}
		if len(fake.settled()) != 0 {
			t.Errorf("settled %+v, want nothing", fake.settled())
		}
		if n := book.count(slog.LevelWarn, "service does not answer; waiting"); n != 1 {
			t.Errorf("the outage was logged %d times in 25 s, want once", n)
		}
	})
}

func TestClaimLost_StopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, kept := newFake(), newFakeInterim()
		fake.onRenew = func(_ int, r registry.RenewRequest) ([]registry.Lease, error) {
			var all []registry.Lease
			for _, b := range r.Beats {
				all = append(all, b.Lease)
			}
			return all, nil
		}
		w := &worker{work: func(ctx context.Context, it *base.Item) error {
			if err := it.Writable(ctx); err != nil {
				t.Errorf("Writable while the claim is held: %v", err)
			}
			<-ctx.Done()
			assertRefuses(ctx, t, it)
			return nil
		}}
		begun := time.Now()
		_, err := (&base.Runner{Registry: fake, Interim: kept}).RunOne(t.Context(), w, "i")
		if !errors.Is(err, registry.ErrClaimLost) || len(fake.settled()) != 0 || kept.written() != 0 || len(fake.saves) != 0 {
			t.Errorf("err %v, settled %v, %d interim writes", err, fake.settled(), kept.written())
		}
		if took := time.Since(begun); took > 11*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestR29_StuckStepIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		w := &worker{work: func(ctx context.Context, it *base.Item) error {
			p := it.Progress("rows", "rows")
			for range 3 { // slow, but moving
				time.Sleep(9 * time.Minute)
				p.Add(1)
			}
			p.Set(3) // no move
			<-ctx.Done()
			return errors.New("cut off")
		}}
		begun := time.Now()
		_, err := (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i")
		if took := time.Since(begun); took != 37*time.Minute {
			t.Errorf("taken away after %v, want 10 min after the last progress at 27 min", took)
		}
		got := fake.settled()
		if err == nil || len(got) != 1 || got[0].Outcome != registry.OutcomeRetry || got[0].Error != "no progress for 10m0s: cut off" {
			t.Errorf("err %v, settled %+v; want a counted retry", err, got)
		}
		if got := fake.claims[0].StuckAfter; got != 11*time.Minute {
			t.Errorf("the Registry takes it away after %v, want later than this process would", got)
		}
	})
}

// TestRenew_NotForEveryItem: a busy worker reports its free slots, but not for each of a thousand
// items.
func TestRenew_NotForEveryItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		w := &worker{Worker: base.Worker{Slots: 1}, work: until(time.Millisecond, nil)}
		stop := start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
		for range 1000 {
			<-f.deliver("i").answered
			synctest.Wait()
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if renews, _ := fake.renewals(); len(renews) > 5 {
			t.Errorf("%d renewals in a second, want at most one each half second", len(renews))
		}
	})
}

func TestR29_AbandonedStepsEndTheWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, kept, f, book := newFake(), newFakeInterim(), newFeed(), &logbook{}
		let := make(chan struct{})
		late := make(chan error, 2)
		w := &worker{Worker: base.Worker{Slots: 3}, work: func(ctx context.Context, it *base.Item) error {
			<-let // hangs, whatever ctx says
			late <- base.Put(context.WithoutCancel(ctx), it, "k", 1)
			return nil
		}}
		done := make(chan error, 1)
		r := &base.Runner{Registry: fake, Interim: kept, Connect: f.connect, Log: book.logger()}
		go func() { done <- r.Run(t.Context(), w) }()
		first := f.deliver("a")
		if got := <-first.answered; got != "finish" {
			t.Errorf("message was answered with %s", got)
		}
		if got := f.allowed(); got[len(got)-1] != 2 {
			t.Errorf("free %v, want 2 slots left beside the abandoned step", got)
		}
		second := f.deliver("b")
		if err := <-done; !errors.Is(err, base.ErrAbandoned) {
			t.Errorf("Run: %v, want ErrAbandoned", err)
		}
		if got := <-second.answered; got != "finish" {
			t.Errorf("message was answered with %s", got)
		}
		for _, s := range fake.settled() {
			if s.Outcome != registry.OutcomeRetry {
				t.Errorf("settled %+v, want a counted retry", s)
			}
		}
		if len(fake.settled()) != 2 || book.count(slog.LevelError, "step hangs and was abandoned") != 2 {
			t.Errorf("settled %d times, want 2", len(fake.settled()))
		}
		close(let)
		for range 2 {
			if err := <-late; !errors.Is(err, registry.ErrClaimLost) {
				t.Errorf("an abandoned step wrote: %v, want ErrClaimLost", err)
			}
		}
		if kept.written() != 0 {
			t.Error("an abandoned step wrote interim data")
		}
	})
}

func TestTouch_FollowsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		w := &worker{work: func(_ context.Context, it *base.Item) error {
			for range 60 {
				time.Sleep(time.Second)
				it.Progress("rows", "rows").Add(1)
			}
			time.Sleep(time.Minute) // alive, but without progress
			return nil
		}}
		start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
		m := f.deliver("i")
		<-m.answered
		if n := m.touches(); n < 6 || n > 8 {
			t.Errorf("touched %d times, want about every 10 s of the minute with progress", n)
		}
	})
}

func TestOutage_ClaimIsRepeatedThenTheMessageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f, book := newFake(), newFeed(), &logbook{}
		fake.onClaim = func(call int, _ registry.ClaimRequest) error {
			if call == 2 || call > 9 {
				return nil
			}
			return errDown
		}
		w := &worker{work: func(context.Context, *base.Item) error { return nil }}
		start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect, Log: book.logger()}, w)
		if got := <-f.deliver("a").answered; got != "finish" {
			t.Errorf("first message was answered with %s, want finish", got)
		}
		if fake.claims[0].RequestID == "" || fake.claims[0].RequestID != fake.claims[1].RequestID {
			t.Error("a repeated claim names another request (R9)")
		}
		if got := <-f.deliver("b").answered; got != "requeue 5s" {
			t.Errorf("message was answered with %s during the outage, want requeue", got)
		}
		if got := <-f.deliver("b").answered; got != "finish" {
			t.Errorf("message was answered with %s after the outage, want finish", got)
		}
		if a, b := book.count(slog.LevelWarn, "service does not answer; waiting"), book.count(slog.LevelInfo, "service answers again"); a != 1 || b != 1 {
			t.Errorf("%d outages and %d recoveries logged within half a minute, want 1 and 1", a, b)
		}
		if len(fake.settled()) != 2 {
			t.Errorf("settled %d times, want 2", len(fake.settled()))
		}
	})
}

func TestOutage_SettleIsRepeatedWhileTheLeaseLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		fake.onSettle = func(call int, _ registry.Settlement) error {
			if call < 4 {
				return errDown
			}
			return nil
		}
		w := &worker{work: func(context.Context, *base.Item) error { return nil }}
		if _, err := (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i"); err != nil {
			t.Error(err)
		}
		got := fake.settled()
		for _, s := range got {
			if s.Outcome != registry.OutcomeDone || s.Lease != got[0].Lease {
				t.Errorf("settlement %+v, want the same each time", s)
			}
		}
		if len(got) != 4 {
			t.Errorf("asked %d times, want 4", len(got))
		}
	})
}

func TestOutage_SettleEndsWithTheLease(t *testing.T) {
	for name, renewals := range map[string]error{"nothing answers": errDown, "only the settlement is refused": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake, f := newFake(), newFeed()
				fake.onSettle = func(int, registry.Settlement) error { return errDown }
				fake.onRenew = func(call int, _ registry.RenewRequest) ([]registry.Lease, error) {
					if call == 1 {
						return nil, nil
					}
					return nil, renewals
				}
				w := &worker{work: func(context.Context, *base.Item) error { return nil }}
				start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
				begun := time.Now()
				if got := <-f.deliver("i").answered; got != "finish" {
					t.Errorf("message was answered with %s, want finish: the Registry rings again", got)
				}
				if took := time.Since(begun); took > 31*time.Second {
					t.Errorf("gave up after %v, want within a lease", took)
				}
			})
		})
	}
}

func TestOutage_InterimIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, kept, book := newFake(), newFakeInterim(), &logbook{}
		begun := time.Now()
		kept.onCall = func(int) error {
			if time.Since(begun) < 4*time.Minute {
				return errDown
			}
			return nil
		}
		w := &worker{work: func(ctx context.Context, it *base.Item) error { return base.Put(ctx, it, "k", 1) }}
		r := &base.Runner{Registry: fake, Interim: kept, Log: book.logger()}
		if _, err := r.RunOne(t.Context(), w, "i"); err != nil {
			t.Error(err)
		}
		if got := fake.settled(); len(got) != 1 || got[0].Outcome != registry.OutcomeDone || kept.written() != 1 {
			t.Errorf("settled %+v, %d writes; want done after the outage", got, kept.written())
		}
		if n := book.count(slog.LevelWarn, "service does not answer; waiting"); n < 7 || n > 9 {
			t.Errorf("logged %d times in 4 minutes, want once each 30 s", n)
		}
		if book.count(slog.LevelInfo, "service answers again") != 1 {
			t.Error("the recovery was not logged once")
		}
	})
}

func TestOutage_RunWaitsForTheRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		fake.onRenew = func(int, registry.RenewRequest) ([]registry.Lease, error) {
			if time.Since(fake.begun) < time.Minute {
				return nil, errDown
			}
			return nil, nil
		}
		w := &worker{work: func(context.Context, *base.Item) error { return nil }}
		start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
		<-f.ready
		if took := time.Since(fake.begun); took < time.Minute {
			t.Errorf("subscribed after %v, before the Registry knew of the worker", took)
		}
	})
}
