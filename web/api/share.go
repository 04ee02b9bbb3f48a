package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/wire"
)

// What the requests of one token hold at most at once in this process. A worker sends some KiB in
// most requests, and waits for news with one for each of its processes.
const (
	mostBodies   = 4 * protocol.MaxBody // bytes of bodies
	leastBody    = 4 << 10              // what each of them counts at least
	mostStreams  = 100                  // of events
	mostListened = 1000                 // workers that wait for news of withdrawn attempts
)

// shares count what each holder has of something.
type shares struct {
	mu    sync.Mutex
	held  map[string]int64
	freed chan struct{} // closed when something was given back
}

// take takes n of a holder's share of most, or waits until it has that many left. Without patience
// it does not wait. giveBack is nil when it took nothing.
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

// shared keeps the requests of one token from taking the memory and the connections of all: their
// bodies take turns for a share, and of those that wait for events or news there is a number at
// most. What is beyond is answered with 503.
func (s *server) shared(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := access.Of(r.Context()).Token.ID
		refuse := func(what string) {
			s.Fail(w, r, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeUnavailable, fmt.Sprintf(
				"%s; try again later, when some of the token's requests have ended", what)))
		}
		if most, waits := waitsFor(r); waits {
			giveBack := s.waiting.take(r.Context(), fmt.Sprint(most, " ", token), 1, most, false)
			if giveBack == nil {
				refuse(fmt.Sprintf("%d requests of this token wait for news already", most))
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
				refuse(fmt.Sprintf("other requests of this token hold %d MiB of bodies", mostBodies>>20))
				return
			}
			defer giveBack()
		}
		next.ServeHTTP(w, r)
	})
}

// waitsFor says whether a request stays open until something happens, and how many such a token may
// have.
func waitsFor(r *http.Request) (most int64, waits bool) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == wire.Base+"/events":
		return mostStreams, true
	case endpoint.WorkerMethod(r) == "withdrawn":
		return mostListened, true
	}
	return 0, false
}
