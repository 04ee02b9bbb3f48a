package upload

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// receivers are the incoming uploads of this process: the requests that send bytes, and the
// receivers that stay open between requests.
type receivers struct {
	mu      sync.Mutex
	parked  map[string]*parkedReceiver
	order   []*parkedReceiver // oldest first
	senders map[string]*sender
}

type parkedReceiver struct {
	*receiver
	timer *time.Timer
}

func newReceivers() *receivers {
	return &receivers{parked: map[string]*parkedReceiver{}, senders: map[string]*sender{}}
}

// park keeps a receiver open for the sender's next request.
func (r *receivers) park(rc *receiver) {
	p := &parkedReceiver{receiver: rc}
	p.timer = time.AfterFunc(parkedFor, func() {
		if r.remove(p) {
			rc.release()
		}
	})
	r.mu.Lock()
	r.parked[rc.in.ID] = p
	r.order = append(r.order, p)
	var oldest *parkedReceiver
	if len(r.order) > mostParked {
		oldest = r.order[0]
	}
	r.mu.Unlock()
	if oldest != nil && r.remove(oldest) {
		oldest.release()
	}
}

// remove unparks p. It returns false if p was no longer parked.
func (r *receivers) remove(p *parkedReceiver) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parked[p.in.ID] != p {
		return false
	}
	p.timer.Stop()
	delete(r.parked, p.in.ID)
	for i, other := range r.order {
		if other == p {
			r.order = append(r.order[:i:i], r.order[i+1:]...)
			break
		}
	}
	return true
}

// unpark returns the parked receiver of an upload that was just taken. It returns nil if there is
// none, or if another process has written to the upload since.
func (r *receivers) unpark(in registry.Incoming) *receiver {
	r.mu.Lock()
	p := r.parked[in.ID]
	r.mu.Unlock()
	if p == nil || !r.remove(p) {
		return nil
	}
	if p.in.N != in.N-1 || p.size != in.Offset || p.in.Offset != in.Offset {
		p.release()
		return nil
	}
	p.in = in
	return p.receiver
}

// drop ends the receiver of a dropped upload.
func (r *receivers) drop(id string) {
	r.mu.Lock()
	p := r.parked[id]
	r.mu.Unlock()
	if p != nil && r.remove(p) {
		p.release()
	}
}

// cut ends the request that sends bytes of an upload.
func (r *receivers) cut(id string) {
	r.mu.Lock()
	from := r.senders[id]
	r.mu.Unlock()
	if from != nil {
		from.limitIdle(0)
	}
}

// If a second request wants to send bytes of an upload, the first one goes on as long as bytes
// come.
const (
	takeoverIdle = 2 * time.Second  // without a byte, while another request waits: the connection counts as dead
	takeoverWait = 10 * time.Second // then the waiting request is refused, to be retried
)

// sender is a request that sends bytes of an upload.
type sender struct {
	control  *http.ResponseController
	mu       sync.Mutex
	idle     time.Duration // how long it may send nothing
	bodyRead bool          // its whole body has been read
}

// await gives the sender time for its next bytes. If no deadline can be set, the server's own
// applies.
func (f *sender) await() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.control.SetReadDeadline(time.Now().Add(f.idle))
}

// limitIdle shortens the time that the sender may send nothing.
func (f *sender) limitIdle(idle time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bodyRead {
		return
	}
	f.idle = min(f.idle, idle)
	_ = f.control.SetReadDeadline(time.Now().Add(f.idle))
}

// finishBody removes the sender's deadline: its body has been read.
func (f *sender) finishBody() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bodyRead = true
	_ = f.control.SetReadDeadline(time.Time{})
}

// newSender returns the sender of a request.
func (s *Service) newSender(w http.ResponseWriter) *sender {
	return &sender{control: http.NewResponseController(w), idle: s.Idle}
}

// acquire locks an upload within this process. If f is not nil, it becomes the upload's sender.
// acquire does not wait for a sender whose connection is dead; if the present sender goes on
// sending, it returns a problem with status 423.
func (s *Service) acquire(ctx context.Context, id string, f *sender) (done func(), err error) {
	r := s.receivers
	r.mu.Lock()
	if other := r.senders[id]; other != nil && f != nil {
		other.limitIdle(takeoverIdle)
	}
	r.mu.Unlock()
	waiting := ctx
	if f != nil {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, takeoverWait)
		defer cancel()
	}
	release, err := s.Take(waiting, id)
	switch {
	case err != nil && ctx.Err() == nil:
		return nil, wire.NewProblem(http.StatusLocked, wire.CodeBusy, fmt.Sprintf("another request is sending bytes of upload %s; try again when it has ended", id))
	case err != nil:
		return nil, err
	case f == nil:
		return release, nil
	}
	r.mu.Lock()
	r.senders[id] = f
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		delete(r.senders, id)
		r.mu.Unlock()
		release()
	}, nil
}
