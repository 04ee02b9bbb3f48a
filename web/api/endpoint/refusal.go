package endpoint

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// Bounds on the refusals that become events of their own. A flood of invalid tokens must not fill
// the disk. Refusals beyond the bounds are counted, and the count is written once a minute.
const (
	refusedEach = 20  // per minute and address
	refusedAll  = 100 // per minute
	refusedFor  = time.Minute
	refusedTime = 2 * time.Second // to write one event
)

// refusals decides which refusals become events of their own. It has no goroutine: the refused
// request writes its refusal, and the first request after a minute writes that minute's counts.
type refusals struct {
	mu      sync.Mutex
	since   time.Time
	written int
	from    map[string]int               // number written, by address
	more    map[string]*registry.Refusal // not written: the last one of each address, with their count
	rest    registry.Refusal             // not written, of further addresses
}

// next adds a refusal, unless it is nil, and returns the refusals to write now.
func (n *refusals) next(now time.Time, r *registry.Refusal) (write []registry.Refusal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.since) >= refusedFor || now.Before(n.since) {
		write = n.nextMinute(now)
	}
	if r == nil {
		return write
	}
	host := r.Remote
	switch {
	case n.written < refusedAll && n.from[host] < refusedEach:
		n.written++
		n.from[host]++
		return append(write, *r)
	case n.more[host] != nil || len(n.more) < refusedAll:
		count := int64(1)
		if before := n.more[host]; before != nil {
			count += before.Count
		}
		last := *r
		last.Count = count
		n.more[host] = &last
	default:
		count := n.rest.Count + 1
		n.rest = *r
		n.rest.Count, n.rest.Remote, n.rest.Actor = count, "many", ""
	}
	return write
}

// nextMinute starts another minute and returns the counted refusals of the last.
func (n *refusals) nextMinute(now time.Time) (counted []registry.Refusal) {
	for _, r := range n.more {
		counted = append(counted, *r)
	}
	if n.rest.Count > 0 {
		counted = append(counted, n.rest)
	}
	n.since, n.written, n.rest = now, 0, registry.Refusal{}
	n.from, n.more = map[string]int{}, map[string]*registry.Refusal{}
	return counted
}

// isRefusal reports whether an answer refuses the caller something: for who they are, what they may
// do, or the state of an item. Other problems are mistakes.
func isRefusal(p *wire.Problem) bool {
	return p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden ||
		p.Code == wire.CodeTransition || p.Code == wire.CodeLastAdmin || p.Code == wire.CodeTooManyAttempts || p.Code == wire.CodeMailLimit
}

// notable reports whether an answer must become an event. A conflict in the workers' protocol need
// not: the calling process answers a person and notes the refusal itself. A refusal of the
// process's own token must.
func (s *Server) notable(r *http.Request, p *wire.Problem) bool {
	return isRefusal(p) && (WorkerMethod(r) == "" || p.Status != http.StatusConflict)
}

// refused makes a refusal an event, within the bounds. The event is written before the answer is
// sent.
func (s *Server) refused(r *http.Request, p *wire.Problem) {
	c := access.Of(r.Context())
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	s.Note(r.Context(), &registry.Refusal{
		Actor: c.Token.Name, Operation: r.Method + " " + webserver.Path(r), Code: string(p.Code), Status: p.Status,
		Detail: p.Detail, Remote: host, RequestID: c.RequestID,
	})
}

// Note writes the refusals that are due; r is nil if there is no new one.
func (s *Server) Note(ctx context.Context, r *registry.Refusal) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusedTime)
	defer cancel()
	for _, due := range s.refusals.next(s.Now(), r) {
		if err := s.registry.Refused(ctx, due); err != nil {
			// The log has the refusal; a missing event must not change the answer.
			s.Log.WarnContext(ctx, "writing the event of a refusal failed", "request", due.RequestID, "err", err)
		}
	}
}
