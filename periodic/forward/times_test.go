package forward_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/periodic/forward"
	"github.com/holdfast/holdfast/registry"
)

// fake is a Registry with one subscription and three events, which counts what it is asked.
type fake struct {
	forward.Registry

	mu     sync.Mutex
	down   bool // answers no renewal
	asked  map[string]int
	waits  []time.Duration
	cursor int64
	turn   int64
}

func (f *fake) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[what]++
}

func (f *fake) setDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

func (f *fake) TakeSubscriptions(context.Context, string, time.Duration) ([]registry.SubscriptionTurn, error) {
	f.note("take")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return nil, errors.New("no database")
	}
	return []registry.SubscriptionTurn{{
		Subscription: registry.Subscription{ID: "id", Name: "s", Target: "nsq:t", Cursor: f.cursor, Turn: f.turn}, Source: "urn:uuid:0",
	}}, nil
}

func (f *fake) ReleaseSubscriptions(context.Context, string) error { return nil }

func (f *fake) Feed(_ context.Context, q registry.FeedQuery) (out []registry.Event, err error) {
	f.note("feed")
	for seq := q.After + 1; seq <= 3 && len(q.Types) == 0; seq++ {
		out = append(out, registry.Event{Seq: seq, Type: "note", Data: json.RawMessage(`{}`)})
	}
	return out, nil
}

func (f *fake) FeedEnd(context.Context) (int64, error) { f.note("end"); return 3, nil }

func (f *fake) AwaitFeed(ctx context.Context, _ int64) error {
	f.note("await")
	<-ctx.Done()
	return ctx.Err()
}

func (f *fake) NoteForwarded(_ context.Context, p registry.SubscriptionProgress) error {
	f.note("forwarded")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cursor = p.Cursor
	return nil
}

func (f *fake) NoteUnforwarded(_ context.Context, u registry.SubscriptionFailure) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits = append(f.waits, u.Wait)
	return nil
}

// sender is a Queue that does what it is told.
type sender func(ctx context.Context) error

func (s sender) Send(ctx context.Context, _ string, _ ...[]byte) error { return s(ctx) }

// forwarding runs a Forwarder with its usual times in the bubble of a test.
func forwarding(t *testing.T, f *fake, q forward.Queue, log *slog.Logger) (stop func()) {
	t.Helper()
	w := forward.New(forward.Options{Registry: f, Queue: q, Redact: func([]registry.Event) {}, Owner: "one", Log: log})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	return func() { cancel(); <-done }
}

// TestBackoff checks the retries for a receiver that is down for two hours: ever rarer, but at
// least every six minutes, and logged now and then.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{asked: map[string]int{}, turn: 1}
		var log bytes.Buffer
		stop := forwarding(t, f, sender(func(context.Context) error { return errors.New("it is down") }), slog.New(slog.NewTextHandler(&log, nil)))
		time.Sleep(2 * time.Hour)
		stop()
		if n := len(f.waits); n < 25 || n > 45 {
			t.Errorf("%d tries in two hours: %v", n, f.waits)
		}
		for i, wait := range f.waits {
			want := min(time.Second<<min(i, 20), 5*time.Minute)
			if wait < want*8/10 || wait > want*12/10 {
				t.Errorf("wait %d is %v, want about %v", i, wait, want)
			}
		}
		if n := strings.Count(log.String(), "\n"); n < 10 || n > 30 {
			t.Errorf("%d lines of log:\n%s", n, log.String())
		}
		if f.asked["forwarded"] != 0 {
			t.Error("the cursor was moved")
		}
	})
}

// TestR15_CutOffFromTheRegistry checks that a process that cannot renew stops sending before its
// lease expires, and resumes when it can renew again.
func TestR15_CutOffFromTheRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{asked: map[string]int{}, turn: 1}
		var mu sync.Mutex
		var begun, broken []time.Duration
		start := time.Now()
		q := sender(func(ctx context.Context) error {
			mu.Lock()
			begun = append(begun, time.Since(start))
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			broken = append(broken, time.Since(start))
			mu.Unlock()
			return ctx.Err()
		})
		stop := forwarding(t, f, q, slog.New(slog.DiscardHandler))
		time.Sleep(15 * time.Second) // renewed at 0 and 10 s
		f.setDown(true)
		time.Sleep(5 * time.Minute)
		mu.Lock()
		if len(begun) != 1 || len(broken) != 1 || broken[0] > 10*time.Second+25*time.Second || broken[0] < 30*time.Second {
			t.Errorf("begun at %v, broken off at %v, want once, 25 s after the last renewal", begun, broken)
		}
		mu.Unlock()
		f.setDown(false)
		time.Sleep(11 * time.Second)
		mu.Lock()
		if len(begun) != 2 || f.cursor != 0 || len(f.waits) != 0 {
			t.Errorf("begun at %v, the cursor is %d, failures %v", begun, f.cursor, f.waits)
		}
		mu.Unlock()
		stop()
	})
}

// TestIdle checks that an idle subscription costs only its renewals, and no reads.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{asked: map[string]int{}, turn: 1, cursor: 3}
		stop := forwarding(t, f, sender(func(context.Context) error { t.Error("something was sent"); return nil }), slog.New(slog.DiscardHandler))
		time.Sleep(time.Hour)
		stop()
		if f.asked["take"] > 365 || f.asked["feed"] > 5 || f.asked["end"] > 5 || f.asked["await"] != 1 || f.asked["forwarded"] != 0 {
			t.Errorf("an idle hour asked %v", f.asked)
		}
	})
}
