package protocol

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/panics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Registry is what a Server asks on behalf of workers.
type Registry interface {
	registry.ForWorkers
	// Claimed lists items that run under attempts which a token claimed, some at a time.
	Claimed(ctx context.Context, q registry.ClaimedQuery) ([]registry.WorkItem, error)
}

// MaxBody bounds the arguments of a method, in bytes: 1,000 inventory rows with long paths, say.
const MaxBody = 16 << 20

// mostTogether is how many claims, or settlements, one request may bring.
const mostTogether = 100

// mostWait bounds a long poll. Proxies tend to give up after a minute.
const mostWait = 30 * time.Second

// Server answers workers. All fields must be set. Whoever routes requests here has proven the token
// and permitted the method.
type Server struct {
	Registry Registry
	// Token is the token that a request came with. Who is no worker, an admin, is not limited to
	// what a token has claimed.
	Token func(context.Context) registry.Token
	// Staging measures how many bytes the staging volume holds; 0: there is no end of it.
	Staging func(context.Context) (total int64, err error)
	// Fail answers a request with an error; Problem is how it tells one.
	Fail    func(http.ResponseWriter, *http.Request, error)
	Problem func(*http.Request, error) *wire.Problem
	// Until is a context that ends after so long, or when the process is about to stop.
	Until func(context.Context, time.Duration) (context.Context, context.CancelFunc)
}

// Name is the method that a request below the API's base asks; "" when there is none of that name.
func Name(path string) string {
	name, ok := strings.CutPrefix(path, Path)
	if _, known := table[name]; !ok || !known {
		return ""
	}
	return name
}

// Serve answers a request for a method that [Name] gave, with its arguments.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, name string, arguments []byte) {
	out, err := table[name].serve(context.WithValue(r.Context(), requestKey{}, r), s, arguments)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	text, err := wire.Encode(out)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the worker has gone if this fails
}

type requestKey struct{}

// worker is the id of a worker's token, by which what it writes is fenced; "" for who is none.
func (s *Server) worker(ctx context.Context) string {
	if t := s.Token(ctx); t.Role == registry.RoleWorker {
		return t.ID
	}
	return ""
}

// answer is what became of one of the calls that came together: Value, or Problem.
type answer[T any] struct {
	Value   *T            `json:"value,omitempty"`
	Problem *wire.Problem `json:"problem,omitempty"`
}

// together asks the Registry all at once, so that it commits them in one group, and answers each by
// itself, in their order.
func together[I, O any](ctx context.Context, s *Server, all []I, do func(context.Context, I) (O, error)) ([]answer[O], error) {
	if len(all) > mostTogether {
		return nil, wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid,
			fmt.Sprintf("nothing was done: %d calls in one request, at most %d are taken", len(all), mostTogether))
	}
	out := make([]answer[O], len(all))
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	var running sync.WaitGroup
	for i, one := range all {
		running.Go(func() {
			value, err := guarded(ctx, one, do)
			if err != nil {
				out[i].Problem = s.Problem(r, err)
				return
			}
			out[i].Value = &value
		})
	}
	running.Wait()
	return out, nil
}

// guarded turns a panic into the error of this call alone: outside the request's own goroutine it
// would end the process.
func guarded[I, O any](ctx context.Context, in I, do func(context.Context, I) (O, error)) (out O, err error) {
	err = panics.Guard(func() (err error) {
		out, err = do(ctx, in)
		return err
	})
	return out, err
}

func (s *Server) claim(ctx context.Context, c registry.ClaimRequest) (registry.Claim, error) {
	if err := s.mayServe(ctx, c.Stage); err != nil {
		return registry.Claim{}, err
	}
	c.Token = s.worker(ctx)
	return s.Registry.Claim(ctx, c)
}

// renewAttempts serves registry.Working's Renew. A worker says which stages it serves, for which
// the relay then rings: no other than its token's.
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

// reserveRoom serves registry.Working's Reserve. A worker measures what the staging volume has, and
// the Registry does, too: whoever says that there is more, or no end of it, could promise itself
// what others need.
func (s *Server) reserveRoom(ctx context.Context, in with[registry.Reservation]) error {
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

func (s *Server) awaitWithdrawn(ctx context.Context, in waiting) (taken, error) {
	ctx, cancel := s.Until(ctx, min(max(in.Wait, 0), mostWait))
	defer cancel()
	in.Token = s.worker(ctx)
	leases, next, err := s.Registry.Withdrawn(ctx, in.WithdrawnQuery)
	return taken{Taken: leases, Next: next}, err
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
