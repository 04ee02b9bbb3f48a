package queue

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdfast/holdfast/metrics"
)

// maxPublish limits the bytes of one MPUB; nsqd's default limit is 5 MiB.
const maxPublish = 1 << 20

// ProducerConfig configures a Producer.
type ProducerConfig struct {
	// Addrs are nsqds, each host:port. LookupAddrs are nsqlookupds, each host:port or an http URL,
	// that find the nsqds. At least one of the two is required. Each message goes to one nsqd.
	Addrs       []string
	LookupAddrs []string
	// AuthSecret is sent by AUTH to every nsqd that requires it. Without it, such an nsqd cannot be
	// used.
	AuthSecret string
	// OnChange, if set, is called with the address when a connection is lost and when it is back.
	// The caller should then publish again for everything that waits: that nsqd's messages may be
	// gone (R19). OnChange must return soon.
	OnChange func(addr string)
	Timing   Timing
	Log      *slog.Logger // nil: no log
}

// Producer publishes to several nsqds over one connection each, and uses another one if one fails.
// It reconnects by itself. All its methods may be called concurrently.
type Producer struct {
	cfg       ProducerConfig
	published atomic.Uint64
	stop      context.CancelFunc
	loops     sync.WaitGroup // of the outlets, and the lookup
	looked    signal         // the nsqlookupds were asked once, or there are none
	mu        sync.Mutex
	outlets   []*outlet // replaced as a whole, never modified
	closed    bool
	calls     sync.WaitGroup
}

var _ Publisher = (*Producer)(nil)

var errNoneKnown = fmt.Errorf("%w: no nsqlookupd knows one", ErrUnavailable)

// OpenProducer starts connecting to the nsqds and returns at once; unreachable ones are no error.
// It returns an error if there is no address, or an invalid one. The caller must call Close. When
// ctx ends, the connections are closed.
func OpenProducer(ctx context.Context, cfg ProducerConfig) (*Producer, error) {
	errs := []error{checkAddrs(cfg.Addrs)}
	if len(cfg.Addrs)+len(cfg.LookupAddrs) == 0 {
		errs = append(errs, errors.New("no nsqd and no nsqlookupd address"))
	}
	for _, addr := range cfg.LookupAddrs {
		_, err := lookupURL(addr, "")
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("open producer: %w", err)
	}
	cfg.Timing = cfg.Timing.withDefaults()
	cfg.Log = orDiscard(cfg.Log)
	p := &Producer{cfg: cfg, looked: newSignal()}
	ctx, p.stop = context.WithCancel(ctx)
	p.setOutlets(ctx, cfg.Addrs)
	if len(cfg.LookupAddrs) == 0 {
		p.looked.fire()
		return p, nil
	}
	p.loops.Go(func() {
		defer p.looked.fire()
		report := newErrorLog(cfg.Log, cfg.Timing.LogEvery)
		newLookups(cfg.LookupAddrs, cfg.Timing, report).poll(ctx, "", func(addrs map[string]bool, all bool) {
			p.applyLookup(ctx, addrs, all)
			p.looked.fire()
		})
	})
	return p, nil
}

// applyLookup keeps outlets to the configured nsqds and to those that the lookups know. It drops
// one that no lookup knows any more, unless it is connected.
func (p *Producer) applyLookup(ctx context.Context, known map[string]bool, all bool) {
	want := slices.Clone(p.cfg.Addrs)
	for _, o := range p.current() {
		if !slices.Contains(want, o.addr) && (known[o.addr] || !all || o.health() == nil) {
			want = append(want, o.addr)
		}
	}
	for addr := range known {
		if !slices.Contains(want, addr) {
			want = append(want, addr)
		}
	}
	p.setOutlets(ctx, want)
}

// setOutlets makes one outlet per address. Only one goroutine at a time may call it.
func (p *Producer) setOutlets(ctx context.Context, addrs []string) {
	before := p.current()
	after := make([]*outlet, 0, len(addrs))
	for _, addr := range addrs {
		if i := slices.IndexFunc(before, func(o *outlet) bool { return o.addr == addr }); i >= 0 {
			after = append(after, before[i])
			continue
		}
		if slices.ContainsFunc(after, func(o *outlet) bool { return o.addr == addr }) {
			continue // listed twice
		}
		o := newOutlet(addr, p.cfg)
		after = append(after, o)
		ctx, unwanted := context.WithCancel(ctx)
		o.cancel = unwanted
		p.loops.Go(func() {
			defer unwanted()
			o.keepConnected(ctx)
		})
	}
	p.mu.Lock()
	p.outlets = after
	p.mu.Unlock()
	for _, o := range before {
		if !slices.Contains(after, o) {
			o.cancel()
		}
	}
}

// current returns the present outlets.
func (p *Producer) current() []*outlet {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outlets
}

// Publish implements Publisher. It rotates over the nsqds, tries the next one if one fails, and
// skips those known to be down. It returns ErrBadTopic or ErrBadItemID before it sends anything,
// ErrRefused if an nsqd refuses, ErrUnavailable (with each address and its error) if none could be
// reached, and ErrClosed after Close. If ctx ends first, it returns the context's cause, and
// messages already sent may still arrive.
func (p *Producer) Publish(ctx context.Context, topic string, ids ...string) error {
	if err := checkTopic(topic); err != nil {
		return err
	}
	bodies := make([][]byte, len(ids))
	for i, id := range ids {
		if err := checkItemID(id); err != nil {
			return fmt.Errorf("publish to %s: %w", topic, err)
		}
		bodies[i] = []byte(id)
	}
	return p.publishAll(ctx, topic, func() uint64 { return p.published.Add(1) }, bodies)
}

// Send sends one message for each body to the topic, in order, and returns nil when an nsqd has
// them all. These messages are no hints: the caller must send again what nsqd does not have, and
// after an error nsqd may have any part of them. All messages of a topic go to the same nsqd while
// that can be reached, which keeps their order. Concurrent calls have no defined order. The errors
// are those of Publish.
func (p *Producer) Send(ctx context.Context, topic string, bodies ...[]byte) error {
	if err := checkTopic(topic); err != nil {
		return err
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(topic)) // a hash never fails to write
	return p.publishAll(ctx, topic, h.Sum64, bodies)
}

// publishAll publishes in portions, each to the first nsqd that accepts it, beginning at the index
// that first returns.
func (p *Producer) publishAll(ctx context.Context, topic string, first func() uint64, bodies [][]byte) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.calls.Done()
	for len(bodies) > 0 {
		n := portion(bodies)
		err := p.publish(ctx, topic, first(), bodies[:n])
		metrics.Published.Add(float64(n), metrics.Outcome(err))
		if err != nil {
			return fmt.Errorf("publish to %s: %w", topic, err)
		}
		bodies = bodies[n:]
	}
	return nil
}

// portion returns how many of the bodies fit into one command: at least one, which nsqd may refuse.
func portion(bodies [][]byte) int {
	size := 4
	for i, body := range bodies {
		if size += 4 + len(body); size > maxPublish && i > 0 {
			return i
		}
	}
	return len(bodies)
}

func (p *Producer) publish(ctx context.Context, topic string, first uint64, bodies [][]byte) error {
	select {
	case <-p.looked.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	outlets := p.current()
	if len(outlets) == 0 {
		return errNoneKnown
	}
	var errs []error
	for i := range uint64(len(outlets)) {
		o := outlets[(first+i)%uint64(len(outlets))]
		err := o.publish(ctx, topic, bodies)
		switch {
		case err == nil || errors.Is(err, ErrRefused):
			return err
		case ctx.Err() != nil: // whatever the server answered
			return errors.Join(context.Cause(ctx), err)
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(errs...))
}

// Ping returns nil if at least one nsqd is connected, ErrUnavailable with the reason of each
// address if none is, and ErrClosed after Close. It does not wait for the network.
func (p *Producer) Ping() error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.calls.Done()
	outlets := p.current()
	if len(outlets) == 0 {
		return errNoneKnown
	}
	var errs []error
	for _, o := range outlets {
		err := o.health()
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(errs...))
}

// enter registers a call, so that Close waits for it.
func (p *Producer) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.calls.Add(1)
	return nil
}

// Close waits for running calls, which an unresponsive server may delay by some seconds, and closes
// the connections. It may be called several times; every call waits.
func (p *Producer) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.calls.Wait()
	p.stop()
	p.loops.Wait()
}
