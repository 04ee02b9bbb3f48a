package relay_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/periodic/relay"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// publisher records what is published. Each publish calls on, which may look around and may fail
// it.
type publisher struct {
	on func(ctx context.Context, topic string, ids []string) error

	mu   sync.Mutex
	sent []string // "topic id"
}

func (p *publisher) Publish(ctx context.Context, topic string, ids ...string) error {
	if p.on != nil {
		if err := p.on(ctx, topic, ids); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		p.sent = append(p.sent, topic+" "+id)
	}
	return nil
}

func openStore(t *testing.T) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.SQLite(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"); err != nil {
		t.Fatal(err)
	}
	return s
}

func submit(t *testing.T, s *sqlstore.Store) string {
	t.Helper()
	r, err := s.Submit(t.Context(), registry.Submission{Collection: "c"})
	if err != nil {
		t.Fatal(err)
	}
	return r.BatchID
}

// start runs a relay until the test ends, and waits for its end.
func start(t *testing.T, r *relay.Relay) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func waitFor(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not happen", what)
	}
}

// TestR19_PublishesAfterCommit looks into the store during the publish. The offer is already
// recorded, so that no other relay repeats it, and the item can be claimed.
func TestR19_PublishesAfterCommit(t *testing.T) {
	s := openStore(t)
	id := submit(t, s)
	published := make(chan struct{})
	p := &publisher{on: func(ctx context.Context, topic string, ids []string) error {
		defer close(published)
		if topic != "test-batch.expand" || !slices.Equal(ids, []string{id}) {
			t.Errorf("published %v to %s", ids, topic)
		}
		again, err := s.Due(ctx, registry.DueRequest{Window: 2, Renudge: time.Minute, RenudgeMax: time.Hour})
		if err != nil || len(again) != 0 {
			t.Errorf("another relay offers %v too: %v", again, err)
		}
		if _, err := s.Claim(ctx, registry.ClaimRequest{RequestID: "r", Stage: registry.Expand, Hint: id, Lease: time.Hour}); err != nil {
			t.Error(err)
		}
		return nil
	}}
	r := relay.New(s, p, slog.New(slog.DiscardHandler))
	r.Prefix = "test-"
	start(t, r)
	waitFor(t, "the publish", published)
}

// TestWakesAtOnce checks that a commit wakes the relay; the poll is only the fallback.
func TestWakesAtOnce(t *testing.T) {
	s := openStore(t)
	arrived := make(chan string, 10)
	r := relay.New(s, &publisher{on: func(_ context.Context, _ string, ids []string) error {
		for _, id := range ids {
			arrived <- id
		}
		return nil
	}}, slog.New(slog.DiscardHandler))
	r.Poll = time.Hour
	start(t, r)
	for range 3 {
		id := submit(t, s)
		select {
		case got := <-arrived:
			if got != id {
				t.Errorf("rang for %s, want %s", got, id)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("nothing rang")
		}
		if _, err := s.Claim(t.Context(), registry.ClaimRequest{RequestID: id, Stage: registry.Expand, Hint: id, Lease: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestR19_FailedPublishIsTakenBack checks that an item is due again at once if publishing failed.
func TestR19_FailedPublishIsTakenBack(t *testing.T) {
	s := openStore(t)
	id := submit(t, s)
	failures, sent := 0, make(chan struct{})
	r := relay.New(s, &publisher{on: func(context.Context, string, []string) error {
		if failures++; failures <= 3 {
			return errors.New("nsqd is down")
		}
		close(sent)
		return nil
	}}, slog.New(slog.DiscardHandler))
	r.Poll, r.Renudge, r.RenudgeMax = time.Millisecond, time.Hour, time.Hour
	stop := start(t, r)
	waitFor(t, "the publish after the outage", sent)
	stop()
	it, err := s.Item(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if it.Status != registry.Pending || it.Attempt != 0 || it.Tries != 0 {
		t.Errorf("an outage of the queue changed the item: %+v", it)
	}
}

// TestR19_StopWhilePublishingTakesBack checks that an item is due again at once if the relay was
// stopped during a failing publish.
func TestR19_StopWhilePublishingTakesBack(t *testing.T) {
	s := openStore(t)
	id := submit(t, s)
	inside := make(chan struct{})
	r := relay.New(s, &publisher{on: func(ctx context.Context, _ string, _ []string) error {
		close(inside)
		<-ctx.Done()
		return ctx.Err()
	}}, slog.New(slog.DiscardHandler))
	r.Renudge = time.Hour
	stop := start(t, r)
	waitFor(t, "the publish", inside)
	stop()
	wakes, err := s.Due(t.Context(), registry.DueRequest{Window: 1, Renudge: time.Hour, RenudgeMax: time.Hour})
	if err != nil || len(wakes) != 1 || wakes[0].ItemID != id {
		t.Errorf("due %v, %v; want %s", wakes, err, id)
	}
}

// fake is a registry whose only item is always due, until it is told otherwise.
type fake struct {
	registry.Dispatching
	mu     sync.Mutex
	stages []registry.Stage
	err    error
	undone int
}

func (f *fake) Due(context.Context, registry.DueRequest) ([]registry.Wake, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var wakes []registry.Wake
	for _, stage := range f.stages {
		a, _ := registry.ActionOf(stage)
		wakes = append(wakes, registry.Wake{Action: a, Stage: stage, ItemID: "item-" + string(stage)})
	}
	f.stages = nil
	return wakes, f.err
}

func (f *fake) Undo(_ context.Context, wakes []registry.Wake) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range wakes {
		f.stages = append(f.stages, w.Stage)
	}
	f.undone += len(wakes)
	return nil
}

func (f *fake) Woken() <-chan struct{} { return nil }

func (f *fake) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// TestOutageIsLoggedOnceAnInterval checks that an outage is logged once per interval, not once per
// poll, and its end once.
func TestOutageIsLoggedOnceAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		f := &fake{err: errors.New("no database")}
		r := relay.New(f, &publisher{}, slog.New(slog.NewTextHandler(&out, nil)))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		time.Sleep(75*time.Second + time.Millisecond)
		f.set(nil)
		time.Sleep(10 * time.Second)
		f.set(errors.New("no database"))
		time.Sleep(time.Second)
		stop()
		<-done
		var levels []string
		for line := range strings.Lines(out.String()) {
			levels = append(levels, strings.Fields(line)[1])
		}
		if want := []string{"level=WARN", "level=WARN", "level=WARN", "level=INFO", "level=WARN"}; !slices.Equal(levels, want) {
			t.Errorf("logged %v, want %v:\n%s", levels, want, out.String())
		}
		if !strings.Contains(out.String(), "failures=76") {
			t.Errorf("the end does not tell how long it was:\n%s", out.String())
		}
	})
}

// TestOneTopicsTroubleIsItsOwn checks that messages of other topics are published if one topic
// fails.
func TestOneTopicsTroubleIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{stages: []registry.Stage{registry.Expand, registry.Download}}
		p := &publisher{on: func(_ context.Context, topic string, _ []string) error {
			if topic == "batch.expand" {
				return errors.New("refused")
			}
			return nil
		}}
		r := relay.New(f, p, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		synctest.Wait()
		stop()
		<-done
		if !slices.Equal(p.sent, []string{"ingest.download item-download"}) || f.undone != 1 {
			t.Errorf("sent %v, undone %d", p.sent, f.undone)
		}
	})
}

// TestBadTopicIsTakenBack checks that a prefix that no topic can have counts as an outage.
func TestBadTopicIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{stages: []registry.Stage{registry.Expand, registry.Download}}
		r := relay.New(f, &publisher{}, slog.New(slog.DiscardHandler))
		r.Prefix = "not a topic!"
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		synctest.Wait()
		stop()
		<-done
		if f.undone != 2 {
			t.Errorf("%d wake-ups were taken back, want 2", f.undone)
		}
	})
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	relay.New(openStore(t), &publisher{}, slog.New(slog.DiscardHandler)).Run(ctx)
}
