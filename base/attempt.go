package base

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// attempt is a claim that this process holds.
type attempt struct {
	item    *Item
	station *station
	slot    *slot
	message Message
	fence   *fence
	cancel  context.CancelCauseFunc // ends the step

	mu         sync.Mutex
	renewed    time.Time // when the last answered claim or renewal was sent
	sentMoves  int64     // the progress that the Registry knows
	touched    time.Time // the message
	isSettling bool
}

// settling marks the attempt as being settled: from now on only the Registry's answer decides
// whether the claim holds. It returns false if the claim is already gone.
func (a *attempt) settling() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.fence.held() {
		return false
	}
	a.isSettling = true
	return true
}

// lost records that the Registry reports the claim as gone. During the settlement it changes
// nothing: the settlement itself may have ended the claim.
func (a *attempt) lost() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isSettling {
		a.fence.lose()
	}
}

// renewalDue reports whether a renewal is needed: a third of the lease has passed, or a while with
// new progress or lines of a log. The settlement of a short step reports these.
func (a *attempt) renewalDue(now time.Time, every time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := now.Sub(a.renewed)
	return since >= every || since >= min(progressEvery, every) && (a.item.track.moves.Load() != a.sentMoves || a.item.log.waiting())
}

// noteRenewal records a renewal that was sent at sent and answered. While there is progress, it
// also touches the message, so that the queue does not time it out.
func (a *attempt) noteRenewal(sent time.Time, moves int64, log []registry.LogLine, s *session) {
	if len(log) > 0 {
		a.item.log.sent(log[len(log)-1].Seq)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	advanced := moves != a.sentMoves
	a.renewed, a.sentMoves = sent, moves
	a.fence.extend(sent.Add(s.lease - s.margin))
	if advanced && !a.isSettling && sent.Sub(a.touched) >= min(touchEvery, s.lease/3) {
		a.touched = sent
		a.message.Touch()
	}
}

// beat returns the attempt's part of a renewal, and the number of moves that it covers.
func (a *attempt) beat() (registry.Beat, int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.item.beat(a.sentMoves)
}
