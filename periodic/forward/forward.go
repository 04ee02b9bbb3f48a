// Package forward sends the events of the feed to the receivers of subscriptions. A receiver is an
// NSQ topic or a webhook.
//
// A receiver gets each event that its subscription's filter selects, at least once and in the order
// of the feed. Only committed events are sent. A subscription has one request under way at a time,
// and its cursor moves only after the receiver acknowledged. A receiver that is down, slow or wrong
// delays its own subscription only. No item waits for a receiver.
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

// Registry is what a Forwarder needs of the Registry.
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

// Options configures a Forwarder. All fields but Keys and Prefix must be set.
type Options struct {
	Registry Registry
	Queue    Queue
	Webhooks *callback.Client
	Keys     *secret.Keys           // decrypt credentials; nil: subscriptions with credentials fail
	Redact   func([]registry.Event) // removes secrets from events
	Prefix   string                 // of topics, for clusters that share an nsqd
	Owner    string                 // unique to this process; its successor has another one
	Log      *slog.Logger
}

// Forwarder forwards all subscriptions that this process has a lease on.
type Forwarder struct {
	Options

	Lease          time.Duration // of a subscription; unrenewed, another process takes it
	Gather         time.Duration // after a new event, how long to wait for more
	Backoff        time.Duration // after the first failed try, doubling up to BackoffMax
	BackoffMax     time.Duration
	CursorInterval time.Duration // how often the cursor is stored while the filter selects no event

	retake chan struct{} // signals that subscriptions may have changed

	mu      sync.Mutex
	senders map[string]*sender // by the subscription's id
}

// New returns a Forwarder with the usual times.
func New(o Options) *Forwarder {
	return &Forwarder{
		Options: o, Lease: 30 * time.Second, Gather: 50 * time.Millisecond, Backoff: time.Second, BackoffMax: 5 * time.Minute, CursorInterval: 10 * time.Second,
		retake: make(chan struct{}, 1), senders: map[string]*sender{},
	}
}

// Run forwards until ctx ends, then releases its subscriptions to other processes. Several
// Forwarders may run at once, in one process or in many.
func (f *Forwarder) Run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { f.watch(ctx) })
	defer watching.Wait()
	defer f.release(ctx)
	// A process that cannot renew stops sending before another one begins (R15).
	fence := time.AfterFunc(f.Lease, f.stopAll)
	defer fence.Stop()
	again := time.NewTicker(f.Lease / 3)
	defer again.Stop()
	asked := false // a change asked for this round
	for failures := 0; ; {
		begun := time.Now()
		turns, err := f.Registry.TakeSubscriptions(ctx, f.Owner, f.Lease)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // earlier leases hold until the fence falls
			if failures++; failures == 1 {
				f.Log.WarnContext(ctx, "renewing the leases of subscriptions failed; their events wait", "err", err)
			}
		default:
			if failures > 0 {
				f.Log.InfoContext(ctx, "subscriptions are renewed again", "failures", failures)
			}
			failures = 0
			fence.Reset(time.Until(begun.Add(f.Lease * 5 / 6)))
			f.reconcile(ctx, turns)
			if asked {
				f.wakeAll()
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

// reconcile starts and stops senders until they match the leases of this process. It waits for a
// stopped sender to end before it starts the next one of that subscription.
func (f *Forwarder) reconcile(ctx context.Context, turns []registry.SubscriptionTurn) {
	want := map[string]registry.SubscriptionTurn{}
	for _, t := range turns {
		want[t.ID] = t
	}
	f.mu.Lock()
	var over []*sender
	for id, l := range f.senders {
		if l.ctx.Err() != nil || want[id].Turn != l.turn.Turn {
			l.stop()
			over = append(over, l)
			delete(f.senders, id)
		}
	}
	f.mu.Unlock()
	for _, l := range over {
		<-l.done
	}
	for id, t := range want {
		f.mu.Lock()
		if f.senders[id] == nil {
			f.senders[id] = f.start(ctx, t)
		}
		f.mu.Unlock()
	}
}

// stopAll stops all senders: their leases may be over.
func (f *Forwarder) stopAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.senders {
		l.stop()
	}
}

// release stops all senders and releases their subscriptions, so that other processes take them at
// once. If the Registry does not answer, others take them when the leases expire.
func (f *Forwarder) release(ctx context.Context) {
	f.reconcile(ctx, nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := f.Registry.ReleaseSubscriptions(ctx, f.Owner); err != nil {
		f.Log.WarnContext(ctx, "subscriptions could not be released; another process takes them when their lease is over", "err", err)
	}
}

// changes are the types of events that may change a subscription.
var changes = []string{
	registry.EventSubscriptionSet, registry.EventSubscriptionRemoved, registry.EventSubscriptionRewound,
	registry.EventSubscriptionPaused, registry.EventSubscriptionResumed,
	registry.EventCredentialSet, registry.EventCredentialRemoved, // a failing subscription is then tried at once
}

// watch wakes the senders when there are events, and has subscriptions read again when they
// changed. One wait at the feed's end serves all subscriptions.
func (f *Forwarder) watch(ctx context.Context) {
	const patience = time.Second // between two tries, while the Registry does not answer
	after, err := f.Registry.FeedEnd(ctx)
	for ; err != nil; after, err = f.Registry.FeedEnd(ctx) {
		if !sleep(ctx, patience) {
			return
		}
	}
	signal(f.retake) // subscriptions may have changed before the wait began
	for ctx.Err() == nil {
		next, err := f.awaitEvents(ctx, after)
		if err != nil && !sleep(ctx, patience) {
			return
		}
		after = next
	}
}

// awaitEvents waits for events after a cursor, wakes the senders and returns the new cursor.
func (f *Forwarder) awaitEvents(ctx context.Context, after int64) (int64, error) {
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
		signal(f.retake) // Run then wakes the senders, once they know the change
	} else {
		f.wakeAll()
	}
	return end, nil
}

// wakeAll signals all senders that there are events.
func (f *Forwarder) wakeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.senders {
		signal(l.wake)
	}
}

// signal sends on a channel of capacity 1. It does nothing if a signal is already waiting.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleep waits for d. It returns false if ctx ended first.
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

// isLost reports whether another process has taken the subscription.
func isLost(err error) bool { return errors.Is(err, registry.ErrSubscriptionLost) }
