package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/panics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Registry is what a Server needs of the Registry.
type Registry interface {
	registry.ForWorkers
	// Claimed lists items with live attempts that a token claimed, a page at a time.
	Claimed(ctx context.Context, q registry.ClaimedQuery) ([]registry.WorkItem, error)
}

// MaxBody bounds the arguments of a method, in bytes: enough for 1,000 inventory rows with long
// paths.
const MaxBody = 16 << 20

// mostBatched is the largest number of calls in one request.
const mostBatched = 100

// mostWait bounds a long poll. Many proxies give up after a minute.
const mostWait = 30 * time.Second

// Server answers workers. All fields must be set. The caller must authenticate the token and
// authorize the method before it calls Serve.
type Server struct {
	Registry Registry
	// Token returns the token of a request. Tokens of other roles than worker (admins) are not
	// limited to the items that they have claimed.
	Token func(context.Context) registry.Token
	// Permit refuses a token that may not call a method. Serve asks it for the calls that share a
	// request.
	Permit func(ctx context.Context, method string) error
	// Staging measures the size of the staging volume in bytes; 0 means unlimited.
	Staging func(context.Context) (total int64, err error)
	// Fail answers a request with an error. Problem converts an error to a problem.
	Fail    func(http.ResponseWriter, *http.Request, error)
	Problem func(*http.Request, error) *wire.Problem
	// Until returns a context that ends after the given time or when the process begins to stop.
	Until func(context.Context, time.Duration) (context.Context, context.CancelFunc)
}

// Name returns the method of a request's path below the API's base, "" if there is none.
func Name(path string) string {
	name, ok := strings.CutPrefix(path, Path)
	if _, known := table[name]; !ok || !known {
		return ""
	}
	return name
}

// Serve answers a request for a method of [Name], given the arguments.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, name string, arguments []byte) {
	out, err := table[name].serve(context.WithValue(r.Context(), requestKey{}, r), s, arguments)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	text, encoded := out.(json.RawMessage)
	if !encoded {
		if text, err = wire.Encode(out); err != nil {
			s.Fail(w, r, err)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a failure means that the worker has disconnected
}

type requestKey struct{}

// worker is the id of a worker's token, which fences its writes; "" for other roles.
func (s *Server) worker(ctx context.Context) string {
	if t := s.Token(ctx); t.Role == registry.RoleWorker {
		return t.ID
	}
	return ""
}

// call is one call of several in a request.
type call struct {
	Method string          `json:"method"`
	In     json.RawMessage `json:"in"`
}

// answer is the outcome of a call: Value if Done, else Problem.
type answer struct {
	Done    bool          `json:"done"`
	Value   any           `json:"value,omitempty"` // the caller sets it to what is decoded into
	Problem *wire.Problem `json:"problem,omitempty"`
}

// answerCalls runs all calls of a request concurrently, so that the Registry commits them in one
// group. The answers have the order of the calls.
func (s *Server) answerCalls(ctx context.Context, all []call) (json.RawMessage, error) {
	if len(all) > mostBatched {
		return nil, wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid,
			fmt.Sprintf("nothing was done: the request has %d calls, more than the %d allowed", len(all), mostBatched))
	}
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	out := make([][]byte, len(all))
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, one := range all {
		running.Go(func() {
			text, err := s.answerCall(ctx, one)
			if err != nil {
				text, errs[i] = wire.Encode(answer{Problem: s.Problem(r, err)})
			}
			out[i] = text
		})
	}
	running.Wait()
	return slices.Concat([]byte("["), bytes.Join(out, []byte(",")), []byte("]")), errors.Join(errs...)
}

// answerCall runs one call of several and returns its answer. It turns a panic into an error of
// this call: a panic in another goroutine than the request's would end the process.
func (s *Server) answerCall(ctx context.Context, one call) (text []byte, err error) {
	err = panics.Guard(func() error {
		method, ok := table[one.Method]
		if !ok || !method.shares {
			return wire.NewProblem(http.StatusNotFound, wire.CodeNotFound,
				fmt.Sprintf("%q is no method that shares requests; check that this worker has the same version as the Registry", one.Method))
		}
		if err := s.Permit(ctx, one.Method); err != nil {
			return err
		}
		value, err := method.serve(ctx, s, one.In)
		if err != nil {
			return err
		}
		text, err = wire.Encode(answer{Done: true, Value: value})
		return err
	})
	return text, err
}

func (s *Server) claim(ctx context.Context, c registry.ClaimRequest) (registry.Claim, error) {
	if err := s.mayServe(ctx, c.Stage); err != nil {
		return registry.Claim{}, err
	}
	c.Token = s.worker(ctx)
	return s.Registry.Claim(ctx, c)
}

// announceFunctions serves Announce of registry.Serving.
func (s *Server) announceFunctions(ctx context.Context, all []registry.Function) error {
	for _, f := range all {
		if err := s.mayServe(ctx, f.Stage()); err != nil {
			return err
		}
	}
	return s.Registry.Announce(ctx, all)
}

// announceNamespaces serves AnnounceNamespaces of registry.Stepping.
func (s *Server) announceNamespaces(ctx context.Context, all []registry.Namespace) error {
	for _, n := range all {
		if err := s.mayServe(ctx, n.Stage()); err != nil {
			return err
		}
	}
	return s.Registry.AnnounceNamespaces(ctx, all)
}

// awaitReadyStage serves AwaitReady of registry.Serving.
func (s *Server) awaitReadyStage(ctx context.Context, in readyRequest) (registry.Stage, error) {
	for _, stage := range in.Stages {
		if err := s.mayServe(ctx, stage); err != nil {
			return "", err
		}
	}
	ctx, cancel := s.Until(ctx, min(max(in.Wait, 0), mostWait))
	defer cancel()
	return s.Registry.AwaitReady(ctx, in.Stages)
}

// startNewTask serves StartTask of registry.Serving. The token is the task's actor, and a worker's
// idempotency keys are its own: with a shared key, another token would get its task.
func (s *Server) startNewTask(ctx context.Context, in newTask) (registry.Claim, error) {
	if err := s.mayServe(ctx, registry.Run.Of(in.Task.Function)); err != nil {
		return registry.Claim{}, err
	}
	in.Task.Actor, in.Claim.Token = s.Token(ctx).Name, s.worker(ctx)
	if in.Task.IdempotencyKey != "" && in.Claim.Token != "" {
		in.Task.IdempotencyKey = in.Claim.Token + " " + in.Task.IdempotencyKey
	}
	return s.Registry.StartTask(ctx, in.Task, in.Claim)
}

// renewAttempts serves Renew of registry.Working. The relay publishes messages for the stages that
// a worker names, so the worker may name only those of its token.
func (s *Server) renewAttempts(ctx context.Context, in registry.RenewRequest) (registry.Renewal, error) {
	for stage := range in.Worker.Capacity {
		if err := s.mayServe(ctx, stage); err != nil {
			return registry.Renewal{}, err
		}
	}
	for i := range in.Beats {
		in.Beats[i].Lease.Token = s.worker(ctx)
	}
	in.Token = s.worker(ctx)
	return s.Registry.Renew(ctx, in)
}

// reserveRoom serves Reserve of registry.Working. It limits the worker's measure of the staging
// volume to the Registry's own: a worker that claims more could reserve the room of others.
func (s *Server) reserveRoom(ctx context.Context, in fenced[registry.Reservation]) error {
	r := in.Value
	if r.Volume == registry.DefaultStaging {
		total, err := s.Staging(ctx)
		if err != nil {
			return fmt.Errorf("measure staging: %w", err)
		}
		if total > 0 && (r.Total == 0 || r.Total > total) {
			r.Total = total
		}
	}
	return s.Registry.Reserve(ctx, in.Lease, r)
}

func (s *Server) awaitWithdrawn(ctx context.Context, in withdrawnRequest) (withdrawnLeases, error) {
	ctx, cancel := s.Until(ctx, min(max(in.Wait, 0), mostWait))
	defer cancel()
	in.Token = s.worker(ctx)
	leases, next, err := s.Registry.Withdrawn(ctx, in.WithdrawnQuery)
	return withdrawnLeases{Taken: leases, Next: next}, err
}

func (s *Server) sealedCredentials(ctx context.Context, in byID) ([]credential, error) {
	err := s.mayAsk(ctx, "the credentials of collection "+in.ID, in.ID, func(it registry.WorkItem) (bool, error) { return it.Collection == in.ID, nil })
	if err != nil {
		return nil, err
	}
	all, err := s.Registry.Credentials(ctx, in.ID)
	out := make([]credential, len(all))
	for i, c := range all {
		out[i] = credential{Credential: c, Sealed: c.Sealed}
	}
	return out, err
}
