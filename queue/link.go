package queue

import (
	"context"
	"time"
)

// link keeps one nsqd connected for as long as it is wanted.
type link struct {
	addr     string
	consumer *Consumer
	receive  receiveFunc
	report   *errorLog
	unwanted context.CancelCauseFunc // ends this link alone
}

// addLink starts listening to an nsqd, unless that is being done already.
func (c *Consumer) addLink(ctx context.Context, addr string, receive receiveFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.links[addr]; ok {
		return
	}
	ctx, unwanted := context.WithCancelCause(ctx)
	log := c.cfg.Log.With("topic", c.cfg.Topic, "nsqd", addr)
	l := &link{
		addr: addr, consumer: c, receive: receive, unwanted: unwanted,
		report: newErrorLog(log, c.cfg.Timing.LogEvery),
	}
	c.links[addr] = l
	c.loops.Go(func() {
		defer unwanted(errStopped)
		l.run(ctx)
	})
}

// run connects, attends to the connection until it is closed, and begins again, until ctx ends and
// what was received is answered.
func (l *link) run(ctx context.Context) {
	pause := l.consumer.cfg.Timing.newBackOff()
	for ctx.Err() == nil {
		s, err := l.consumer.subscribe(ctx, l.addr, l.receive)
		if err == nil {
			l.report.recovered(ctx)
			since := time.Now()
			err = l.attend(ctx, s)
			if time.Since(since) > l.consumer.cfg.Timing.MaxRetry {
				pause.Reset() // it was a good connection
			}
		}
		if ctx.Err() != nil {
			return
		}
		l.report.lost(ctx, err)
		if wait(ctx, pause.NextBackOff()) != nil {
			return
		}
	}
}

// attend looks after a connection until it is closed, and returns why it is.
func (l *link) attend(ctx context.Context, s *session) error {
	c := l.consumer
	stopped, forced, lost := ctx.Done(), c.forced, s.lost.done
	for {
		select {
		case <-s.closed.done:
			c.void(s) // nothing is left in it; the session is forgotten
			return s.cause()
		case <-lost:
			lost = nil
			c.void(s)
		case <-stopped:
			stopped = nil
			s.startClose()
		case <-forced:
			forced = nil
			s.close()
			c.void(s)
			s.close() // now that nothing is in flight it takes effect
		}
	}
}
