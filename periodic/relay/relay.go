// Package relay publishes a message for each item that is due: the second half of the outbox (I2).
//
// It publishes only what the Registry has committed. If the relay dies between the two, the message
// waits for its next repeat. A superfluous message costs one refused claim.
package relay

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/registry"
)

// Relay publishes due wake-up messages. All fields but Prefix must be set; New sets the default
// times.
type Relay struct {
	Registry registry.Dispatching
	Queue    queue.Publisher
	Log      *slog.Logger
	Prefix   string // of topics, for clusters that share an nsqd

	Window     int           // unanswered messages for each slot of a live worker
	Poll       time.Duration // between two rounds when no commit signals due items
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

// Run publishes until ctx ends. Several relays may run at once: whichever commits an offer first
// publishes it.
func (r *Relay) Run(ctx context.Context) {
	poll := time.NewTicker(r.Poll)
	defer poll.Stop()
	out := outage{log: r.Log, every: r.Outage}
	for {
		n, err := r.publishDue(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			out.note(ctx, err)
		case n > 0:
			out.over(ctx)
			continue // more items may be due than one round takes
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

// wakeUp returns the Registry's signal of due items. After a failed round it returns nil: only the
// next poll tries again.
func (r *Relay) wakeUp(err error) <-chan struct{} {
	if err != nil {
		return nil
	}
	return r.Registry.Woken()
}

// publishDue offers and publishes one round of due items. It returns their number.
func (r *Relay) publishDue(ctx context.Context) (int, error) {
	wakes, err := r.Registry.Due(ctx, registry.DueRequest{Window: r.Window, Renudge: r.Renudge, RenudgeMax: r.RenudgeMax})
	if err != nil {
		return 0, err
	}
	metrics.Relay.Add(float64(len(wakes)), "offered")
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

// publish sends a topic's messages. If that fails, it makes their items due again (R19).
func (r *Relay) publish(ctx context.Context, topic string, wakes []registry.Wake) error {
	ids := make([]string, len(wakes))
	for i, w := range wakes {
		ids[i] = w.ItemID
	}
	err := r.Queue.Publish(ctx, topic, ids...)
	if err == nil {
		metrics.Relay.Add(float64(len(ids)), "published")
		return nil
	}
	return errors.Join(err, r.takeBack(ctx, wakes))
}

// takeBack makes items due again. It runs even while this process is stopping, so that another
// relay can publish them at once.
func (r *Relay) takeBack(ctx context.Context, wakes []registry.Wake) error {
	metrics.Relay.Add(float64(len(wakes)), "refused")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return r.Registry.Undo(ctx, wakes)
}

// outage logs the first failure of a series, then one per interval with a count, and the end of the
// series.
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
	o.log.WarnContext(ctx, "publishing wake-up messages failed; items wait", "err", err, "failures", o.count)
}

func (o *outage) over(ctx context.Context) {
	if o.count == 0 {
		return
	}
	o.log.InfoContext(ctx, "wake-up messages are published again", "failures", o.count)
	o.count, o.logged = 0, time.Time{}
}
