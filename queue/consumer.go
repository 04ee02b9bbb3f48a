package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nsqio/go-nsq"
)

const (
	// DefaultMsgTimeout is how long a message may stay untouched unless ConsumerConfig says
	// otherwise.
	DefaultMsgTimeout = time.Minute

	userAgent = "holdfast"

	// surplusDelay is for messages that come while all slots are taken: the server believes that
	// there is room because an earlier message timed out there while its handler still runs.
	// Without a delay it would send the message again at once, and again.
	surplusDelay = time.Second

	// rotation is how often the slots change over between servers when there are fewer slots than
	// servers.
	rotation = time.Second
)

// errStopped is the cause with which a Consumer's work ends.
var errStopped = errors.New("consumer is stopped")

// Handler works on one wake-up. It is called on a goroutine of its own. The delivery that it has
// neither finished nor requeued when it returns is given back with a short delay.
type Handler func(ctx context.Context, d *Delivery)

// Consumer listens to one topic on every nsqd that it is told of or finds. All its methods may be
// called concurrently.
type Consumer struct {
	cfg    ConsumerConfig
	config *nsq.Config
	report *errorLog
	stop   context.CancelCauseFunc
	force  func()        // gives back what is unanswered and lets the connections go; once
	forced chan struct{} // closed by force
	done   chan struct{} // closed when the last goroutine has ended

	loops    sync.WaitGroup // links, lookups and rotation
	handlers sync.WaitGroup

	mu       sync.Mutex
	free     int
	held     map[*Delivery]struct{} // not answered; each takes a slot
	sessions map[*session]struct{}  // subscribed and not lost
	joined   int                    // sessions so far
	links    map[string]*link       // by address
	turn     int

	// rdyMu keeps the writing of RDY counts in the order in which they were computed; taken before
	// mu.
	rdyMu sync.Mutex
}

// Consume starts listening and returns at once; servers that are not there yet are no error. It
// returns an error when cfg is not complete or not valid (ErrBadTopic for the topic). ctx is what
// handlers get; when it ends, the Consumer stops receiving as if Stop were called. The caller must
// call Stop.
func Consume(ctx context.Context, cfg ConsumerConfig, handle Handler) (*Consumer, error) {
	config, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	c := &Consumer{
		cfg: cfg, config: config,
		report:   newErrorLog(cfg.Log.With("topic", cfg.Topic), cfg.Timing.LogEvery),
		forced:   make(chan struct{}),
		done:     make(chan struct{}),
		free:     cfg.Free,
		held:     make(map[*Delivery]struct{}),
		sessions: make(map[*session]struct{}),
		links:    make(map[string]*link),
	}
	c.force = sync.OnceFunc(func() { close(c.forced) })
	receiving, stop := context.WithCancelCause(ctx)
	c.stop = stop
	receive := func(s *session, m *nsq.Message) { c.receive(ctx, receiving, s, m, handle) }
	for _, addr := range cfg.Addrs {
		c.addLink(receiving, addr, receive)
	}
	if len(cfg.LookupAddrs) > 0 {
		c.loops.Go(func() { c.discover(receiving, receive) })
	}
	c.loops.Go(func() { c.rotate(receiving) })
	go func() {
		c.loops.Wait()
		c.handlers.Wait() // no session is left that could start another
		stop(errStopped)
		close(c.done)
	}()
	return c, nil
}

// SetFree sets how many wake-ups may be in hand at once: the worker's slots less those taken by
// work for which no wake-up is in hand. Unanswered deliveries count. 0 pauses, what is in hand
// stays; a negative n counts as 0. The servers' RDY counts follow at once.
func (c *Consumer) SetFree(n int) {
	c.mu.Lock()
	c.free = max(n, 0)
	c.mu.Unlock()
	c.balance()
}

// Connections is how many servers the Consumer is subscribed to at this moment.
func (c *Consumer) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// Stop receives nothing more from this moment on, gives back what was received and not handed to a
// handler, and waits until every delivery is answered, every handler has returned and the
// connections are closed: then it returns nil. Deliveries in hand may be touched, finished and
// requeued meanwhile. When ctx ends first, what is still unanswered is given back to the servers at
// once, the handlers are left to themselves, and Stop returns an error that wraps the context's
// cause. It may be called several times; each call waits anew.
func (c *Consumer) Stop(ctx context.Context) error {
	c.stop(errStopped)
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		c.force()
		return fmt.Errorf("stop consumer of %s: %w", c.cfg.Topic, context.Cause(ctx))
	}
}

// receive starts a handler for a message, if there is a slot for it. It runs on the connection's
// reading goroutine, so it must not wait for anything.
func (c *Consumer) receive(ctx, receiving context.Context, s *session, m *nsq.Message, handle Handler) {
	m.DisableAutoResponse()
	if err := checkItemID(string(m.Body)); err != nil {
		// No item has such an id; delivering it again would not make it one.
		c.report.noted(ctx, err)
		m.Finish()
		return
	}
	d := &Delivery{ItemID: string(m.Body), Attempts: int(m.Attempts), consumer: c, session: s, message: m}
	c.mu.Lock()
	_, live := c.sessions[s]
	room := len(c.held) < c.free
	start := live && room && receiving.Err() == nil
	if start {
		c.held[d] = struct{}{}
		s.inHand++
		c.handlers.Add(1)
	}
	c.mu.Unlock()
	switch {
	case start:
		go func() {
			defer c.handlers.Done()
			defer d.Requeue(surplusDelay)
			handle(ctx, d)
		}()
	case !room && receiving.Err() == nil:
		giveBack(m, surplusDelay)
	default:
		giveBack(m, 0)
	}
}

// release frees the slot of a delivery that is being answered. The RDY counts are adjusted before
// the answer is sent, so that a server never sees room that there is not.
func (c *Consumer) release(d *Delivery) {
	c.mu.Lock()
	delete(c.held, d)
	if d.session != nil {
		d.session.inHand--
	}
	c.mu.Unlock()
	c.balance()
}

// void gives up what came over a connection that is lost. The server delivers it again anyway; and
// go-nsq does not let go of a connection, so that a new one could be made, before each of its
// messages is answered. The handlers work on and keep their slots.
func (c *Consumer) void(s *session) {
	c.mu.Lock()
	delete(c.sessions, s)
	var lost []*nsq.Message
	for d := range c.held {
		if d.session == s {
			d.session = nil
			lost = append(lost, d.message)
		}
	}
	s.inHand = 0
	c.mu.Unlock()
	for _, m := range lost {
		giveBack(m, 0)
	}
	c.balance()
}

// rotate lets the servers take turns when there are fewer slots than servers.
func (c *Consumer) rotate(ctx context.Context) {
	for wait(ctx, rotation) == nil {
		c.mu.Lock()
		c.turn++
		several := len(c.sessions) > 1
		c.mu.Unlock()
		if several {
			c.balance()
		}
	}
}
