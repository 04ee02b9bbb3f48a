package base

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// outageInterval is how often a service that does not answer is spoken of.
const outageInterval = 30 * time.Second

// outage keeps the log readable while a service does not answer: one line at once, then one each
// interval with a count, and one when it answers again. A service that answers every other call is
// spoken of no more often. The methods may be called concurrently.
type outage struct {
	log     *slog.Logger
	service string

	mu     sync.Mutex
	since  time.Time // of the first call in this outage; zero: all is well
	failed int
	told   time.Time // when a failure was logged last
	spoken bool      // this outage was logged, so its end is worth a line, too
}

// fail notes a call that was not answered.
func (o *outage) fail(ctx context.Context, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.failed++
	if o.since.IsZero() {
		o.since = now
	}
	if !o.told.IsZero() && now.Sub(o.told) < outageInterval {
		return
	}
	o.told, o.spoken = now, true
	o.log.WarnContext(ctx, "service does not answer; waiting", "service", o.service, "failed_calls", o.failed,
		"for", now.Sub(o.since), "err", err)
}

// answered notes a call that was answered.
func (o *outage) answered(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spoken {
		o.log.InfoContext(ctx, "recovered", "service", o.service, "failed_calls", o.failed, "for", time.Since(o.since))
	}
	o.since, o.failed, o.spoken = time.Time{}, 0, false
}
