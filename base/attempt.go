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
	message Message
	fence   *fence
	cancel  context.CancelCauseFunc // ends the step

	mu         sync.Mutex
	renewed    time.Time // when the last answered claim or renewal was sent
	sentMoves  int64     // the progress that the Registry has been told
	touched    time.Time // the message
	isSettling bool
}

// settling begins the settlement: from now on only the Registry's answer to that decides. false
// when the claim is gone already.
func (a *attempt) settling() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.fence.held() {
		return false
	}
	a.isSettling = true
	return true
}

// lost notes the Registry's word that the claim is gone. While it is being settled, that may be our
// own doing.
func (a *attempt) lost() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isSettling {
		a.fence.lose()
	}
}

// due tells whether the Registry should hear of the attempt: because a third of its lease is gone,
// or because it has progress to show.
func (a *attempt) due(now time.Time, every time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return now.Sub(a.renewed) >= every || a.item.track.moves.Load() != a.sentMoves
}

// told notes a renewal that was sent at sent and answered. The message is kept from its time-out
// while there is progress.
func (a *attempt) told(sent time.Time, moves int64, s *session) {
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

// news is what a renewal tells of the attempt, with the progress that it stands for.
func (a *attempt) news() (registry.Beat, int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.item.beat(a.sentMoves)
}
