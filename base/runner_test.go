package base_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
)

func TestRun_RefusesWrongSetups(t *testing.T) {
	fake, kept := newFake(), newFakeInterim()
	w := &worker{work: func(context.Context, *base.Item) error { return nil }}
	tests := []struct {
		name     string
		runner   *base.Runner
		handlers []base.Handler
	}{
		{"no queue", &base.Runner{Registry: fake, Interim: kept}, []base.Handler{w}},
		{"no registry", &base.Runner{Interim: kept, Connect: newFeed().connect}, []base.Handler{w}},
		{"no interim store", &base.Runner{Registry: fake, Connect: newFeed().connect}, []base.Handler{w}},
		{"no workers", &base.Runner{Registry: fake, Interim: kept, Connect: newFeed().connect}, nil},
		{"two for a stage", &base.Runner{Registry: fake, Interim: kept, Connect: newFeed().connect}, []base.Handler{w, w}},
		{"unknown stage", &base.Runner{Registry: fake, Interim: kept, Connect: newFeed().connect}, []base.Handler{&lost{worker{}}}},
		{"nobody to ask", &base.Runner{Registry: fake, Interim: kept, Connect: unreachable}, []base.Handler{w}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.runner.Run(t.Context(), tt.handlers...); err == nil {
				t.Error("no error")
			}
		})
	}
}

type lost struct{ worker }

func (w *lost) Stage() registry.Stage { return "nowhere" }

func unreachable(context.Context, registry.Action, registry.Stage, int, base.HandleFunc) (base.Consumer, error) {
	return nil, errDown
}

func TestRun_SecondCallIsAnError(t *testing.T) {
	r := &base.Runner{Registry: newFake(), Interim: newFakeInterim(), Connect: newFeed().connect}
	w := &worker{work: func(context.Context, *base.Item) error { return nil }}
	stop := start(t, r, w)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), w); !errors.Is(err, base.ErrStarted) {
		t.Errorf("second Run: %v, want ErrStarted", err)
	}
}

// TestI05_ShutdownReleases: a busy worker hands its items over, uncounted, with their checkpoints.
func TestI05_ShutdownReleases(t *testing.T) {
	store, kept, f := openRegistry(t), openInterim(t), newFeed()
	working := make(chan string, 4)
	w := &worker{work: func(ctx context.Context, it *base.Item) error {
		working <- it.ID
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), base.ErrStopping) {
			t.Errorf("cause %v, want ErrStopping", context.Cause(ctx))
		}
		if err := it.Writable(ctx); !errors.Is(err, base.ErrStopping) {
			t.Errorf("Writable while stopping: %v, want ErrStopping", err)
		}
		if err := base.Put(ctx, it, "offset", 42); err != nil {
			t.Errorf("last checkpoint: %v", err)
		}
		return base.Content(ctx.Err()) // mistakes the interruption for a fault of the deposit
	}}
	stop := start(t, &base.Runner{Registry: store, Interim: kept, Connect: f.connect}, w)
	var messages []*message
	var ids []string
	for range 4 {
		ids = append(ids, submit(t, store))
		messages = append(messages, f.deliver(ids[len(ids)-1]))
		<-working
	}
	begun := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("hand-over took %v, want under 5 s", took)
	}
	for _, m := range messages {
		if got := <-m.answered; got != "finish" {
			t.Errorf("message was answered with %s, want finish", got)
		}
	}
	for _, id := range ids {
		it := itemOf(t, store, id)
		if it.Status != registry.Pending || it.Tries != 0 || it.ErrorClass != "" {
			t.Errorf("status=%s tries=%d class=%s, want pending 0 and no fault", it.Status, it.Tries, it.ErrorClass)
		}
		attempts, err := store.Attempts(t.Context(), id)
		if err != nil || len(attempts) != 1 || attempts[0].Outcome != registry.OutcomeReleased {
			t.Errorf("attempts %+v, %v; want one that ended as cancelled", attempts, err)
		}
	}
	// Another worker goes on from the checkpoint.
	next := &worker{work: func(ctx context.Context, it *base.Item) error {
		if at, ok, err := base.Get[int](ctx, it, "offset"); !ok || err != nil || at != 42 {
			t.Errorf("checkpoint %d, %v, %v; want 42", at, ok, err)
		}
		return nil
	}}
	for range ids {
		id := anyPending(t, store, ids)
		if _, err := (&base.Runner{Registry: store, Interim: kept}).RunOne(t.Context(), next, id); err != nil {
			t.Error(err)
		}
	}
	if n := len(f.allowed()); f.allowed()[n-1] != 0 || f.stopped != 1 {
		t.Errorf("free %v, stopped %d times; want 0 at the end, once", f.allowed(), f.stopped)
	}
}

// anyPending returns the first of ids that still stands in expand: the one that a claim gives.
func anyPending(t *testing.T, s registry.ItemReader, ids []string) string {
	t.Helper()
	for _, id := range ids {
		if itemOf(t, s, id).Stage == registry.Expand {
			return id
		}
	}
	t.Fatal("nothing is pending")
	return ""
}

func TestShutdown_FinishedWorkIsKept(t *testing.T) {
	store, f := openRegistry(t), newFeed()
	id := submit(t, store)
	working := make(chan struct{})
	w := &worker{work: func(ctx context.Context, _ *base.Item) error {
		close(working)
		<-ctx.Done()
		return nil // it was done anyway
	}}
	stop := start(t, &base.Runner{Registry: store, Interim: openInterim(t), Connect: f.connect}, w)
	f.deliver(id)
	<-working
	if err := stop(); err != nil {
		t.Error(err)
	}
	if it := itemOf(t, store, id); it.Stage != registry.Report {
		t.Errorf("stage %s, want report", it.Stage)
	}
}

// TestShutdown_GraceBoundsAStepThatHangs: the item is released although its step does not return,
// and Run ends in time.
func TestShutdown_GraceBoundsAStepThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		let := make(chan struct{})
		w := &worker{work: func(context.Context, *base.Item) error { <-let; return nil }}
		stop := start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
		f.deliver("i")
		synctest.Wait()
		begun := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 25*time.Second {
			t.Errorf("Run returned after %v, want within the grace", took)
		}
		if got := fake.settled(); len(got) != 1 || got[0].Outcome != registry.OutcomeReleased {
			t.Errorf("settled %+v, want released", got)
		}
		close(let)
	})
}

// TestShutdown_GraceBoundsAnOutage: the Registry does not answer either; the claim expires.
func TestShutdown_GraceBoundsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		fake.onSettle = func(int, registry.Settlement) error { return errDown }
		w := &worker{work: until(time.Hour, nil)}
		stop := start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect, Grace: 10 * time.Second}, w)
		f.deliver("i")
		synctest.Wait()
		begun := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("Run returned after %v, want within the grace", took)
		}
	})
}

func TestShutdown_ClaimUnderWayIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		fake.onClaim = func(int, registry.ClaimRequest) error { time.Sleep(time.Second); return nil }
		w := &worker{work: func(context.Context, *base.Item) error { t.Error("worked on it"); return nil }}
		stop := start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
		m := f.deliver("i")
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := fake.settled(); len(got) != 1 || got[0].Outcome != registry.OutcomeReleased {
			t.Errorf("settled %+v, want released", got)
		}
		if got := <-m.answered; got != "finish" {
			t.Errorf("message was answered with %s, want finish", got)
		}
		if got := <-f.deliver("j").answered; got != "requeue 0s" {
			t.Errorf("a message after the stop was answered with %s, want requeue 0s", got)
		}
	})
}

func TestRun_FullWorkerGivesMessagesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, f := newFake(), newFeed()
		w := &worker{Worker: base.Worker{Slots: 1}, work: until(time.Second, nil)}
		start(t, &base.Runner{Registry: fake, Interim: newFakeInterim(), Connect: f.connect}, w)
		first := f.deliver("a")
		synctest.Wait()
		if got := <-f.deliver("b").answered; got != "requeue 1s" {
			t.Errorf("message was answered with %s, want requeue 1s", got)
		}
		if got := <-first.answered; got != "finish" {
			t.Errorf("message was answered with %s, want finish", got)
		}
	})
}

func TestRunOne(t *testing.T) {
	store := openRegistry(t)
	first, second := submit(t, store), submit(t, store)
	r := &base.Runner{Registry: store, Interim: openInterim(t)}
	var worked atomic.Int32
	w := &worker{work: func(context.Context, *base.Item) error { worked.Add(1); return nil }}
	// The Registry gives the best item; RunOne works on the one that was asked for, or on none.
	var refused *registry.NotClaimable
	if _, err := r.RunOne(t.Context(), w, second); !errors.As(err, &refused) || refused.Reason != registry.ReasonQueued || worked.Load() != 0 {
		t.Errorf("RunOne of the second: %v, want queued", err)
	}
	if it := itemOf(t, store, first); it.Status != registry.Pending || it.Tries != 0 {
		t.Errorf("first: status=%s tries=%d, want pending 0", it.Status, it.Tries)
	}
	for _, id := range []string{first, second} {
		if v, err := r.RunOne(t.Context(), w, id); err != nil || v.Stage != registry.Report {
			t.Errorf("RunOne: %+v, %v", v, err)
		}
	}
	if _, err := r.RunOne(t.Context(), w, first); !errors.As(err, &refused) || refused.Reason != registry.ReasonWrongStage {
		t.Errorf("RunOne of a finished stage: %v, want wrong-stage", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	third := submit(t, store)
	w.work = func(ctx context.Context, _ *base.Item) error { cancel(nil); <-ctx.Done(); return context.Cause(ctx) }
	if v, err := r.RunOne(ctx, w, third); !errors.Is(err, base.ErrStopping) || v.Status != registry.Pending {
		t.Errorf("RunOne of a cancelled context: %+v, %v; want pending, ErrStopping", v, err)
	}
	if it := itemOf(t, store, third); it.Tries != 0 {
		t.Errorf("tries=%d, want 0", it.Tries)
	}
}

// TestStep_IsMeasured checks that the process tells how long steps ran.
func TestStep_IsMeasured(t *testing.T) {
	runs := func() string {
		w := httptest.NewRecorder()
		metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		_, after, _ := strings.Cut(w.Body.String(), `holdfast_step_duration_seconds_count{stage="expand"} `)
		count, _, _ := strings.Cut(after, "\n")
		return count
	}
	before := runs()
	runOne(t, func(context.Context, *base.Item) error { return nil })
	if after := runs(); after == before || after == "" {
		t.Errorf("runs measured: %q before, %q after", before, after)
	}
}
