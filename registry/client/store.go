package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// ErrClosed answers calls of a Store after Close.
var ErrClosed = errors.New("registry client is closed")

// Store is the Registry as a process of ours has it that is not the Registry's own: a worker with a worker's token, or
// a relay, a sweep, a front end. It is a registry.Store: the token must be an admin's to administer, and a worker's is
// enough for the rest. It takes and gives everything as the contract has it, whereas a Client is for people: it acts in
// the name of its token.
//
// Claims travel together with claims, and settlements with settlements, when they are asked for while an earlier request is
// under way; each caller gets its own answer. What a caller waits for does not depend on the others' contexts.
//
// Errors of the contract are found by errors.Is and errors.As with all their fields. No answer, for whatever reason, is
// registry.ErrUnavailable: the caller cannot know whether the call was carried out, and repeats it.
type Store struct {
	c       *Client
	claims  *gathering[registry.ClaimRequest, registry.Claim]
	settles *gathering[registry.Settlement, registry.Verdict]
	woken   chan struct{}
	listen  func()             // starts to hear the bell; once
	stop    context.CancelFunc // of everything in the background

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

var _ registry.Store = (*Store)(nil)

// NewStore returns a Store that asks by c. It connects to nothing yet. Close it.
func NewStore(c *Client) *Store {
	ctx, stop := context.WithCancel(context.Background())
	s := &Store{c: c, stop: stop, woken: make(chan struct{}, 1)}
	background := func(do func(context.Context)) error { return s.start(func() { do(ctx) }) }
	s.claims = &gathering[registry.ClaimRequest, registry.Claim]{start: background, send: s.sendClaims}
	s.settles = &gathering[registry.Settlement, registry.Verdict]{start: background, send: s.sendSettlements}
	s.listen = sync.OnceFunc(func() { _ = background(s.hear) }) // closed: there is nothing more to hear
	return s
}

// start does something in the background that Close waits for.
func (s *Store) start(do func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.running.Go(do)
	return nil
}

// Close ends what is under way in the background, and lets go of idle connections. Calls after it fail with ErrClosed. It may
// be called again.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.running.Wait()
	s.c.Close()
	return nil
}

// ask sends a request of the contract.
func (s *Store) ask(ctx context.Context, q request, in, out any) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return ErrClosed
	}
	err := s.c.ask(ctx, q, in, out)
	if err == nil || ctx.Err() != nil || answered(err) {
		return err
	}
	return &unansweredError{err}
}

// answered says whether an error is the server's, not that of somebody in between or of the network.
func answered(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.Status != http.StatusBadGateway && p.Status != http.StatusServiceUnavailable && p.Status != http.StatusGatewayTimeout
}

// unansweredError is a call to which there was no answer: nobody knows whether it was carried out, as when the Registry's
// database does not answer the Registry. What a step could not be told for this is nobody's fault.
type unansweredError struct{ err error }

// Error says what kept the answer away.
func (e *unansweredError) Error() string { return e.err.Error() }

// Unwrap returns what kept the answer away.
func (e *unansweredError) Unwrap() error { return e.err }

// Is says that the Registry was not available.
func (e *unansweredError) Is(target error) bool { return target == registry.ErrUnavailable }

// call asks a method of the contract by its name.
func call[O any](ctx context.Context, s *Store, name string, in any) (O, error) {
	return post[O](ctx, s, "/registry/"+name, in)
}

// tell is call for a method without a result.
func (s *Store) tell(ctx context.Context, name string, in any) error {
	return s.ask(ctx, request{method: http.MethodPost, path: "/registry/" + name}, in, nil)
}

// list is call for a method that lists.
func list[T any](ctx context.Context, s *Store, name string, in any) ([]T, error) {
	out, err := call[wire.Rows[T]](ctx, s, name, in)
	return out.Rows, err
}

// post sends in and returns the answer; the zero value with an error.
func post[O any](ctx context.Context, s *Store, path string, in any) (O, error) {
	var out O
	if err := s.ask(ctx, request{method: http.MethodPost, path: path}, in, &out); err != nil {
		var zero O
		return zero, err
	}
	return out, nil
}

// under is the address of something of an attempt.
func under(l registry.Lease, what string) (string, error) {
	if l.ItemID == "" {
		// It is no path, and no attempt.
		return "", fmt.Errorf("%s of no item: %w", what, registry.ErrClaimLost)
	}
	return in("items", l.ItemID, "attempts", fmt.Sprint(l.N), what), nil
}

// fenced sends a write of an attempt.
func fenced[O any](ctx context.Context, s *Store, l registry.Lease, what string, in any) (O, error) {
	var zero O
	path, err := under(l, what)
	if err != nil {
		return zero, err
	}
	return post[O](ctx, s, path, in)
}

// fencedTell is fenced for what has no answer.
func (s *Store) fencedTell(ctx context.Context, method string, l registry.Lease, what string, in any) error {
	path, err := under(l, what)
	if err != nil {
		return err
	}
	return s.ask(ctx, request{method: method, path: path}, in, nil)
}

// wait is how long one request waits for news: not as long as a request may take.
func (s *Store) wait() time.Duration {
	const most = 20 * time.Second
	return min(most, s.c.timeout/2)
}
