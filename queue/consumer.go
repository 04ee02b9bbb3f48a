package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nsqio/go-nsq"

	"github.com/holdfast/holdfast/metrics"
)

const (
	// DefaultMsgTimeout is the default of ConsumerConfig.MsgTimeout.
	DefaultMsgTimeout = time.Minute

	userAgent = "holdfast"

	// surplusDelay delays messages that arrive while all slots are taken. That happens when a
	// message timed out at the server while its handler still runs. Without a delay the server
	// would send such a message again and again.
	surplusDelay = time.Second

	// rotation is the interval at which slots move between servers if there are fewer slots than
	// servers.
	rotation = time.Second
)

// errStopped is the cause with which a stopped Consumer's context ends.
var errStopped = errors.New("consumer is stopped")

// Handler processes one wake-up, on a goroutine of its own. A delivery that it has neither finished
// nor requeued when it returns is requeued with a short delay.
type Handler func(ctx context.Context, d *Delivery)

// Consumer subscribes to one topic at every nsqd that is configured or discovered. All its methods
// may be called concurrently.
type Consumer struct {
	cfg    ConsumerConfig
	config *nsq.Config
	report *errorLog
	stop   context.CancelCauseFunc
	force  func()        // requeues all unanswered messages and closes the connections; once
	forced chan struct{} // closed by force
	done   chan struct{} // closed when the last goroutine has ended

	loops    sync.WaitGroup // links, lookups and rotation
	handlers sync.WaitGroup

	mu          sync.Mutex
	free        int
	held        map[*Delivery]struct{} // unanswered deliveries; each occupies a slot
	sessions    map[*session]struct{}  // subscribed and not lost
	joined      int                    // sessions so far
	links       map[string]*link       // by address
	firstServer int

	// rdyMu keeps RDY counts in the order in which they were computed. Lock it before mu.
	rdyMu sync.Mutex
}

// Consume starts a Consumer and returns at once; unreachable servers are no error. It returns an
// error if cfg is incomplete or invalid (ErrBadTopic for the topic). Handlers receive ctx. When ctx
// ends, the Consumer stops receiving as if Stop were called. The caller must call Stop.
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

// SetFree sets how many deliveries may be unanswered at once: the worker's slots, less those
// occupied without a delivery. 0 pauses receiving and keeps the deliveries in hand; a negative n
// counts as 0. The servers' RDY counts follow at once.
func (c *Consumer) SetFree(n int) {
	c.mu.Lock()
	c.free = max(n, 0)
	c.mu.Unlock()
	c.balance()
}

// Connections returns how many servers the Consumer is subscribed to.
func (c *Consumer) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// Stop ends receiving, requeues messages that no handler has, and waits until every delivery is
// answered, every handler has returned and the connections are closed. Then it returns nil.
// Meanwhile deliveries can be touched, finished and requeued. If ctx ends first, Stop requeues all
// unanswered deliveries without waiting for their handlers, and returns an error that wraps the
// context's cause. It may be called several times; each call waits anew.
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

// receive starts a handler for a message, if a slot is free. It runs on the connection's reading
// goroutine, so it must not block.
func (c *Consumer) receive(ctx, receiving context.Context, s *session, m *nsq.Message, handle Handler) {
	m.DisableAutoResponse()
	metrics.Received.Add(1)
	if m.Attempts > 1 {
		metrics.Redelivered.Add(1)
	}
	if err := checkItemID(string(m.Body)); err != nil {
		// No item has such an id, so another delivery could not help.
		c.report.warn(ctx, err)
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

// release frees the slot of a delivery before its answer is sent. It adjusts the RDY counts first,
// so that a server never sees more room than there is.
func (c *Consumer) release(d *Delivery) {
	c.mu.Lock()
	delete(c.held, d)
	if d.session != nil {
		d.session.inHand--
	}
	c.mu.Unlock()
	c.balance()
}

// dropSession gives up the deliveries of a lost connection. The server delivers them again anyway,
// and go-nsq closes a connection only after each of its messages is answered. The handlers continue
// and keep their slots.
func (c *Consumer) dropSession(s *session) {
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

// rotate moves slots between servers if there are fewer slots than servers.
func (c *Consumer) rotate(ctx context.Context) {
	for wait(ctx, rotation) == nil {
		c.mu.Lock()
		c.firstServer++
		several := len(c.sessions) > 1
		c.mu.Unlock()
		if several {
			c.balance()
		}
	}
}
