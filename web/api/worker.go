package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/tracing"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/function"
	"github.com/holdfast/holdfast/web/protocol"
)

// workerRoute serves the workers' protocol, which is no part of the specification. Admins may call
// it too.
func (s *server) workerRoute(staging storage.Store) {
	server := &protocol.Server{
		Registry: tracedAttempts{s.registry}, Fail: s.Fail, Problem: s.Problem, Until: s.Until,
		Token:  func(ctx context.Context) registry.Token { return access.Of(ctx).Token },
		Permit: func(ctx context.Context, method string) error { return s.Permit(ctx, access.Worker(method)) },
		Staging: func(ctx context.Context) (int64, error) {
			space, err := staging.Space(ctx)
			if errors.Is(err, storage.ErrUnlimited) {
				return 0, nil
			}
			return space.Total, err
		},
	}
	s.HandleFunc("POST "+protocol.Path+"{method}", func(w http.ResponseWriter, r *http.Request) {
		if err := protocol.Speaks(r); err != nil { // before the method: a newer worker may call one that is not known here
			s.Fail(w, r, err)
			return
		}
		name := endpoint.WorkerMethod(r)
		if name == "" {
			s.Fail(w, r, endpoint.NotFound("%s is not a method of the workers' protocol; check that Registry and worker have the same version", r.URL.Path))
			return
		}
		noteRoute(r.Context(), protocol.Path+name)
		if err := s.Permit(r.Context(), access.Worker(name)); err != nil {
			s.Fail(w, r, err)
			return
		}
		arguments, err := io.ReadAll(r.Body) // bounded has already read it
		if err != nil {
			s.Fail(w, r, fmt.Errorf("read the arguments of %s: %w", name, err))
			return
		}
		server.Serve(w, r, name, arguments)
	})
}

// tracedAttempts is a Registry that makes the spans of attempts which programs with functions and
// processes settle. Holdfast's own workers make theirs.
type tracedAttempts struct{ protocol.Registry }

// Settle implements registry.Working.
func (r tracedAttempts) Settle(ctx context.Context, s registry.Settlement) (registry.Verdict, error) {
	if !tracing.On() || !access.Of(ctx).Token.Serves(registry.Families()) {
		return r.Registry.Settle(ctx, s)
	}
	it, read := r.Item(ctx, s.Lease.ItemID)
	v, err := r.Registry.Settle(ctx, s)
	if read == nil && err == nil && it.Stage.Function() != "" && it.Status == registry.Running && it.Attempt == s.Lease.N { // no repeat of the request
		function.Trace(ctx, it, s)
	}
	return v, err
}
