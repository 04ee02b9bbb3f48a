package main

import (
	"context"
	"sync/atomic"
	"time"
)

// sending shows how much of an upload has gone while it goes.
type sending struct {
	name   string
	size   int64
	sent   atomic.Int64
	told   atomic.Int64 // 1 more than what had been sent when trouble was told of
	begun  time.Time
	screen display
	meter  meter
}

// sendingEvery is the time between looks at an upload.
const sendingEvery = 500 * time.Millisecond

// troubled tells of what keeps the upload from going on, once until it goes on.
func (s *sending) troubled(tell func()) {
	if at := s.sent.Load() + 1; s.told.Swap(at) != at {
		tell()
	}
}

// watch shows how far the upload is until ctx ends. What is sent within a moment is not shown at all.
func (s *sending) watch(ctx context.Context) {
	tick := time.NewTicker(sendingEvery)
	defer tick.Stop()
	shown := false
	for {
		select {
		case <-ctx.Done():
			if shown {
				now := time.Now()
				s.screen.done(now, s.picture(now))
			}
			return
		case now := <-tick.C:
			shown = true
			s.screen.show(now, s.picture(now))
		}
	}
}

func (s *sending) picture(now time.Time) picture {
	v := view{known: true, all: true, bytes: s.size, doneBytes: s.sent.Load(), elapsed: now.Sub(s.begun)}
	v.rate = s.meter.add(now, v.doneBytes)
	return picture{line: v.sendLine(s.name)}
}
