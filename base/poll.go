package base

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Poll returns a ConnectFunc for stages that get no messages: it asks the Registry for work. Like a
// queue it hands on at most as many messages as there are free slots.
func Poll(r registry.Serving) ConnectFunc {
	return func(ctx context.Context, _ registry.Action, stage registry.Stage, free int, handle HandleFunc) (Consumer, error) {
		asking, cancel := context.WithCancel(ctx)
		p := &poller{registry: r, stage: stage, handle: handle, asking: asking, cancel: cancel, work: context.WithoutCancel(ctx), free: free, changed: make(chan struct{})}
		p.running.Go(func() { p.run(asking) })
		return p, nil
	}
}

// poller asks for the work of one stage.
type poller struct {
	registry registry.Serving
	stage    registry.Stage
	handle   HandleFunc
	asking   context.Context
	cancel   context.CancelFunc // ends the asking
	work     context.Context
	running  sync.WaitGroup // the asking, and all messages

	mu      sync.Mutex
	free    int           // how many messages may be in flight
	flight  int           // messages that are not answered
	claims  int           // messages whose claim is not answered
	hits    int           // claims in a row that got an item
	refused time.Duration // the wait after the last claims that got nothing; 0: the last one got an item
	changed chan struct{} // closed when one of them changes
}

// Waits after claims that got nothing although an item was ready: another process was faster, or
// the Registry keeps the item for another worker.
const (
	refusedFirst = 10 * time.Millisecond
	refusedMost  = time.Second
)

// run asks until ctx ends.
func (p *poller) run(ctx context.Context) {
	for wait := retryFirst; p.room(ctx); {
		stage, err := p.registry.AwaitReady(ctx, []registry.Stage{p.stage})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // the renewals report the outage
			pause(ctx, wait)
			wait = min(2*wait, retryCap)
		case stage != "":
			wait = retryFirst
			p.ring()
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// room waits until a slot is free and no claim is under way, because that might take the item which
// the Registry would tell of. It returns false if ctx ends first.
func (p *poller) room(ctx context.Context) bool {
	for {
		p.mu.Lock()
		may, changed, refused := p.flight < p.free && p.claims == 0, p.changed, p.refused
		p.mu.Unlock()
		if may {
			pause(ctx, refused)
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// ring hands a message on. It has no hint: the claim gets the item whose turn it is.
func (p *poller) ring() {
	p.update(func() { p.flight, p.claims = p.flight+1, p.claims+1 })
	p.running.Go(func() { p.handle(p.work, "", &rung{poller: p}) })
}

// more hands messages on without asking, after two or more claims in a row that got an item: asking
// before each claim would limit how many items there can be in a second. With each claim that gets
// one, twice as many may be under way. After a single one the poller asks, because often there are
// no more.
func (p *poller) more() {
	p.mu.Lock()
	guesses := 0
	for p.hits >= 2 && p.flight < p.free && p.claims < 1<<min(p.hits, 10) && p.asking.Err() == nil {
		p.flight, p.claims, guesses = p.flight+1, p.claims+1, guesses+1
	}
	p.mu.Unlock()
	for range guesses {
		p.running.Go(func() { p.handle(p.work, "", &rung{poller: p, guess: true}) })
	}
}

// update changes the poller's numbers.
func (p *poller) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// SetFree implements Consumer.
func (p *poller) SetFree(n int) { p.update(func() { p.free = n }) }

// Stop implements Consumer.
func (p *poller) Stop(ctx context.Context) error {
	p.cancel()
	done := make(chan struct{})
	go func() {
		p.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// rung is a message of a poller.
type rung struct {
	poller         *poller
	guess          bool // nobody said that an item was ready
	claim, answers sync.Once
}

// Touch implements Message. The first one says that the claim got an item.
func (m *rung) Touch() {
	m.claim.Do(func() {
		m.poller.update(func() {
			m.poller.claims--
			m.poller.hits, m.poller.refused = m.poller.hits+1, 0
		})
		m.poller.more()
	})
}

// Finish implements Message.
func (m *rung) Finish() {
	m.claim.Do(func() {
		m.poller.update(func() {
			m.poller.claims--
			m.poller.hits = 0
			if !m.guess { // another process was faster
				m.poller.refused = min(max(2*m.poller.refused, refusedFirst), refusedMost)
			}
		})
	})
	m.answers.Do(func() {
		m.poller.update(func() { m.poller.flight-- })
		m.poller.more()
	})
}

// Requeue implements Message. The poller asks again anyway.
func (m *rung) Requeue(time.Duration) { m.Finish() }
