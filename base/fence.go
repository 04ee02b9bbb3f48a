package base

import (
	"context"
	"sync"
	"time"
)

// fence is a worker's own view of its claim (R15): held until a moment of the monotonic clock that
// each answered renewal moves on, and gone for good when that passes or when the Registry says so.
// It needs no answer from anybody, so that a worker that is cut off stops before its successor
// starts.
type fence struct {
	cancel context.CancelCauseFunc // ends the step

	mu    sync.Mutex
	until time.Time
	gone  bool
	timer *time.Timer
}

// newFence returns a fence that is held until the given moment. Its owner calls close when the
// attempt is over.
func newFence(until time.Time, cancel context.CancelCauseFunc) *fence {
	f := &fence{cancel: cancel, until: until}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timer = time.AfterFunc(time.Until(until), f.expire)
	return f
}

// extend moves the end of the claim on; a claim that is gone stays gone.
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

// lose gives the claim up and ends the step. It may be called at any time and again.
func (f *fence) lose() {
	f.close()
	f.cancel(errLost)
}

// close ends the watch without a word to the step, which has returned already. From now on the
// claim counts as gone.
func (f *fence) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	f.timer.Stop()
}

// held tells whether the claim is held at this moment. It looks at the clock itself: a process that
// was stopped for a while may ask before its timer has fired.
func (f *fence) held() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.gone && time.Now().Before(f.until)
}
