package base_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
)

// fakeContinuing is a Registry in the workers' process: jobs go on to their next stages in it.
type fakeContinuing struct {
	*fakeRegistry
	refuse func(next registry.ClaimRequest) bool // whether the item must wait for a message; nil: never

	mu   sync.Mutex
	went []registry.ClaimRequest
}

func (f *fakeContinuing) Claim(ctx context.Context, r registry.ClaimRequest) (registry.Claim, error) {
	c, err := f.fakeRegistry.Claim(ctx, r)
	c.Item.Action = registry.Ingest
	return c, err
}

func (f *fakeContinuing) SettleAndClaim(ctx context.Context, s registry.Settlement, next registry.ClaimRequest) (registry.Verdict, *registry.Claim, error) {
	v, err := f.Settle(ctx, s)
	if err != nil || f.refuse != nil && f.refuse(next) {
		return v, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.went = append(f.went, next)
	item := registry.WorkItem{ID: s.Lease.ItemID, Action: registry.Ingest, Stage: next.Stage, Status: registry.Running, Attempt: s.Lease.N + 1, Spec: f.spec}
	return v, &registry.Claim{Item: item, Lease: registry.Lease{ItemID: item.ID, N: item.Attempt}}, nil
}

func (f *fakeContinuing) continued() []registry.ClaimRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.went)
}

// stageWorker is a worker of any stage. It notes what it does and when.
type stageWorker struct {
	base.Worker
	stage registry.Stage
	takes map[string]time.Duration
	diary *diary
}

func (w *stageWorker) Stage() registry.Stage { return w.stage }

func (w *stageWorker) Work(ctx context.Context, item *base.Item) error {
	w.diary.begin(w.stage, item.ID)
	defer w.diary.end(w.stage)
	return until(w.takes[item.ID], nil)(ctx, item)
}

// diary has the steps that began, with the time since the diary's making, and how many ran at once.
type diary struct {
	made time.Time

	mu      sync.Mutex
	steps   []string
	running map[registry.Stage]int
	most    map[registry.Stage]int
}

func newDiary() *diary {
	return &diary{made: time.Now(), running: map[registry.Stage]int{}, most: map[registry.Stage]int{}}
}

func (d *diary) begin(stage registry.Stage, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps = append(d.steps, fmt.Sprintf("%s %s %s", time.Since(d.made).Truncate(time.Second), stage, id))
	d.running[stage]++
	d.most[stage] = max(d.most[stage], d.running[stage])
}

func (d *diary) end(stage registry.Stage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running[stage]--
}

// feeds are the queues of several stages.
type feeds map[registry.Stage]*feed

func (f feeds) connect(ctx context.Context, a registry.Action, s registry.Stage, free int, handle base.HandleFunc) (base.Consumer, error) {
	return f[s].connect(ctx, a, s, free, handle)
}

// pipeline starts a worker of each stage. An item's steps take the given time.
func pipeline(t *testing.T, r registry.Working, slots int, takes map[string]time.Duration, stages ...registry.Stage) (feeds, *diary, func() error) {
	t.Helper()
	f, d := feeds{}, newDiary()
	var handlers []base.Handler
	for _, stage := range stages {
		f[stage] = newFeed()
		handlers = append(handlers, &stageWorker{Worker: base.Worker{Slots: slots}, stage: stage, takes: takes, diary: d})
	}
	stop := start(t, &base.Runner{Registry: r, Interim: newFakeInterim(), Connect: f.connect}, handlers...)
	return f, d, stop
}

// An item goes through the stages of a process with one message and one claim. Its message is
// answered after its first step.
func TestContinue_OneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeContinuing{fakeRegistry: newFake()}
		f, d, stop := pipeline(t, fake, 1, map[string]time.Duration{"a": 10 * time.Second}, registry.Estimate, registry.Provision, registry.Download)
		m := f[registry.Estimate].deliver("a")
		if got := <-m.answered; got != "finish" || time.Since(d.made) != 10*time.Second {
			t.Errorf("answered with %s after %s, want finish after the first step", got, time.Since(d.made))
		}
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if want := []string{"0s estimate a", "10s provision a", "20s download a"}; !slices.Equal(d.steps, want) {
			t.Errorf("did %q, want %q", d.steps, want)
		}
		if got := len(fake.claimed()); got != 1 {
			t.Errorf("%d claims, want 1", got)
		}
		for i, s := range fake.settled() {
			if s.Lease != (registry.Lease{ItemID: "a", N: int64(i + 1)}) || s.Outcome != registry.OutcomeDone {
				t.Errorf("settlement %d: %+v", i, s)
			}
		}
		for _, r := range fake.continued() {
			if r.Hint != "a" || r.RequestID == "" || r.Lease <= 0 || r.MaxAttempts == 0 || r.StuckAfter == 0 || r.Worker != fake.claimed()[0].Worker {
				t.Errorf("continued with %+v", r)
			}
		}
	})
}

// Items that continue take no more slots than there are. Those without one settle without asking,
// and a message that comes while the slots are taken waits a moment for one.
func TestContinue_Slots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeContinuing{fakeRegistry: newFake()}
		f, d, stop := pipeline(t, fake, 1, map[string]time.Duration{"a": 10 * time.Second, "b": 500 * time.Millisecond}, registry.Estimate, registry.Provision)
		<-f[registry.Estimate].deliver("a").answered
		synctest.Wait()
		<-f[registry.Estimate].deliver("b").answered // while a is at provision
		if got := len(fake.continued()); got != 1 {
			t.Errorf("%d items continued, want only the first", got)
		}
		if got := <-f[registry.Provision].deliver("b").answered; got != "requeue 1s" {
			t.Errorf("the message without a slot was answered with %s", got)
		}
		time.Sleep(8 * time.Second) // a has half a second left
		if got := <-f[registry.Provision].deliver("b").answered; got != "finish" {
			t.Errorf("the message that found a slot in time was answered with %s", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if d.most[registry.Provision] != 1 || d.most[registry.Estimate] != 1 {
			t.Errorf("at once ran %v, want 1 in each stage", d.most)
		}
		if want := []string{"0s estimate a", "10s provision a", "10s estimate b", "20s provision b"}; !slices.Equal(d.steps, want) {
			t.Errorf("did %q, want %q", d.steps, want)
		}
	})
}

// A slot that was kept for an item which must wait is free again. A worker on hold, or one that
// stops, keeps none.
func TestContinue_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeContinuing{fakeRegistry: newFake(), refuse: func(r registry.ClaimRequest) bool { return r.Hint == "a" }}
		f, _, stop := pipeline(t, fake, 1, nil, registry.Estimate, registry.Provision)
		for _, id := range []string{"a", "b", "a", "b"} {
			if got := <-f[registry.Estimate].deliver(id).answered; got != "finish" {
				t.Errorf("answered with %s", got)
			}
			synctest.Wait()
		}
		if got := len(fake.continued()); got != 2 {
			t.Errorf("%d items continued, want both that may", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
