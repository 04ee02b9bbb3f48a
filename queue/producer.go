package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
)

// maxPublish bounds the bytes of one MPUB; nsqd's default limit is 5 MiB.
const maxPublish = 1 << 20

// ProducerConfig says where a Producer sends to.
type ProducerConfig struct {
	// Addrs are the TCP addresses of the nsqds, each host:port. A message goes to one of them.
	Addrs []string
	// OnReconnect, if set, is called with the address when a connection is there again after it was lost: the moment
	// to ring again for what waits, since what that nsqd held may be gone (R19). It must return soon.
	OnReconnect func(addr string)
	Timing      Timing
	Log         *slog.Logger // nil: nothing is logged
}

// Producer publishes to several nsqds, one connection to each, and takes another one when one fails. It keeps the
// connections up by itself. All its methods may be called concurrently.
type Producer struct {
	outlets []*outlet
	turn    atomic.Uint64
	stop    context.CancelFunc
	loops   sync.WaitGroup // that keep the outlets up

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
}

var _ Publisher = (*Producer)(nil)

// OpenProducer starts connecting to cfg.Addrs and returns at once; an nsqd that is not there yet is no error. It
// returns an error when cfg.Addrs is empty or holds an address that is not host:port. The caller must Close it;
// when ctx ends the connections are closed.
func OpenProducer(ctx context.Context, cfg ProducerConfig) (*Producer, error) {
	if len(cfg.Addrs) == 0 {
		return nil, errors.New("open producer: no nsqd address")
	}
	cfg.Timing = cfg.Timing.withDefaults()
	cfg.Log = orDiscard(cfg.Log)
	p := &Producer{}
	for _, addr := range cfg.Addrs {
		o, err := newOutlet(addr, cfg)
		if err != nil {
			return nil, fmt.Errorf("open producer: %w", err)
		}
		p.outlets = append(p.outlets, o)
	}
	ctx, p.stop = context.WithCancel(ctx)
	for _, o := range p.outlets {
		p.loops.Go(func() { o.keepUp(ctx) })
	}
	return p, nil
}

// Publish implements Publisher. The nsqds take turns; one that fails is passed over for the next, and one known to
// be down is not asked. It returns ErrBadTopic or ErrBadItemID before anything is sent, ErrRefused when an nsqd says
// no, ErrUnavailable (with each address and its error) when none could be reached, ErrClosed after Close, and the
// context's cause when that ends first; what was then on its way may still arrive.
func (p *Producer) Publish(ctx context.Context, topic string, ids ...string) error {
	if err := checkTopic(topic); err != nil {
		return err
	}
	for _, id := range ids {
		if err := checkItemID(id); err != nil {
			return fmt.Errorf("publish to %s: %w", topic, err)
		}
	}
	if err := p.enter(); err != nil {
		return err
	}
	defer p.calls.Done()
	for len(ids) > 0 {
		n := portion(ids)
		if err := p.publish(ctx, topic, ids[:n]); err != nil {
			return fmt.Errorf("publish to %s: %w", topic, err)
		}
		ids = ids[n:]
	}
	return nil
}

// portion is how many of the ids go into one command.
func portion(ids []string) int {
	size := 4
	for i, id := range ids {
		if size += 4 + len(id); size > maxPublish {
			return i
		}
	}
	return len(ids)
}

func (p *Producer) publish(ctx context.Context, topic string, ids []string) error {
	bodies := make([][]byte, len(ids))
	for i, id := range ids {
		bodies[i] = []byte(id)
	}
	first := p.turn.Add(1)
	var errs []error
	for i := range uint64(len(p.outlets)) {
		o := p.outlets[(first+i)%uint64(len(p.outlets))]
		err := o.publish(ctx, topic, bodies)
		switch {
		case err == nil || errors.Is(err, ErrRefused):
			return err
		case ctx.Err() != nil: // whatever the server said meanwhile
			return errors.Join(context.Cause(ctx), err)
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(errs...))
}

// Ping returns nil when at least one nsqd can be published to at this moment as far as is known, else ErrUnavailable
// with the reason of each address, or ErrClosed. It does not wait for the network.
func (p *Producer) Ping() error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.calls.Done()
	var errs []error
	for _, o := range p.outlets {
		err := o.health()
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(errs...))
}

// enter counts a call in, so that Close can wait for it.
func (p *Producer) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.calls.Add(1)
	return nil
}

// Close waits for the calls under way, which a server that does not answer may hold up for some seconds, then closes
// the connections. It may be called several times; every call waits.
func (p *Producer) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.calls.Wait()
	p.stop()
	p.loops.Wait()
}
