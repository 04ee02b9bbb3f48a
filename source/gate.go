package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// gate enforces the limits for each server.
type gate struct {
	options HTTPOptions

	mu    sync.Mutex // guards hosts and what is in them
	hosts map[string]*host
}

// host is the state of one server.
type host struct {
	slots    chan struct{}
	requests *rate.Limiter // nil for no limit
	bytes    *rate.Limiter // nil for no limit

	users     int // requests in progress or waiting
	used      time.Time
	notBefore time.Time // the server asked to wait until then
}

// busyError says that a server asked for a longer wait than a request may wait.
type busyError struct {
	wait time.Duration
}

// Error implements error.
func (e *busyError) Error() string { return fmt.Sprintf("asked to wait %s more", e.wait) }

func newGate(o HTTPOptions) *gate {
	return &gate{options: o, hosts: map[string]*host{}}
}

// slot is the permission for one request.
type slot struct {
	gate *gate
	host *host
	once sync.Once
}

// enter waits until the server may be asked. It returns a *busyError if that takes too long, or the
// error of ctx.
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

// wait waits for the given time and takes a slot.
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
			<-h.slots // Wait fails at once if ctx would end first
			return fmt.Errorf("wait for the limit on requests: %w: %w", context.DeadlineExceeded, err)
		}
	}
	return nil
}

// use adds a user of a server and returns how long the server asks to wait.
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

// forget drops servers that were not used for a while, so that a manifest with a million hosts does
// not fill the memory.
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

// block records that the server asks to wait.
func (s *slot) block(d time.Duration) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if until := time.Now().Add(d); until.After(s.host.notBefore) {
		s.host.notBefore = until
	}
}

// spend waits for the limit on bytes. n is at most the number of bytes in a second.
func (s *slot) spend(ctx context.Context, n int) error {
	if s.host.bytes == nil {
		return nil
	}
	if err := s.host.bytes.WaitN(ctx, n); err != nil {
		return fmt.Errorf("wait for the limit on bytes: %w: %w", context.DeadlineExceeded, err)
	}
	return nil
}

// leave releases the slot. A second call does nothing.
func (s *slot) leave() {
	s.once.Do(func() {
		<-s.host.slots
		s.gate.mu.Lock()
		defer s.gate.mu.Unlock()
		s.host.users--
		s.host.used = time.Now()
	})
}
