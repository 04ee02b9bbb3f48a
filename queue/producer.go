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
)

// maxPublish bounds the bytes of one MPUB; nsqd's default limit is 5 MiB.
const maxPublish = 1 << 20

// ProducerConfig says where a Producer sends to.
type ProducerConfig struct {
	// Addrs are the TCP addresses of nsqds, each host:port. LookupAddrs are nsqlookupds, each
	// host:port or http URL, that know the nsqds. One of the two must be given; both may be. A
	// message goes to one nsqd.
	Addrs       []string
	LookupAddrs []string
	// AuthSecret is said by AUTH to every nsqd that asks for it; "": one that asks cannot be used.
	AuthSecret string
	// OnChange, if set, is called with the address when a connection is lost, and when it is there
	// again: the moments to ring again for what waits, since what that nsqd held may be gone (R19).
	// It must return soon.
	OnChange func(addr string)
	Timing   Timing
	Log      *slog.Logger // nil: nothing is logged
}

// Producer publishes to several nsqds, one connection to each, and takes another one when one
// fails. It keeps the connections up by itself. All its methods may be called concurrently.
type Producer struct {
	cfg     ProducerConfig
	turn    atomic.Uint64
	stop    context.CancelFunc
	loops   sync.WaitGroup // that keep the outlets up, and the lookup
	looked  signal         // the nsqlookupds were asked once, or need not be
	mu      sync.Mutex
	outlets []*outlet // replaced, never written to
	closed  bool
	calls   sync.WaitGroup
}

var _ Publisher = (*Producer)(nil)

var errNoneKnown = fmt.Errorf("%w: no nsqlookupd knows one", ErrUnavailable)

// OpenProducer starts connecting to the nsqds and returns at once; one that is not there yet is no
// error. It returns an error when there is no address, or one that cannot be read. The caller must
// Close it; when ctx ends the connections are closed.
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
	p.set(ctx, cfg.Addrs)
	if len(cfg.LookupAddrs) == 0 {
		p.looked.give()
		return p, nil
	}
	p.loops.Go(func() {
		defer p.looked.give()
		report := newErrorLog(cfg.Log, cfg.Timing.LogEvery)
		newLookups(cfg.LookupAddrs, cfg.Timing, report).watch(ctx, "", func(addrs map[string]bool, all bool) {
			p.found(ctx, addrs, all)
			p.looked.give()
		})
	})
	return p, nil
}

// found keeps outlets to the nsqds that the lookups know. One that none of them knows any more is
// let go of, unless it is connected.
func (p *Producer) found(ctx context.Context, known map[string]bool, all bool) {
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
	p.set(ctx, want)
}

// set makes the outlets those of these addresses. Only one goroutine at a time calls it.
func (p *Producer) set(ctx context.Context, addrs []string) {
	before := p.current()
	after := make([]*outlet, 0, len(addrs))
	for _, addr := range addrs {
		if i := slices.IndexFunc(before, func(o *outlet) bool { return o.addr == addr }); i >= 0 {
			after = append(after, before[i])
			continue
		}
		if slices.ContainsFunc(after, func(o *outlet) bool { return o.addr == addr }) {
			continue // named twice
		}
		o := newOutlet(addr, p.cfg)
		after = append(after, o)
		ctx, unwanted := context.WithCancel(ctx)
		o.unwanted = unwanted
		p.loops.Go(func() {
			defer unwanted()
			o.keepUp(ctx)
		})
	}
	p.mu.Lock()
	p.outlets = after
	p.mu.Unlock()
	for _, o := range before {
		if !slices.Contains(after, o) {
			o.unwanted()
		}
	}
}

// current is the outlets at this moment.
func (p *Producer) current() []*outlet {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outlets
}

// Publish implements Publisher. The nsqds take turns; one that fails is passed over for the next,
// and one known to be down is not asked. It returns ErrBadTopic or ErrBadItemID before anything is
// sent, ErrRefused when an nsqd says no, ErrUnavailable (with each address and its error) when none
// could be reached, ErrClosed after Close, and the context's cause when that ends first; what was
// then on its way may still arrive.
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
	return p.publishAll(ctx, topic, func() uint64 { return p.turn.Add(1) }, bodies)
}

// Send sends one message for each body to the topic, in their order, and returns nil when an nsqd
// has them all. Unlike those of Publish they are no hints: what nsqd does not have is the caller's
// to send again, and after an error it may have any part of them. All of a topic goes to the same
// nsqd as long as that can be reached, so that their order is kept where one is. Its errors are
// those of Publish. It may be called concurrently; then nobody knows the order.
func (p *Producer) Send(ctx context.Context, topic string, bodies ...[]byte) error {
	if err := checkTopic(topic); err != nil {
		return err
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(topic)) // no hash fails to write
	return p.publishAll(ctx, topic, h.Sum64, bodies)
}

// publishAll publishes by portions, each to the first nsqd that takes it, beginning with the one
// that first names.
func (p *Producer) publishAll(ctx context.Context, topic string, first func() uint64, bodies [][]byte) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.calls.Done()
	for len(bodies) > 0 {
		n := portion(bodies)
		if err := p.publish(ctx, topic, first(), bodies[:n]); err != nil {
			return fmt.Errorf("publish to %s: %w", topic, err)
		}
		bodies = bodies[n:]
	}
	return nil
}

// portion is how many of the bodies go into one command: one at least, which nsqd may refuse.
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
		case ctx.Err() != nil: // whatever the server said meanwhile
			return errors.Join(context.Cause(ctx), err)
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(errs...))
}

// Ping returns nil when at least one nsqd can be published to at this moment as far as is known,
// else ErrUnavailable with the reason of each address, or ErrClosed. It does not wait for the
// network.
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

// Close waits for the calls under way, which a server that does not answer may hold up for some
// seconds, then closes the connections. It may be called several times; every call waits.
func (p *Producer) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.calls.Wait()
	p.stop()
	p.loops.Wait()
}
