package base

import (
	"context"
	"sync"
	"time"
)

// fence is a worker's own view of its claim (R15). The claim is held until a moment of the
// monotonic clock. Each answered renewal moves that moment on. When it passes, or when the Registry
// reports the claim as lost, the claim is gone for good. No answer is needed for that: a worker
// that is cut off stops before its successor starts.
type fence struct {
	cancel context.CancelCauseFunc // ends the step

	mu    sync.Mutex
	until time.Time
	gone  bool
	timer *time.Timer
}

// newFence returns a fence that holds until the given moment. The owner calls close when the
// attempt is over.
func newFence(until time.Time, cancel context.CancelCauseFunc) *fence {
	f := &fence{cancel: cancel, until: until}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timer = time.AfterFunc(time.Until(until), f.expire)
	return f
}

// extend moves the end of the claim to until, if that is later. A claim that is gone stays gone.
func (f *fence) extend(until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone || !until.After(f.until) {
		return
	}
	f.until = until
	f.timer.Reset(time.Until(until))
}

func (f *fence) expire() {
	f.mu.Lock()
	left := time.Until(f.until)
	if !f.gone && left > 0 { // it was extended while the timer fired
		f.timer.Reset(left)
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	f.lose()
}

// lose gives up the claim and ends the step. Repeated and concurrent calls are safe.
func (f *fence) lose() {
	f.close()
	f.cancel(errLost)
}

// close stops the timer without cancelling the step, which has already returned. From now on the
// claim counts as gone.
func (f *fence) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	f.timer.Stop()
}

// held reports whether the claim is held now. It compares the clock itself: after a process was
// suspended, the timer may fire late.
func (f *fence) held() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.gone && time.Now().Before(f.until)
}
