package forward

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// mostEvents is how many events a sender reads, and holds in memory, at a time.
const mostEvents = 100

// sender forwards one subscription for the time of one lease.
type sender struct {
	*Forwarder

	turn registry.SubscriptionTurn
	log  *slog.Logger
	ctx  context.Context //nolint:containedctx // the sender's lifetime, which its Forwarder ends
	stop context.CancelFunc
	done chan struct{}
	wake chan struct{}

	at      int64     // events up to here are acknowledged or not selected
	noted   int64     // the cursor that the Registry has stored
	notedAt time.Time // when it was stored
	acked   int64     // events acknowledged since
	tries   int64     // consecutive failures
	most    int       // most events in a request
	warned  time.Time
}

// start starts a sender for a subscription that this process has a lease on.
func (f *Forwarder) start(ctx context.Context, t registry.SubscriptionTurn) *sender {
	s := &sender{
		Forwarder: f, turn: t, log: f.Log.With("subscription", t.Name, "receiver", t.Receiver()), done: make(chan struct{}), wake: make(chan struct{}, 1),
		at: t.Cursor, noted: t.Cursor, notedAt: time.Now(), tries: t.Tries, most: mostEvents,
	}
	s.ctx, s.stop = context.WithCancel(ctx)
	go func() {
		defer close(s.done)
		defer s.stop()
		if s.run(s.ctx) {
			signal(f.retake)
		}
	}()
	return s
}

// run forwards until its context ends or the subscription is lost. It returns true if it was lost.
func (s *sender) run(ctx context.Context) (lost bool) {
	if !sleep(ctx, s.turn.Wait) {
		return false
	}
	for ctx.Err() == nil {
		err := s.step(ctx)
		switch {
		case isLost(err):
			return true
		case ctx.Err() != nil:
			s.noteLast(ctx)
			return false
		case err != nil: // the Registry failed, not the receiver
			s.warn(ctx, "reading the feed or storing its cursor failed; events wait", err)
			sleep(ctx, s.backoff(0))
		}
	}
	return false
}

// step does one thing: it stores the cursor, sends a batch of selected events, passes unselected
// ones, or waits for new events.
func (s *sender) step(ctx context.Context) error {
	if s.acked > 0 {
		return s.note(ctx) // before the next batch is sent: a kill then repeats at most one batch
	}
	page, err := registry.ReadFeed(ctx, s.Registry, s.turn.Filter.Query(s.at, mostEvents))
	if err != nil {
		return err
	}
	var taken []registry.Event
	for _, e := range page.Events {
		if s.turn.Filter.Takes(e) {
			taken = append(taken, e)
		}
	}
	if len(taken) > 0 {
		return s.forward(ctx, taken, page.Next)
	}
	s.at = page.Next
	if s.at < page.End {
		return s.pass(ctx)
	}
	return s.awaitWake(ctx)
}

// forward sends the selected events of a page, or the first of them.
func (s *sender) forward(ctx context.Context, taken []registry.Event, next int64) error {
	s.Redact(taken)
	n, err := s.send(ctx, taken)
	if ctx.Err() != nil {
		return ctx.Err() // the outcome is unknown; the events are sent again
	}
	if err != nil {
		return s.failed(ctx, err)
	}
	if s.tries > 0 {
		s.log.InfoContext(ctx, "the receiver works again", "failures", s.tries)
	}
	s.tries, s.warned, s.acked = 0, time.Time{}, int64(n)
	if s.at = next; n < len(taken) {
		s.at = taken[n-1].Seq
	}
	return nil
}

// failed stores a failed try and waits for the next.
func (s *sender) failed(ctx context.Context, err error) error {
	wait := s.backoff(s.tries)
	var asks interface{ AsksToWait() time.Duration }
	if errors.As(err, &asks) {
		const most = time.Hour
		wait = max(wait, min(asks.AsksToWait(), most))
	}
	s.tries++
	s.warn(ctx, "sending events failed; they wait", err)
	noted := s.Registry.NoteUnforwarded(ctx, registry.SubscriptionFailure{ID: s.turn.ID, Turn: s.turn.Turn, Error: err.Error(), Wait: wait})
	if isLost(noted) {
		return noted
	}
	sleep(ctx, wait)
	return noted
}

// backoff is the wait after a number of earlier failures, with a jitter of a fifth.
func (s *sender) backoff(failures int64) time.Duration {
	d := s.Backoff
	for range failures {
		if d = min(2*d, s.BackoffMax); d == s.BackoffMax {
			break
		}
	}
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64())) //nolint:gosec // no secret depends on it
}

// warn logs a failure, at most once per BackoffMax.
func (s *sender) warn(ctx context.Context, text string, err error) {
	if time.Since(s.warned) < s.BackoffMax {
		return
	}
	s.warned = time.Now()
	s.log.WarnContext(ctx, text, "err", err, "failures", s.tries) //nolint:sloglint // one of two constants
}

// pass stores the cursor at intervals while the filter selects no event.
func (s *sender) pass(ctx context.Context) error {
	if s.at == s.noted || time.Since(s.notedAt) < s.CursorInterval {
		return nil
	}
	return s.note(ctx)
}

// awaitWake waits at the end of the feed for new events. It stores the cursor when that is due.
func (s *sender) awaitWake(ctx context.Context) error {
	var due <-chan time.Time
	if s.at > s.noted {
		t := time.NewTimer(s.CursorInterval - time.Since(s.notedAt))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-s.wake:
	case <-due:
		return s.pass(ctx)
	case <-ctx.Done():
	}
	return nil
}

// note stores the cursor in the Registry. A repeat after a lost answer changes nothing but a count.
func (s *sender) note(ctx context.Context) error {
	err := s.Registry.NoteForwarded(ctx, registry.SubscriptionProgress{ID: s.turn.ID, Turn: s.turn.Turn, Cursor: s.at, Told: s.acked})
	if err == nil {
		s.noted, s.acked, s.notedAt = s.at, 0, time.Now()
	}
	return err
}

// noteLast stores the cursor of a sender that was stopped, so that its successor does not repeat
// acknowledged events.
func (s *sender) noteLast(ctx context.Context) {
	if s.at == s.noted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.note(ctx); err != nil && !isLost(err) {
		s.log.WarnContext(ctx, "storing the cursor of a subscription failed; its last events are sent again", "err", err)
	}
}
