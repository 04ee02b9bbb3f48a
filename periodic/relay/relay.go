// Package relay publishes messages for items that are due: the second half of the outbox (I2).
//
// It publishes only what the Registry has committed. A crash in between delays a message until its
// next repeat. A message too many costs a refused claim.
package relay

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/registry"
)

// Relay publishes due wake-ups. All fields but Prefix must be set; New fills in the usual times.
type Relay struct {
	Registry registry.Dispatching
	Queue    queue.Publisher
	Log      *slog.Logger
	Prefix   string // of topics, for clusters that share an nsqd

	Window     int           // outstanding messages for each live slot
	Poll       time.Duration // the fallback when no commit rings
	Renudge    time.Duration // first repeat of an unanswered message, growing to RenudgeMax
	RenudgeMax time.Duration
	Outage     time.Duration // how often an outage is logged
}

// New returns a relay with the default times (I11).
func New(r registry.Dispatching, q queue.Publisher, log *slog.Logger) *Relay {
	return &Relay{
		Registry: r, Queue: q, Log: log,
		Window: 2, Poll: time.Second, Renudge: 30 * time.Second, RenudgeMax: 10 * time.Minute, Outage: 30 * time.Second,
	}
}

// Run rings until ctx ends. Several relays may run at once: an item is offered by whichever commits
// first.
func (r *Relay) Run(ctx context.Context) {
	poll := time.NewTicker(r.Poll)
	defer poll.Stop()
	out := outage{log: r.Log, every: r.Outage}
	for {
		n, err := r.ring(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			out.note(ctx, err)
		case n > 0:
			out.over(ctx)
			continue // there may be more than one round of them
		default:
			out.over(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wakeUp(err):
		case <-poll.C:
		}
	}
}

// wakeUp is the Registry's bell, unless the last round failed: then only the poll tries again.
func (r *Relay) wakeUp(err error) <-chan struct{} {
	if err != nil {
		return nil
	}
	return r.Registry.Woken()
}

// ring offers one round of due items and returns how many.
func (r *Relay) ring(ctx context.Context) (int, error) {
	wakes, err := r.Registry.Due(ctx, registry.DueRequest{Window: r.Window, Renudge: r.Renudge, RenudgeMax: r.RenudgeMax})
	if err != nil {
		return 0, err
	}
	byTopic := map[string][]registry.Wake{}
	var topics []string
	for _, w := range wakes {
		topic, err := queue.Topic(r.Prefix, string(w.Action), string(w.Stage))
		if err != nil {
			return 0, errors.Join(err, r.takeBack(ctx, wakes))
		}
		if byTopic[topic] == nil {
			topics = append(topics, topic)
		}
		byTopic[topic] = append(byTopic[topic], w)
	}
	var errs []error
	for _, topic := range topics {
		errs = append(errs, r.publish(ctx, topic, byTopic[topic]))
	}
	return len(wakes), errors.Join(errs...)
}

// publish sends a topic's wake-ups, and sets them back when that fails (R19).
func (r *Relay) publish(ctx context.Context, topic string, wakes []registry.Wake) error {
	ids := make([]string, len(wakes))
	for i, w := range wakes {
		ids[i] = w.ItemID
	}
	err := r.Queue.Publish(ctx, topic, ids...)
	if err == nil {
		return nil
	}
	return errors.Join(err, r.takeBack(ctx, wakes))
}

// takeBack makes wake-ups due again. Even when this process is stopping, another one should ring at
// once.
func (r *Relay) takeBack(ctx context.Context, wakes []registry.Wake) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return r.Registry.Undo(ctx, wakes)
}

// outage logs trouble once per interval with a count, and its end once.
type outage struct {
	log    *slog.Logger
	every  time.Duration
	count  int
	logged time.Time
}

func (o *outage) note(ctx context.Context, err error) {
	o.count++
	if time.Since(o.logged) < o.every {
		return
	}
	o.logged = time.Now()
	o.log.WarnContext(ctx, "wake-ups cannot be sent; items wait", "err", err, "failures", o.count)
}

func (o *outage) over(ctx context.Context) {
	if o.count == 0 {
		return
	}
	o.log.InfoContext(ctx, "wake-ups are sent again", "failures", o.count)
	o.count, o.logged = 0, time.Time{}
}
