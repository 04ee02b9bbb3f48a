package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// gate keeps the limits on what each server is asked for.
type gate struct {
	options HTTPOptions

	mu    sync.Mutex // guards hosts and what is in them
	hosts map[string]*host
}

// host is what is known of one server.
type host struct {
	slots    chan struct{}
	requests *rate.Limiter // nil for no limit
	bytes    *rate.Limiter // nil for no limit

	users     int // requests under way or waiting
	used      time.Time
	notBefore time.Time // the server asked to be left alone until then
}

// busyError says that a server asked to be left alone for longer than a request waits.
type busyError struct {
	wait time.Duration
}

// Error implements error.
func (e *busyError) Error() string { return fmt.Sprintf("asked to be left alone for %s more", e.wait) }

func newGate(o HTTPOptions) *gate {
	return &gate{options: o, hosts: map[string]*host{}}
}

// slot is the right to one request.
type slot struct {
	gate *gate
	host *host
	once sync.Once
}

// enter waits until the server may be asked. It returns a *busyError when that would take too long,
// or ctx's error.
func (g *gate) enter(ctx context.Context, origin string) (*slot, error) {
	h, wait := g.use(origin)
	s := &slot{gate: g, host: h}
	if err := g.wait(ctx, h, wait); err != nil {
		g.mu.Lock()
		h.users--
		g.mu.Unlock()
		return nil, err
	}
	return s, nil
}

// wait returns with a slot taken, or with an error.
func (g *gate) wait(ctx context.Context, h *host, wait time.Duration) error {
	if wait > g.options.PatienceAfterRetryAfter {
		return &busyError{wait: wait}
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return contextError(ctx)
	}
	if h.requests != nil {
		if err := h.requests.Wait(ctx); err != nil {
			<-h.slots // Wait fails at once where ctx would end first
			return fmt.Errorf("wait for the limit on requests: %w: %w", context.DeadlineExceeded, err)
		}
	}
	return nil
}

// use counts one more user of a server and returns how long it wants to be left alone.
func (g *gate) use(origin string) (*host, time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	h := g.hosts[origin]
	if h == nil {
		g.forget(now)
		h = g.newHost()
		g.hosts[origin] = h
	}
	h.users++
	h.used = now
	return h, h.notBefore.Sub(now)
}

func (g *gate) newHost() *host {
	h := &host{slots: make(chan struct{}, g.options.PerHost)}
	if most := g.options.RequestsPerSecond; most > 0 {
		h.requests = rate.NewLimiter(rate.Limit(most), 1)
	}
	if most := g.options.BytesPerSecond; most > 0 {
		h.bytes = rate.NewLimiter(rate.Limit(most), most)
	}
	return h
}

// forget drops servers that were not asked for a while, lest a manifest with a million hosts fill
// the memory.
func (g *gate) forget(now time.Time) {
	const (
		few  = 256
		long = time.Minute
	)
	if len(g.hosts) < few {
		return
	}
	for origin, h := range g.hosts {
		if h.users == 0 && now.Sub(h.used) > long && now.After(h.notBefore) {
			delete(g.hosts, origin)
		}
	}
}

// block notes that the server asks to be left alone.
func (s *slot) block(d time.Duration) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if until := time.Now().Add(d); until.After(s.host.notBefore) {
		s.host.notBefore = until
	}
}

// spend waits as the limit on bytes asks for after n bytes, which are not more than a second's
// worth.
func (s *slot) spend(ctx context.Context, n int) error {
	if s.host.bytes == nil {
		return nil
	}
	if err := s.host.bytes.WaitN(ctx, n); err != nil {
		return fmt.Errorf("wait for the limit on bytes: %w: %w", context.DeadlineExceeded, err)
	}
	return nil
}

// leave gives the slot back. Calling it again does nothing.
func (s *slot) leave() {
	s.once.Do(func() {
		<-s.host.slots
		s.gate.mu.Lock()
		defer s.gate.mu.Unlock()
		s.host.users--
		s.host.used = time.Now()
	})
}
