package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/function"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/wire"
)

// Limits on the requests of one token at any time in this process. Most requests of a worker have a
// few KiB; each of its processes waits with one long poll.
const (
	mostBodies   = 4 * protocol.MaxBody // bytes of bodies
	leastBody    = 4 << 10              // the least that a body counts
	mostStreams  = 100                  // of events
	mostListened = 1000                 // long polls of workers for withdrawn attempts
	mostAwaiting = 2000                 // claims and renewals of programs that serve functions, see [function.Waits]
)

// shares counts how much of something each holder has.
type shares struct {
	mu    sync.Mutex
	held  map[string]int64
	freed chan struct{} // closed when a share is returned
}

// take takes n of a holder's share of most. With patience it waits until that much is free;
// without, it returns at once. giveBack is nil if it took nothing.
func (s *shares) take(ctx context.Context, holder string, n, most int64, patience bool) (giveBack func()) {
	for {
		s.mu.Lock()
		if s.held == nil {
			s.held = map[string]int64{}
		}
		if s.held[holder]+n <= most {
			s.held[holder] += n
			s.mu.Unlock()
			return sync.OnceFunc(func() { s.giveBack(holder, n) })
		}
		if s.freed == nil {
			s.freed = make(chan struct{})
		}
		freed := s.freed
		s.mu.Unlock()
		if !patience {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *shares) giveBack(holder string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[holder] -= n; s.held[holder] <= 0 {
		delete(s.held, holder)
	}
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// shared prevents one token's requests from using all memory and connections. Their bodies wait for
// a share, and the number of long polls and streams is limited. Further requests get 503.
func (s *server) shared(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := access.Of(r.Context()).Token.ID
		refuse := func(what string) {
			s.Fail(w, r, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeUnavailable, fmt.Sprintf(
				"%s; try again when some of them have ended", what)))
		}
		if most, waits := waitsFor(r); waits {
			giveBack := s.waiting.take(r.Context(), fmt.Sprint(most, " ", token), 1, most, false)
			if giveBack == nil {
				refuse(fmt.Sprintf("%d requests of this token are already waiting", most))
				return
			}
			defer giveBack()
		}
		if !bringsFile(r) {
			size := r.ContentLength
			if bound := s.mostBody(r); size < 0 || size > bound {
				size = bound
			}
			ctx, cancel := context.WithTimeout(r.Context(), bodyTime)
			giveBack := s.bodies.take(ctx, token, max(size, leastBody), mostBodies, true)
			cancel()
			if giveBack == nil {
				refuse(fmt.Sprintf("the bodies of this token's requests already use %d MiB", mostBodies>>20))
				return
			}
			defer giveBack()
		}
		next.ServeHTTP(w, r)
	})
}

// waitsFor reports whether a request stays open until something happens, and how many such requests
// a token may have.
func waitsFor(r *http.Request) (most int64, waits bool) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == wire.Base+"/events":
		return mostStreams, true
	case r.Method == http.MethodGet && r.URL.Query().Has("wait"):
		return mostListened, true
	case endpoint.WorkerMethod(r) == "withdrawn":
		return mostListened, true
	case function.Waits(r):
		return mostAwaiting, true
	}
	return 0, false
}
