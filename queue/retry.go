package queue

import (
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Timing has the intervals of connections. The zero value of each field means the default that its
// comment names.
type Timing struct {
	Retry    time.Duration // first wait before reconnecting; it doubles, with jitter; 100 ms
	MaxRetry time.Duration // longest wait before reconnecting; 5 s
	Poll     time.Duration // interval of asking nsqlookupd; 5 s
	LogEvery time.Duration // least time between two log lines about the same error; 30 s
}

func (t Timing) withDefaults() Timing {
	setDefault(&t.Retry, 100*time.Millisecond)
	setDefault(&t.MaxRetry, 5*time.Second)
	setDefault(&t.Poll, 5*time.Second)
	setDefault(&t.LogEvery, 30*time.Second)
	return t
}

func setDefault(field *time.Duration, value time.Duration) {
	if *field <= 0 {
		*field = value
	}
}

func (t Timing) newBackOff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = t.Retry, t.MaxRetry
	b.Multiplier, b.RandomizationFactor = 2, 0.2
	b.Reset()
	return b
}

// wait returns nil after d, or the cause if ctx ends first.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
