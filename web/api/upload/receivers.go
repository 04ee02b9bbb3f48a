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

// receivers are the uploads on their way through this process: who sends at this moment, and which
// receivers stay open between requests.
type receivers struct {
	mu      sync.Mutex
	parked  map[string]*parkedReceiver
	order   []*parkedReceiver // longest ago first
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
			rc.letGo()
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
		oldest.letGo()
	}
}

// remove says whether p was parked until now.
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

// unpark returns the receiver of an upload as it was just taken, or nil: there is none, or others
// have been at the upload since.
func (r *receivers) unpark(in registry.Incoming) *receiver {
	r.mu.Lock()
	p := r.parked[in.ID]
	r.mu.Unlock()
	if p == nil || !r.remove(p) {
		return nil
	}
	if p.in.N != in.N-1 || p.size != in.Offset || p.in.Offset != in.Offset {
		p.letGo()
		return nil
	}
	p.in = in
	return p.receiver
}

// drop ends the receiver of an upload that was given up.
func (r *receivers) drop(id string) {
	r.mu.Lock()
	p := r.parked[id]
	r.mu.Unlock()
	if p != nil && r.remove(p) {
		p.letGo()
	}
}

// cut ends the request that brings bytes of an upload.
func (r *receivers) cut(id string) {
	r.mu.Lock()
	from := r.senders[id]
	r.mu.Unlock()
	if from != nil {
		from.hurry(0)
	}
}

// Where two want to send the same upload, the one that is at it goes on as long as bytes come.
const (
	quiet     = 2 * time.Second  // without a byte, while another one waits: the connection is taken for dead
	waitsMost = 10 * time.Second // then the other one is sent away, to come again
)

// sender is a request that brings bytes of an upload.
type sender struct {
	control *http.ResponseController
	mu      sync.Mutex
	idle    time.Duration // how long it may bring nothing
	resting bool          // all of its body is here
}

// await gives the sender time for its next bytes. A deadline that cannot be set is the server's own
// choice.
func (f *sender) await() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.control.SetReadDeadline(time.Now().Add(f.idle))
}

// hurry lets the sender be quiet for no longer than this.
func (f *sender) hurry(idle time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resting {
		return
	}
	f.idle = min(f.idle, idle)
	_ = f.control.SetReadDeadline(time.Now().Add(f.idle))
}

// rest ends the time that the sender has; its body is over.
func (f *sender) rest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resting = true
	_ = f.control.SetReadDeadline(time.Time{})
}

// newSender is a request that is about to bring bytes.
func (s *Service) newSender(w http.ResponseWriter) *sender {
	return &sender{control: http.NewResponseController(w), idle: s.Idle}
}

// turn waits until nobody else in this process is at an upload, and makes f, when it is not nil,
// the one who sends. A sender whose connection is dead is not waited for; while one goes on
// sending, the answer is a problem of status 423.
func (s *Service) turn(ctx context.Context, id string, f *sender) (done func(), err error) {
	r := s.receivers
	r.mu.Lock()
	if other := r.senders[id]; other != nil && f != nil {
		other.hurry(quiet)
	}
	r.mu.Unlock()
	waiting := ctx
	if f != nil {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, waitsMost)
		defer cancel()
	}
	release, err := s.Take(waiting, id)
	switch {
	case err != nil && ctx.Err() == nil:
		return nil, wire.NewProblem(http.StatusLocked, wire.CodeBusy, fmt.Sprintf("another request is bringing bytes of upload %s; try again when it has ended", id))
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
