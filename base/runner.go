package base

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
)

// Defaults of a Runner.
const (
	defaultGrace   = 25 * time.Second
	defaultAbandon = 30 * time.Second
)

// Runner serves the workers of a process. Set its fields before the first call; it must not be
// copied after it.
type Runner struct {
	Registry registry.Working
	Interim  interim.Store
	Connect  ConnectFunc // not used by RunOne
	WorkerID string      // unique per process start (R9) and readable for people; random if empty
	Version  string      // of the program
	Log      *slog.Logger
	// Grace is the time from the end of Run's context to its return; default 25 s.
	Grace time.Duration
	// AbandonAfter is how long a stuck step, or one that lost its claim, may take to return before
	// it is abandoned; default 30 s.
	AbandonAfter time.Duration

	started atomic.Bool
}

// Run serves all handlers until ctx ends. Then it drains and returns nil within Grace: it claims
// nothing more, cancels the steps with ErrStopping, releases their claims uncounted, and answers
// every message (I5). Before the first message it waits for the Registry, without a limit.
//
// It returns an error at once if a field or handler is invalid, if two handlers have the same
// stage, or if it cannot subscribe to a topic. A second call returns ErrStarted. After draining,
// Run returns ErrAbandoned if steps hung and were abandoned (R29).
func (r *Runner) Run(ctx context.Context, handlers ...Handler) error {
	if r.Connect == nil {
		return errors.New("run workers: no queue")
	}
	s, err := r.session(handlers)
	if err != nil {
		return fmt.Errorf("run workers: %w", err)
	}
	if r.started.Swap(true) {
		return fmt.Errorf("run workers: %w", ErrStarted)
	}
	// Signals end ctx. Running steps and calls use a context that outlives it and end by their own
	// rules.
	ctx, s.quit = context.WithCancelCause(ctx)
	defer s.quit(nil)
	work, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)

	if !s.announce(ctx) {
		return nil // ctx ended before there was anything to do
	}
	var renewing sync.WaitGroup
	renewing.Go(func() { s.keepRenewing(work) })
	renewing.Go(func() { s.watchWithdrawals(work) })
	err = s.connect(ctx, work, r.Connect)
	if err == nil {
		s.log.InfoContext(ctx, "worker started", "worker", s.worker, "stages", s.stages())
		<-ctx.Done()
		err = abandonedOnly(context.Cause(ctx))
	}
	s.drain(work, orElse(r.Grace, defaultGrace), abort)
	renewing.Wait()
	s.log.InfoContext(work, "worker stopped", "worker", s.worker)
	if err != nil {
		return fmt.Errorf("run workers: %w", err)
	}
	return nil
}

func abandonedOnly(cause error) error {
	if errors.Is(cause, ErrAbandoned) {
		return ErrAbandoned
	}
	return nil
}

// session validates the configuration and returns a session that is ready to work. Its error names
// all faults.
func (r *Runner) session(handlers []Handler) (*session, error) {
	var errs []error
	if r.Registry == nil || r.Interim == nil {
		errs = append(errs, errors.New("no registry or no interim store"))
	}
	if len(handlers) == 0 {
		errs = append(errs, errors.New("no workers"))
	}
	log := r.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &session{
		worker: r.WorkerID, version: r.Version, log: log, abandonAfter: orElse(r.AbandonAfter, defaultAbandon),
		renewNow: make(chan struct{}, 1), stopping: make(chan struct{}), abandonNow: make(chan struct{}), aborted: make(chan struct{}),
		attempts: map[registry.Lease]*attempt{}, withdrawn: map[registry.Lease]bool{},
	}
	if s.worker == "" {
		s.worker = uuid.NewString()
	}
	for _, h := range handlers {
		st, err := newStation(h)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if slices.ContainsFunc(s.stations, func(other *station) bool { return other.stage == st.stage }) {
			errs = append(errs, fmt.Errorf("two workers for stage %s", st.stage))
		}
		s.stations = append(s.stations, st)
		if lease := h.Lease(); s.lease == 0 || lease < s.lease {
			s.lease = lease
		}
	}
	s.margin = s.lease / 6
	s.stores = stores{
		registry: r.Registry, interim: r.Interim, timeout: s.lease / 4,
		registryTrouble: &outage{log: log, service: "registry"}, interimTrouble: &outage{log: log, service: "interim"},
	}
	return s, errors.Join(errs...)
}

func (s *session) stages() []registry.Stage {
	stages := make([]registry.Stage, len(s.stations))
	for i, st := range s.stations {
		stages[i] = st.stage
	}
	return stages
}

// connect subscribes to every stage's topic. Messages come until ctx ends, and are processed in the
// context work.
func (s *session) connect(ctx, work context.Context, subscribe ConnectFunc) error {
	for _, st := range s.stations {
		consumer, err := subscribe(ctx, st.action, st.stage, st.slots, func(_ context.Context, hint string, m Message) {
			s.serve(work, st, hint, m)
		})
		if err != nil {
			return fmt.Errorf("subscribe to %s: %w", st.stage, err)
		}
		st.connected(consumer)
	}
	return nil
}

// drain ends the session. It tells steps to stop at once, abandons them after four fifths of the
// grace period, and cancels the calls that still run near its end.
func (s *session) drain(ctx context.Context, grace time.Duration, abort context.CancelCauseFunc) {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	hurry := time.AfterFunc(grace*16/20, func() { close(s.abandonNow) })
	defer hurry.Stop()
	end := time.AfterFunc(grace*19/20, func() {
		close(s.aborted)
		abort(ErrStopping)
	})
	defer end.Stop()
	s.stop()

	idle := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(idle)
	}()
	var consumers sync.WaitGroup
	for _, st := range s.stations {
		consumers.Go(func() {
			if err := st.stop(whole); err != nil {
				s.log.WarnContext(ctx, "consumer did not stop in time", "err", err)
			}
		})
	}
	consumers.Wait()
	select {
	case <-idle:
	case <-whole.Done():
		s.log.ErrorContext(ctx, "grace period is over; the remaining claims will expire", "claims", len(s.running()))
	}
	abort(nil) // ends the renewals
}
