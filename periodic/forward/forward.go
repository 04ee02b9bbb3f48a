// Package forward sends the events of the feed to the receivers of subscriptions: an NSQ topic, or
// a webhook.
//
// A receiver gets each event that its subscription's filter selects, at least once and in the order
// of the feed. The cursor moves only after the receiver has acknowledged, and a subscription has
// one request under way at a time. Only committed events are sent. A receiver that is down, slow or
// wrong delays its own subscription only, and nothing of the pipeline waits.
package forward

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/credential"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
)

// Registry is what a Forwarder asks.
type Registry interface {
	registry.Forwarding
	credential.Registry
	Feed(ctx context.Context, q registry.FeedQuery) ([]registry.Event, error)
	FeedEnd(ctx context.Context) (int64, error)
	AwaitFeed(ctx context.Context, after int64) error
}

// Queue publishes to NSQ: a queue.Producer.
type Queue interface {
	Send(ctx context.Context, topic string, bodies ...[]byte) error
}

// Options says between what a Forwarder stands. All but Keys and Prefix must be set.
type Options struct {
	Registry Registry
	Queue    Queue
	Webhooks *callback.Client
	Keys     *secret.Keys           // open credentials; nil: subscriptions that have some fail
	Redact   func([]registry.Event) // takes secrets out of events
	Prefix   string                 // of topics, for clusters that share an nsqd
	Owner    string                 // names this process, and no other, not even its successor
	Log      *slog.Logger
}

// Forwarder forwards all subscriptions that no other process forwards.
type Forwarder struct {
	Options

	Lease      time.Duration // after which another process takes what this one does not renew
	Gather     time.Duration // how long events are waited for that come together
	Backoff    time.Duration // after the first try that failed, doubling up to BackoffMax
	BackoffMax time.Duration
	Passing    time.Duration // how often the cursor is noted while it only passes events that the filter does not take

	retake chan struct{} // what it has may have changed

	mu    sync.Mutex
	lines map[string]*line // by the subscription's id
}

// New returns a Forwarder with the usual times.
func New(o Options) *Forwarder {
	return &Forwarder{
		Options: o, Lease: 30 * time.Second, Gather: 50 * time.Millisecond, Backoff: time.Second, BackoffMax: 5 * time.Minute, Passing: 10 * time.Second,
		retake: make(chan struct{}, 1), lines: map[string]*line{},
	}
}

// Run forwards until ctx ends, and then lets other processes take what it has. Several Forwarders
// may run at once.
func (f *Forwarder) Run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { f.watch(ctx) })
	defer watching.Wait()
	defer f.release(ctx)
	// A process that cannot renew stops sending before another one begins (R15).
	fence := time.AfterFunc(f.Lease, f.cut)
	defer fence.Stop()
	again := time.NewTicker(f.Lease / 3)
	defer again.Stop()
	asked := false // to look anew
	for failures := 0; ; {
		begun := time.Now()
		turns, err := f.Registry.TakeSubscriptions(ctx, f.Owner, f.Lease)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // what was renewed before holds until the fence falls
			if failures++; failures == 1 {
				f.Log.WarnContext(ctx, "subscriptions cannot be renewed; their events wait", "err", err)
			}
		default:
			if failures > 0 {
				f.Log.InfoContext(ctx, "subscriptions are renewed again", "failures", failures)
			}
			failures = 0
			fence.Reset(time.Until(begun.Add(f.Lease * 5 / 6)))
			f.have(ctx, turns)
			if asked {
				f.ring()
			}
			asked = false
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		case <-f.retake:
			asked = true
		}
	}
}

// have makes the lines those of these turns. A line whose turn is over has ended before the next
// one of its subscription begins.
func (f *Forwarder) have(ctx context.Context, turns []registry.SubscriptionTurn) {
	want := map[string]registry.SubscriptionTurn{}
	for _, t := range turns {
		want[t.ID] = t
	}
	f.mu.Lock()
	var over []*line
	for id, l := range f.lines {
		if l.ctx.Err() != nil || want[id].Turn != l.turn.Turn {
			l.stop()
			over = append(over, l)
			delete(f.lines, id)
		}
	}
	f.mu.Unlock()
	for _, l := range over {
		<-l.done
	}
	for id, t := range want {
		f.mu.Lock()
		if f.lines[id] == nil {
			f.lines[id] = f.start(ctx, t)
		}
		f.mu.Unlock()
	}
}

// cut ends all lines, whose leases may be over.
func (f *Forwarder) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lines {
		l.stop()
	}
}

// release waits for all lines to end and lets others take them at once. When the Registry does not
// answer they wait for the lease.
func (f *Forwarder) release(ctx context.Context) {
	f.have(ctx, nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := f.Registry.ReleaseSubscriptions(ctx, f.Owner); err != nil {
		f.Log.WarnContext(ctx, "subscriptions could not be released; another process takes them when their lease is over", "err", err)
	}
}

// changes are the events after which subscriptions are looked at anew.
var changes = []string{
	registry.EventSubscriptionSet, registry.EventSubscriptionRemoved, registry.EventSubscriptionRewound,
	registry.EventSubscriptionPaused, registry.EventSubscriptionResumed,
	registry.EventCredentialSet, registry.EventCredentialRemoved, // those of a failing one have it tried at once
}

// watch rings for all lines when there are events, and has subscriptions looked at when they were
// changed. However many there are, the feed's end is waited for once.
func (f *Forwarder) watch(ctx context.Context) {
	const patience = time.Second // with a Registry that does not answer
	after, err := f.Registry.FeedEnd(ctx)
	for ; err != nil; after, err = f.Registry.FeedEnd(ctx) {
		if !sleep(ctx, patience) {
			return
		}
	}
	ask(f.retake) // for what was changed before
	for ctx.Err() == nil {
		next, err := f.news(ctx, after)
		if err != nil && !sleep(ctx, patience) {
			return
		}
		after = next
	}
}

// news waits for events, rings for them, and returns the cursor to wait beyond.
func (f *Forwarder) news(ctx context.Context, after int64) (int64, error) {
	if err := f.Registry.AwaitFeed(ctx, after); err != nil {
		return after, err
	}
	if !sleep(ctx, f.Gather) {
		return after, ctx.Err()
	}
	end, err := f.Registry.FeedEnd(ctx)
	if err != nil {
		return after, err
	}
	changed, err := f.Registry.Feed(ctx, registry.FeedQuery{After: after, Types: changes, Limit: 1})
	if err != nil {
		return after, err
	}
	if len(changed) > 0 {
		ask(f.retake) // which rings: what was changed shall not be told by those that do not know it
	} else {
		f.ring()
	}
	return end, nil
}

// ring tells all lines that there are events.
func (f *Forwarder) ring() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lines {
		ask(l.news)
	}
}

// ask leaves word, unless one is waiting already.
func ask(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// sleep waits for d, and says whether it was not cut short.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// isLost says that a subscription is not this process's any more.
func isLost(err error) bool { return errors.Is(err, registry.ErrSubscriptionLost) }
