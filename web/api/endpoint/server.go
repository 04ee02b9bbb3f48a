package endpoint

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/shortid"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/wire"
)

// MaxBody bounds the body of every request but uploads, in bytes.
const MaxBody = 1 << 20

// Options configure a Server. The zero value is enough for a specification.
type Options struct {
	Registry registry.TokenKeeper // not limited to a caller
	IDs      *shortid.Completer   // completes short ids
	Access   *access.Table
	Log      *slog.Logger
	Now      func() time.Time
	Done     <-chan struct{} // closed when the process begins to stop; nil: never
}

// Server is what all operations share. Its only changing state are the counts of refusals.
type Server struct {
	Log  *slog.Logger
	Now  func() time.Time
	Done <-chan struct{}

	registry registry.TokenKeeper
	ids      *shortid.Completer
	access   *access.Table
	refusals refusals
	mux      *http.ServeMux
	api      huma.API
}

// New returns a Server without operations.
func New(o Options) *Server {
	s := &Server{Log: o.Log, Now: o.Now, Done: o.Done, registry: o.Registry, ids: o.IDs, access: o.Access, mux: http.NewServeMux()}
	s.api = s.newAPI(s.mux)
	return s
}

// Mux returns the handler of the operations.
func (s *Server) Mux() *http.ServeMux { return s.mux }

// HandleFunc serves a pattern of http.ServeMux without huma. The pattern's path is below wire.Base.
func (s *Server) HandleFunc(pattern string, serve http.HandlerFunc) {
	method, path, _ := strings.Cut(pattern, " ")
	s.mux.HandleFunc(method+" "+wire.Base+path, serve)
}

// Permit returns a problem unless the caller may call the operation.
func (s *Server) Permit(ctx context.Context, operation string) error {
	return s.access.Permit(ctx, operation)
}

// Whole completes a short id; see [shortid.Completer].
func (s *Server) Whole(ctx context.Context, kind, location, text string) (string, error) {
	return s.ids.Whole(ctx, kind, location, text)
}

// Until returns a context that ends after d, with ctx, or when the process begins to stop.
func (s *Server) Until(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	if s.Done != nil {
		go func() {
			select {
			case <-s.Done:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// Stopping reports whether the process has begun to stop.
func (s *Server) Stopping() bool {
	select {
	case <-s.Done:
		return true
	default:
		return false
	}
}

// WorkerMethod returns the method of the workers' protocol that a request calls, or "".
func WorkerMethod(r *http.Request) string {
	path, ok := strings.CutPrefix(r.URL.Path, wire.Base)
	if !ok || r.Method != http.MethodPost {
		return ""
	}
	return protocol.Name(path)
}
