package base

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// outageInterval is the least time between two log lines about a service that does not answer.
const outageInterval = 30 * time.Second

// outage limits what is logged while a service does not answer: one line at once, then one per
// interval with a count, and one when the service answers again. A service that answers every other
// call is logged no more often. The methods may be called concurrently.
type outage struct {
	log     *slog.Logger
	service string

	mu         sync.Mutex
	since      time.Time // of the first failed call of this outage; zero: no outage
	failed     int
	lastLogged time.Time // when a failure was last logged
	logged     bool      // this outage was logged, so log its end too
}

// fail counts a call that was not answered, and logs it if the last line is old enough.
func (o *outage) fail(ctx context.Context, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.failed++
	if o.since.IsZero() {
		o.since = now
	}
	if !o.lastLogged.IsZero() && now.Sub(o.lastLogged) < outageInterval {
		return
	}
	o.lastLogged, o.logged = now, true
	o.log.WarnContext(ctx, "service does not answer; waiting", "service", o.service, "failed_calls", o.failed,
		"for", now.Sub(o.since), "err", err)
}

// answered ends the outage, and logs that if the outage was logged.
func (o *outage) answered(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.logged {
		o.log.InfoContext(ctx, "service answers again", "service", o.service, "failed_calls", o.failed, "for", time.Since(o.since))
	}
	o.since, o.failed, o.logged = time.Time{}, 0, false
}
