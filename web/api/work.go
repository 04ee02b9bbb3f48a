package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/wire"
)

// workerOperation is the operation of a method of the workers' protocol, for the access table.
func workerOperation(method string) string { return strings.TrimPrefix(protocol.Path, "/") + method }

// workerMethod is the method of the workers' protocol that a request asks; "" for every other request.
func workerMethod(r *http.Request) string {
	path, ok := strings.CutPrefix(r.URL.Path, wire.Base)
	if !ok || r.Method != http.MethodPost {
		return ""
	}
	return protocol.Name(path)
}

// workerRoute serves the workers' protocol, which is no part of the specification. Admins may ask it, too.
func (s *server) workerRoute(mux *http.ServeMux) {
	server := &protocol.Server{
		Registry: s.registry, Fail: s.fail, Problem: s.problem, Until: s.until,
		Token: func(ctx context.Context) registry.Token { return callOf(ctx).token },
	}
	mux.HandleFunc("POST "+wire.Base+protocol.Path+"{method}", func(w http.ResponseWriter, r *http.Request) {
		name := workerMethod(r)
		if name == "" {
			s.fail(w, r, notFound("workers ask nothing at %s; are Registry and worker of the same version?", r.URL.Path))
			return
		}
		if err := s.permit(r.Context(), workerOperation(name)); err != nil {
			s.fail(w, r, err)
			return
		}
		arguments, err := io.ReadAll(r.Body) // bounded has read it already
		if err != nil {
			s.fail(w, r, fmt.Errorf("read the arguments of %s: %w", name, err))
			return
		}
		server.Serve(w, r, name, arguments)
	})
}

// forbidden says that a token may not do something.
func forbidden(format string, args ...any) *wire.Problem {
	return wire.NewProblem(http.StatusForbidden, wire.CodeForbidden, fmt.Sprintf(format, args...))
}

// answered is a result as register takes it.
func answered[T any](out T, err error) (*output[T], error) {
	if err != nil {
		return nil, err
	}
	return &output[T]{Body: out}, nil
}
