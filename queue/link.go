package queue

import (
	"context"
	"time"

	"github.com/holdfast/holdfast/metrics"
)

// link keeps the connection to one nsqd until it is cancelled.
type link struct {
	addr     string
	consumer *Consumer
	receive  receiveFunc
	report   *errorLog
	cancel   context.CancelCauseFunc // ends only this link
}

// addLink subscribes to an nsqd, unless there is a link to it already.
func (c *Consumer) addLink(ctx context.Context, addr string, receive receiveFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.links[addr]; ok {
		return
	}
	ctx, unwanted := context.WithCancelCause(ctx)
	log := c.cfg.Log.With("topic", c.cfg.Topic, "nsqd", addr)
	l := &link{
		addr: addr, consumer: c, receive: receive, cancel: unwanted,
		report: newErrorLog(log, c.cfg.Timing.LogEvery),
	}
	c.links[addr] = l
	c.loops.Go(func() {
		defer unwanted(errStopped)
		l.run(ctx)
	})
}

// run connects, and reconnects whenever the connection is closed, until ctx ends and all deliveries
// are answered.
func (l *link) run(ctx context.Context) {
	pause := l.consumer.cfg.Timing.newBackOff()
	for ctx.Err() == nil {
		s, err := l.consumer.subscribe(ctx, l.addr, l.receive)
		if err == nil {
			l.report.recovered(ctx)
			since := time.Now()
			err = l.supervise(ctx, s)
			if time.Since(since) > l.consumer.cfg.Timing.MaxRetry {
				pause.Reset() // the connection was stable
			}
		}
		if ctx.Err() != nil {
			return
		}
		metrics.NSQLost.Add(1, "consumer")
		l.report.lost(ctx, err)
		if wait(ctx, pause.NextBackOff()) != nil {
			return
		}
	}
}

// supervise handles a connection until it is closed, and returns why it was.
func (l *link) supervise(ctx context.Context, s *session) error {
	c := l.consumer
	stopped, forced, lost := ctx.Done(), c.forced, s.lost.done
	for {
		select {
		case <-s.closed.done:
			c.dropSession(s) // no message is left; the session is removed
			return s.cause()
		case <-lost:
			lost = nil
			c.dropSession(s)
		case <-stopped:
			stopped = nil
			s.startClose()
		case <-forced:
			forced = nil
			s.close()
			c.dropSession(s)
			s.close() // takes effect now that nothing is in flight
		}
	}
}
