package forward

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// mostEvents is how many events are sent, and held in memory, at a time.
const mostEvents = 100

// line is one turn of a subscription in the hands of this process.
type line struct {
	*Forwarder

	turn registry.SubscriptionTurn
	log  *slog.Logger
	ctx  context.Context //nolint:containedctx // it is the line's life, which its Forwarder ends
	stop context.CancelFunc
	done chan struct{}
	news chan struct{}

	at      int64     // events up to here are told or passed
	noted   int64     // of that, what the Registry knows
	notedAt time.Time // when that was written
	told    int64     // acknowledged and not yet noted
	tries   int64     // that failed in a row
	most    int       // events a request
	warned  time.Time
}

// start begins a turn.
func (f *Forwarder) start(ctx context.Context, t registry.SubscriptionTurn) *line {
	l := &line{
		Forwarder: f, turn: t, log: f.Log.With("subscription", t.Name, "receiver", t.Receiver()), done: make(chan struct{}), news: make(chan struct{}, 1),
		at: t.Cursor, noted: t.Cursor, notedAt: time.Now(), tries: t.Tries, most: mostEvents,
	}
	l.ctx, l.stop = context.WithCancel(ctx)
	go func() {
		defer close(l.done)
		defer l.stop()
		if l.run(l.ctx) {
			ask(f.retake)
		}
	}()
	return l
}

// run forwards until its context ends or the subscription is lost, and says whether it was.
func (l *line) run(ctx context.Context) (lost bool) {
	if !sleep(ctx, l.turn.Wait) {
		return false
	}
	for ctx.Err() == nil {
		err := l.step(ctx)
		switch {
		case isLost(err):
			return true
		case ctx.Err() != nil:
			l.leave(ctx)
			return false
		case err != nil: // the Registry's trouble, not the receiver's
			l.warn(ctx, "the feed cannot be read or its cursor not written; events wait", err)
			sleep(ctx, l.backoff(0))
		}
	}
	return false
}

// step does the next thing: it notes what was acknowledged, sends a batch, passes what is not
// taken, or waits for news.
func (l *line) step(ctx context.Context) error {
	if l.told > 0 {
		return l.note(ctx) // before anything more is sent: a kill repeats one batch at most
	}
	page, err := registry.ReadFeed(ctx, l.Registry, l.turn.Filter.Query(l.at, mostEvents))
	if err != nil {
		return err
	}
	var taken []registry.Event
	for _, e := range page.Events {
		if l.turn.Filter.Takes(e) {
			taken = append(taken, e)
		}
	}
	if len(taken) > 0 {
		return l.forward(ctx, taken, page.Next)
	}
	l.at = page.Next
	if l.at < page.End {
		return l.pass(ctx)
	}
	return l.rest(ctx)
}

// forward sends what was taken from a page, or the beginning of it.
func (l *line) forward(ctx context.Context, taken []registry.Event, next int64) error {
	l.Redact(taken)
	n, err := l.send(ctx, taken)
	if ctx.Err() != nil {
		return ctx.Err() // nobody knows what came of it; it is told again
	}
	if err != nil {
		return l.failed(ctx, err)
	}
	if l.tries > 0 {
		l.log.InfoContext(ctx, "the receiver acknowledges again", "failures", l.tries)
	}
	l.tries, l.warned, l.told = 0, time.Time{}, int64(n)
	if l.at = next; n < len(taken) {
		l.at = taken[n-1].Seq
	}
	return nil
}

// failed notes a try that failed, and waits for the next.
func (l *line) failed(ctx context.Context, err error) error {
	wait := l.backoff(l.tries)
	var asks interface{ AsksToWait() time.Duration }
	if errors.As(err, &asks) {
		const most = time.Hour
		wait = max(wait, min(asks.AsksToWait(), most))
	}
	l.tries++
	l.warn(ctx, "events cannot be told; they wait", err)
	noted := l.Registry.NoteUnforwarded(ctx, registry.SubscriptionFailure{ID: l.turn.ID, Turn: l.turn.Turn, Error: err.Error(), Wait: wait})
	if isLost(noted) {
		return noted
	}
	sleep(ctx, wait)
	return noted
}

// backoff is the wait after a number of failures before the present one, with a fifth of jitter.
func (l *line) backoff(failures int64) time.Duration {
	d := l.Backoff
	for range failures {
		if d = min(2*d, l.BackoffMax); d == l.BackoffMax {
			break
		}
	}
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64())) //nolint:gosec // no secret depends on it
}

// warn logs trouble, once in the longest wait between two tries.
func (l *line) warn(ctx context.Context, text string, err error) {
	if time.Since(l.warned) < l.BackoffMax {
		return
	}
	l.warned = time.Now()
	l.log.WarnContext(ctx, text, "err", err, "failures", l.tries) //nolint:sloglint // one of two constants
}

// pass notes now and then how far the cursor is that only passes what is not taken.
func (l *line) pass(ctx context.Context) error {
	if l.at == l.noted || time.Since(l.notedAt) < l.Passing {
		return nil
	}
	return l.note(ctx)
}

// rest waits for news at the end of the feed. What it passed on the way is noted when it is time.
func (l *line) rest(ctx context.Context) error {
	var due <-chan time.Time
	if l.at > l.noted {
		t := time.NewTimer(l.Passing - time.Since(l.notedAt))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-l.news:
	case <-due:
		return l.pass(ctx)
	case <-ctx.Done():
	}
	return nil
}

// note tells the Registry how far the line is. Told again after a lost answer it changes nothing
// but a count.
func (l *line) note(ctx context.Context) error {
	err := l.Registry.NoteForwarded(ctx, registry.SubscriptionProgress{ID: l.turn.ID, Turn: l.turn.Turn, Cursor: l.at, Told: l.told})
	if err == nil {
		l.noted, l.told, l.notedAt = l.at, 0, time.Now()
	}
	return err
}

// leave notes what was acknowledged before the line was stopped, so that whoever goes on need not
// repeat it.
func (l *line) leave(ctx context.Context) {
	if l.at == l.noted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := l.note(ctx); err != nil && !isLost(err) {
		l.log.WarnContext(ctx, "how far the subscription is could not be noted; what was told last is told again", "err", err)
	}
}
