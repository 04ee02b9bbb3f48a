package base_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// The ten steps of the Preserv life cycle, each with its test, against a real Registry and a real
// interim store.

func TestStep01_MessageIsAHint(t *testing.T) {
	store, f := openRegistry(t), newFeed()
	ready := submit(t, store)
	var worked atomic.Value
	w := &worker{work: func(_ context.Context, it *base.Item) error { worked.Store(it.ID); return nil }}
	start(t, &base.Runner{Registry: store, Interim: openInterim(t), Connect: f.connect}, w)
	m := f.deliver("no-such-item")
	if got := <-m.answered; got != "finish" {
		t.Errorf("message was answered with %s, want finish", got)
	}
	if worked.Load() != ready {
		t.Errorf("worked on %v, want the item that is ready, %s", worked.Load(), ready)
	}
}

func TestStep02_SkipsWhatCannotBeHad(t *testing.T) {
	ctx := t.Context()
	tests := []struct {
		name    string
		prepare func(t *testing.T, s *sqlstore.Store, id string)
	}{
		{"held", func(t *testing.T, s *sqlstore.Store, id string) {
			if err := s.AddHold(ctx, registry.Hold{Scope: registry.HoldItem, Key: id, Reason: "wait", Actor: "tester"}); err != nil {
				t.Fatal(err)
			}
		}},
		{"running elsewhere", func(t *testing.T, s *sqlstore.Store, id string) { claim(t, s, id) }},
		{"wrong stage", func(t *testing.T, s *sqlstore.Store, id string) {
			settle(t, s, registry.Settlement{Lease: claim(t, s, id), Outcome: registry.OutcomeDone})
		}},
		{"settled", func(t *testing.T, s *sqlstore.Store, id string) {
			settle(t, s, registry.Settlement{Lease: claim(t, s, id), Outcome: registry.OutcomeFailed})
		}},
		{"not due", func(t *testing.T, s *sqlstore.Store, id string) {
			settle(t, s, registry.Settlement{Lease: claim(t, s, id), Outcome: registry.OutcomeSnooze, Delay: 1 << 40})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store, f := openRegistry(t), newFeed()
			id := submit(t, store)
			tt.prepare(t, store, id)
			before := itemOf(t, store, id)
			w := &worker{work: func(context.Context, *base.Item) error { t.Error("worked on it"); return nil }}
			start(t, &base.Runner{Registry: store, Interim: openInterim(t), Connect: f.connect}, w)
			if got := <-f.deliver(id).answered; got != "finish" {
				t.Errorf("message was answered with %s, want finish", got)
			}
			after := itemOf(t, store, id)
			if after.Attempt != before.Attempt || after.Status != before.Status {
				t.Errorf("attempt %d status %s, want %d %s", after.Attempt, after.Status, before.Attempt, before.Status)
			}
		})
	}
}

func TestStep03_ClaimsOnce(t *testing.T) {
	store, f := openRegistry(t), newFeed()
	id := submit(t, store)
	var runs atomic.Int32
	working, goOn := make(chan registry.WorkItem), make(chan struct{})
	w := &worker{work: func(context.Context, *base.Item) error {
		runs.Add(1)
		working <- itemOf(t, store, id)
		<-goOn
		return nil
	}}
	start(t, &base.Runner{Registry: store, Interim: openInterim(t), Connect: f.connect, WorkerID: "worker-7"}, w)
	first := f.deliver(id)
	if got := <-working; got.Status != registry.Running || got.Attempt != 1 {
		t.Errorf("status %s attempt %d while it is worked on, want running, 1", got.Status, got.Attempt)
	}
	attempts, err := store.Attempts(t.Context(), id)
	if err != nil || len(attempts) != 1 || attempts[0].Worker != "worker-7" {
		t.Errorf("attempts %+v, %v; want one of worker-7", attempts, err)
	}
	if got := <-f.deliver(id).answered; got != "finish" {
		t.Errorf("a second message was answered with %s, want finish", got)
	}
	close(goOn)
	<-first.answered
	if runs.Load() != 1 {
		t.Errorf("worked %d times, want 1", runs.Load())
	}
}

func TestStep04_TellsTheQueue(t *testing.T) {
	store, f := openRegistry(t), newFeed()
	id := submit(t, store)
	m := &message{answered: make(chan string, 2)}
	var touched atomic.Int32
	w := &worker{work: func(context.Context, *base.Item) error { touched.Store(int32(m.touches())); return nil }}
	start(t, &base.Runner{Registry: store, Interim: openInterim(t), Connect: f.connect}, w)
	f.deliverMessage(id, m)
	<-m.answered
	if touched.Load() != 1 {
		t.Errorf("message was touched %d times before the work, want 1", touched.Load())
	}
}

func TestStep05_AdoptsInterimData(t *testing.T) {
	type checkpoint struct{ Offset int64 }
	store, kept := openRegistry(t), openInterim(t)
	id := submit(t, store)
	r := &base.Runner{Registry: store, Interim: kept}
	var found checkpoint
	w := &worker{work: func(ctx context.Context, it *base.Item) error {
		got, ok, err := base.Get[checkpoint](ctx, it, "file/1")
		if err != nil {
			return err
		}
		if !ok {
			if err := base.Put(ctx, it, "file/1", checkpoint{Offset: 16 << 20}); err != nil {
				return err
			}
			return base.Snooze(0, registry.ReasonNotDue, "cut off")
		}
		found = got
		return nil
	}}
	for range 2 {
		if _, err := r.RunOne(t.Context(), w, id); err != nil {
			t.Log(err)
		}
	}
	if found.Offset != 16<<20 {
		t.Errorf("the second attempt found offset %d, want that of the first, %d", found.Offset, 16<<20)
	}
}

func TestStep06_DoesTheTask(t *testing.T) {
	store := openRegistry(t)
	id := submit(t, store)
	w := &worker{work: func(_ context.Context, it *base.Item) error {
		if it.Spec().Filename != "payload" || it.Lease().ItemID != id {
			t.Errorf("spec %+v lease %+v", it.Spec(), it.Lease())
		}
		bytes, files := it.Transfer()
		bytes.SetEnd(700)
		bytes.Add(700)
		files.Add(3)
		it.SetSize(700, 3)
		it.AddPriority(10)
		return errors.Join(it.SetResult("rows", 3), it.Event("manifest-warnings", map[string]int{"rows": 3}))
	}}
	before := itemOf(t, store, id)
	if _, err := (&base.Runner{Registry: store, Interim: openInterim(t)}).RunOne(t.Context(), w, id); err != nil {
		t.Fatal(err)
	}
	got := itemOf(t, store, id)
	if got.SizeBytes != 700 || got.Files != 3 || got.DoneBytes != 700 || got.DoneFiles != 3 || got.Priority != before.Priority+10 {
		t.Errorf("size %d/%d done %d/%d priority %d", got.SizeBytes, got.Files, got.DoneBytes, got.DoneFiles, got.Priority)
	}
	if string(got.Results["rows"]) != "3" {
		t.Errorf("result rows = %s, want 3", got.Results["rows"])
	}
	events, err := store.Events(t.Context(), id, 0, 100)
	if err != nil || !slices.ContainsFunc(events, func(e registry.Event) bool { return e.Type == "manifest-warnings" && e.Attempt == 1 }) {
		t.Errorf("events %+v, %v; want one of type looked", events, err)
	}
	attempts, err := store.Attempts(t.Context(), id)
	if err != nil || len(attempts) != 1 || len(attempts[0].Progress) != 2 {
		t.Errorf("attempts %+v, %v; want one with two measures", attempts, err)
	}
}

func TestStep07_JudgesFailures(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		status registry.Status
		class  registry.ErrorClass
		tries  int
		log    string
		level  slog.Level
	}{
		{"content", base.Content(errors.New("digest differs")), registry.Failed, registry.ContentFault, 0, "item needs admin review", slog.LevelError},
		{"fatal", base.Fatal(errors.New("bucket is gone")), registry.Failed, registry.SystemFault, 0, "item needs admin review", slog.LevelError},
		{"other", errors.New("time-out"), registry.Pending, registry.SystemFault, 1, "item will be tried again", slog.LevelWarn},
		{"snooze", base.Snooze(0, registry.ReasonNoSpace, "full"), registry.Pending, "", 0, "item waits", slog.LevelDebug},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store, book := openRegistry(t), &logbook{}
			id := submit(t, store)
			w := &worker{work: func(context.Context, *base.Item) error { return tt.err }}
			r := &base.Runner{Registry: store, Interim: openInterim(t), Log: book.logger()}
			if _, err := r.RunOne(t.Context(), w, id); !errors.Is(err, tt.err) {
				t.Errorf("RunOne: %v, want the step's own error", err)
			}
			got := itemOf(t, store, id)
			if got.Status != tt.status || got.ErrorClass != tt.class || got.Tries != tt.tries {
				t.Errorf("status=%s class=%s tries=%d, want %s %s %d", got.Status, got.ErrorClass, got.Tries, tt.status, tt.class, tt.tries)
			}
			if got.Note != tt.err.Error() {
				t.Errorf("note %q, want %q", got.Note, tt.err)
			}
			if got.NeedsAdminReview != (tt.status == registry.Failed) || got.Retry == got.NeedsAdminReview {
				t.Errorf("needs_admin_review=%v retry=%v", got.NeedsAdminReview, got.Retry)
			}
			if book.count(tt.level, tt.log) != 1 {
				t.Errorf("%q was not logged once", tt.log)
			}
		})
	}
}

func TestStep07_MaxAttemptsBoundTries(t *testing.T) {
	store := openRegistry(t)
	id := submit(t, store)
	w := &eager{worker{Worker: base.Worker{Attempts: 3}, work: func(context.Context, *base.Item) error { return errors.New("down") }}}
	r := &base.Runner{Registry: store, Interim: openInterim(t)}
	for range 3 {
		if _, err := r.RunOne(t.Context(), w, id); err == nil {
			t.Fatal("no error")
		}
	}
	if got := itemOf(t, store, id); got.Status != registry.Failed || got.Tries != 3 || got.ErrorClass != registry.SystemFault {
		t.Errorf("status=%s tries=%d class=%s, want failed, 3, system", got.Status, got.Tries, got.ErrorClass)
	}
}

// eager overrides a policy of Worker by redeclaring it.
type eager struct{ worker }

func (w *eager) Backoff(int) (none time.Duration) { return none }

func TestStep08And10_SettlesInOneTransaction(t *testing.T) {
	store := openRegistry(t)
	id := submit(t, store)
	w := &worker{work: func(context.Context, *base.Item) error { return nil }}
	v, err := (&base.Runner{Registry: store, Interim: openInterim(t)}).RunOne(t.Context(), w, id)
	if err != nil || v.Stage != registry.Report || v.Status != registry.Pending {
		t.Fatalf("verdict %+v, %v; want report, pending", v, err)
	}
	// The relay offers only what a living worker can take.
	report := registry.WorkerInfo{ID: "reporter", Capacity: map[registry.Stage]int{registry.Report: 1}}
	if _, err := store.Renew(t.Context(), registry.RenewRequest{Worker: report}); err != nil {
		t.Fatal(err)
	}
	wakes, err := store.Due(t.Context(), registry.DueRequest{Window: 10, Renudge: 1 << 40, RenudgeMax: 1 << 41})
	if err != nil || !slices.Contains(wakes, registry.Wake{Action: registry.Batch, Stage: registry.Report, ItemID: id}) {
		t.Errorf("due %+v, %v; want the next topic's message for %s", wakes, err, id)
	}
}

func TestStep09_FinishesAfterTheOutcomeIsRecorded(t *testing.T) {
	store, f := openRegistry(t), newFeed()
	id := submit(t, store)
	var at registry.WorkItem
	m := &message{answered: make(chan string, 2), onFinish: func() { at = itemOf(t, store, id) }}
	w := &worker{work: func(context.Context, *base.Item) error { return nil }}
	start(t, &base.Runner{Registry: store, Interim: openInterim(t), Connect: f.connect}, w)
	f.deliverMessage(id, m)
	<-m.answered
	if at.Stage != registry.Report || at.Status != registry.Pending {
		t.Errorf("stage %s status %s when the message was finished, want report, pending", at.Stage, at.Status)
	}
}

// TestSteps_EveryItemOnce sends many items, each several times, through a worker.
func TestSteps_EveryItemOnce(t *testing.T) {
	store, f := openRegistry(t), newFeed()
	var mu sync.Mutex
	runs := map[string]int{}
	w := &worker{Worker: base.Worker{Slots: 4}, work: func(_ context.Context, it *base.Item) error {
		mu.Lock()
		defer mu.Unlock()
		runs[it.ID]++
		return nil
	}}
	start(t, &base.Runner{Registry: store, Interim: openInterim(t), Connect: f.connect}, w)
	var ids []string
	for range 20 {
		ids = append(ids, submit(t, store))
	}
	for range 3 {
		var batch []*message
		for _, id := range ids {
			batch = append(batch, f.deliver(id))
		}
		for _, m := range batch {
			<-m.answered
		}
	}
	for open := true; open; {
		open = false
		for _, id := range ids {
			if itemOf(t, store, id).Stage == registry.Expand { // its messages met a full worker
				open = true
				<-f.deliver(id).answered
			}
		}
	}
	for _, id := range ids {
		if runs[id] != 1 {
			t.Errorf("item %s was worked on %d times, want 1", id, runs[id])
		}
	}
}

// TestR09_ZombieIsRefused: a worker whose item was taken away and finished by another one comes
// back and changes nothing.
func TestR09_ZombieIsRefused(t *testing.T) {
	store, kept, f := openRegistry(t), openInterim(t), newFeed()
	id := submit(t, store)
	working, goOn := make(chan struct{}), make(chan struct{})
	zombie := &worker{work: func(ctx context.Context, it *base.Item) error {
		if err := base.Put(ctx, it, "k", "before"); err != nil {
			t.Error(err)
		}
		close(working)
		<-goOn
		var v string
		err := it.Once(ctx, "minted", &v, func(context.Context) (any, error) { return "the zombie's", nil })
		if !errors.Is(err, registry.ErrClaimLost) {
			t.Errorf("Once: %v, want ErrClaimLost", err)
		}
		assertRefuses(ctx, t, it) // it has learned of it
		return errors.Join(it.SetResult("rows", 1), base.Content(errors.New("bad")))
	}}
	start(t, &base.Runner{Registry: store, Interim: kept, Connect: f.connect}, zombie)
	m := f.deliver(id)
	<-working
	if _, err := store.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	successor := &worker{work: func(ctx context.Context, it *base.Item) error {
		if v, ok, err := base.Get[string](ctx, it, "k"); !ok || err != nil || v != "before" {
			t.Errorf("adopted %q, %v, %v", v, ok, err)
		}
		return nil
	}}
	if _, err := (&base.Runner{Registry: store, Interim: kept}).RunOne(t.Context(), successor, id); err != nil {
		t.Fatal(err)
	}
	want := itemOf(t, store, id)
	close(goOn)
	<-m.answered
	got := itemOf(t, store, id)
	if got.Stage != registry.Report || got.Status != want.Status || len(got.Results) != 0 || got.UpdatedAt != want.UpdatedAt {
		t.Errorf("the zombie changed the item: %+v, want %+v", got, want)
	}
}

func claim(t *testing.T, s registry.Working, id string) registry.Lease {
	t.Helper()
	c, err := s.Claim(t.Context(), registry.ClaimRequest{
		RequestID: t.Name(), Stage: registry.Expand, Hint: id, Worker: "other", Lease: 1 << 40, MaxAttempts: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.Lease
}

func settle(t *testing.T, s registry.Working, se registry.Settlement) {
	t.Helper()
	if _, err := s.Settle(t.Context(), se); err != nil {
		t.Fatal(err)
	}
}
