package forward_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/periodic/forward"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

var errDead = errors.New("the process is dead")

// mortal is a Registry for a process that is killed at one of its calls: before it is carried out,
// or after it.
type mortal struct {
	*sqlstore.Store

	mu    sync.Mutex
	left  int // calls to live for; each counts twice, before and after
	dead  bool
	death context.CancelFunc
}

// beat is a moment in the process's life, and says whether it is over.
func (m *mortal) beat() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left--; m.left == 0 {
		m.dead = true
		m.death()
	}
	if m.dead {
		return errDead
	}
	return nil
}

// at makes a call between two moments.
func at[T any](m *mortal, call func() (T, error)) (T, error) {
	var zero T
	if err := m.beat(); err != nil {
		return zero, err
	}
	out, err := call()
	if dead := m.beat(); dead != nil {
		return zero, dead
	}
	return out, err
}

func (m *mortal) TakeSubscriptions(ctx context.Context, owner string, lease time.Duration) ([]registry.SubscriptionTurn, error) {
	return at(m, func() ([]registry.SubscriptionTurn, error) { return m.Store.TakeSubscriptions(ctx, owner, lease) })
}

func (m *mortal) NoteForwarded(ctx context.Context, p registry.SubscriptionProgress) error {
	_, err := at(m, func() (any, error) { return nil, m.Store.NoteForwarded(ctx, p) })
	return err
}

func (m *mortal) NoteUnforwarded(ctx context.Context, f registry.SubscriptionFailure) error {
	_, err := at(m, func() (any, error) { return nil, m.Store.NoteUnforwarded(ctx, f) })
	return err
}

func (m *mortal) ReleaseSubscriptions(ctx context.Context, owner string) error {
	_, err := at(m, func() (any, error) { return nil, m.Store.ReleaseSubscriptions(ctx, owner) })
	return err
}

func (m *mortal) Feed(ctx context.Context, q registry.FeedQuery) ([]registry.Event, error) {
	return at(m, func() ([]registry.Event, error) { return m.Store.Feed(ctx, q) })
}

func (m *mortal) Credentials(ctx context.Context, owner string) ([]registry.Credential, error) {
	return at(m, func() ([]registry.Credential, error) { return m.Store.Credentials(ctx, owner) })
}

// mortalQueue is that process's way to NSQ.
type mortalQueue struct {
	*mortal

	mu   sync.Mutex
	sent [][]byte
}

func (q *mortalQueue) Send(_ context.Context, _ string, bodies ...[]byte) error {
	_, err := at(q.mortal, func() (any, error) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.sent = append(q.sent, bodies...)
		return nil, nil
	})
	return err
}

// TestR17_KilledAtEveryCall kills a process before and after each of its calls, and between the
// receiver's acknowledgement and the stored cursor. Another process takes over when the lease
// expires. No event is lost, first deliveries come in order, and at most one batch is repeated.
func TestR17_KilledAtEveryCall(t *testing.T) {
	t.Parallel()
	deaths := 0
	for n := range looptest.Steps(t) {
		s, clock := openStore(t)
		submit(t, s, 220)
		r := receive(t, nil)
		subscribe(t, s, "s", r.url)
		want := seqs(t, s, nil)
		last := want[len(want)-1]

		ctx, cancel := context.WithCancel(t.Context())
		m := &mortal{Store: s, left: n, death: cancel}
		done := make(chan struct{})
		go func() { defer close(done); quick(forward.New(options(t, m, "first"))).Run(ctx) }()
		eventually(t, "a death, or the end", func() bool { return ctx.Err() != nil || subscription(t, s, "s").Cursor == last })
		died := ctx.Err() != nil
		cancel()
		<-done
		if died {
			deaths++
			clock.pass(31 * time.Second)
			stop := run(t, quick(forward.New(options(t, s, "second"))))
			r.has(last)
			noted(t, s, last)
			stop()
		}
		got := r.acknowledged()
		var firsts []int64
		for _, seq := range got {
			if !slices.Contains(firsts, seq) {
				firsts = append(firsts, seq)
			}
		}
		if diff := cmp.Diff(want, firsts); diff != "" {
			t.Fatalf("killed at moment %d: told (-want +got):\n%s", n, diff)
		}
		if len(got)-len(want) > 100 {
			t.Errorf("killed at moment %d: %d events were repeated", n, len(got)-len(want))
		}
		must(t, s.Close())
		if !died {
			break
		}
	}
	if deaths < 4 {
		t.Errorf("only %d deaths were died", deaths)
	}
	t.Logf("%d deaths", deaths)
}

// TestR17_KilledAroundSends does the same for NSQ, with kills before and after nsqd has the
// messages.
func TestR17_KilledAroundSends(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 24; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s, clock := openStore(t)
			submit(t, s, 120)
			subscribe(t, s, "s", "nsq:life")
			want := seqs(t, s, nil)
			last := want[len(want)-1]
			ctx, cancel := context.WithCancel(t.Context())
			m := &mortal{Store: s, left: n, death: cancel}
			q := &mortalQueue{mortal: m}
			o := options(t, m, "first")
			o.Queue = q
			done := make(chan struct{})
			go func() { defer close(done); quick(forward.New(o)).Run(ctx) }()
			eventually(t, "a death, or the end", func() bool { return ctx.Err() != nil || subscription(t, s, "s").Cursor == last })
			cancel()
			<-done
			clock.pass(31 * time.Second)
			second := &mortalQueue{mortal: &mortal{Store: s, left: -1}}
			o = options(t, s, "second")
			o.Queue = second
			stop := run(t, quick(forward.New(o)))
			noted(t, s, last)
			stop()
			sent := len(q.sent) + len(second.sent)
			if sent < len(want) || sent > len(want)+100 {
				t.Errorf("%d messages were sent, want %d and at most 100 twice", sent, len(want))
			}
		})
	}
}

// TestR16_SupersededIsFenced checks that a process that was superseded in the middle of a request
// moves no cursor afterwards, and sends nothing more.
func TestR16_SupersededIsFenced(t *testing.T) {
	t.Parallel()
	s, clock := openStore(t)
	submit(t, s, 150)
	inside, goOn := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	requests := 0
	old := receive(t, func(*http.Request, request) int {
		mu.Lock()
		requests++
		mu.Unlock()
		close(inside)
		<-goOn
		return http.StatusOK
	})
	subscribe(t, s, "s", old.url)
	first := quick(forward.New(options(t, s, "first")))
	stop := run(t, first)
	<-inside
	clock.pass(time.Hour)
	turns, err := s.TakeSubscriptions(t.Context(), "second", 24*time.Hour)
	must(t, err)
	if len(turns) != 1 || turns[0].Cursor != 0 {
		t.Fatalf("the second process has %+v", turns)
	}
	must(t, s.NoteForwarded(t.Context(), registry.SubscriptionProgress{ID: turns[0].ID, Turn: turns[0].Turn, Cursor: 7, Told: 7}))
	close(goOn)
	old.has(1) // the receiver has acknowledged it
	eventually(t, "the end of the first one's line", func() bool {
		_, err := s.Submit(t.Context(), registry.Submission{Collection: "c"}) // it would be told of these
		must(t, err)
		mu.Lock()
		defer mu.Unlock()
		return len(old.all()) == requests
	})
	stop()
	b := subscription(t, s, "s")
	if b.Cursor != 7 || b.Told != 7 || b.Owner != "second" || b.FailingSince != nil {
		t.Errorf("the first one has changed it to %+v", b)
	}
	if requests != 1 {
		t.Errorf("the first one sent %d requests, want the one that was under way", requests)
	}
}
