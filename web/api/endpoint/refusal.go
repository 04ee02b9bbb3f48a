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

// Bounds on the refusals that become events of their own. A flood of bad tokens must not fill the
// disk: beyond them, refusals are counted, and the count is written once a minute.
const (
	refusedEach = 20  // a minute from one address
	refusedAll  = 100 // a minute from all
	refusedFor  = time.Minute
	refusedTime = 2 * time.Second // to write one
)

// refusals decides which refusals are written one by one. It has no goroutine: a refusal is written
// by the request that was refused, and a count by whichever request comes first after its minute.
type refusals struct {
	mu      sync.Mutex
	since   time.Time
	written int
	from    map[string]int               // written, by address
	more    map[string]*registry.Refusal // not written: the last of its address, with how many there were
	rest    registry.Refusal             // those of further addresses
}

// next notes a refusal, unless it is nil, and returns what is to be written now.
func (n *refusals) next(now time.Time, r *registry.Refusal) (write []registry.Refusal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.since) >= refusedFor || now.Before(n.since) {
		write = n.turn(now)
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

// turn begins another minute, and returns what was counted in the last.
func (n *refusals) turn(now time.Time) (counted []registry.Refusal) {
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

// isRefusal says whether an answer refuses somebody something, rather than tell of a mistake: who
// they are, what they may, or what may be done to an item as it is.
func isRefusal(p *wire.Problem) bool {
	return p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden ||
		p.Code == wire.CodeTransition || p.Code == wire.CodeLastAdmin || p.Code == wire.CodeTooManyAttempts || p.Code == wire.CodeMailLimit
}

// notable says whether an answer is to become an event. What a process of ours is refused as an act
// of somebody is that process's to note, which answers him: by way of the contract, too. That the
// process itself may not ask is not.
func (s *Server) notable(r *http.Request, p *wire.Problem) bool {
	return isRefusal(p) && (WorkerMethod(r) == "" || p.Status != http.StatusConflict)
}

// refused makes an event of a refusal, within the bounds. The event is there when the answer is.
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

// Note writes what is due of refusals; r is nil when there is no new one.
func (s *Server) Note(ctx context.Context, r *registry.Refusal) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusedTime)
	defer cancel()
	for _, due := range s.refusals.next(s.Now(), r) {
		if err := s.registry.Refused(ctx, due); err != nil {
			// The refusal stands in the log; that it is no event must not change the answer.
			s.Log.WarnContext(ctx, "refusal was not recorded", "request", due.RequestID, "err", err)
		}
	}
}
