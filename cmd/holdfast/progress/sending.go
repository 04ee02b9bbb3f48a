package progress

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
)

// Sending shows how much of an upload has gone while it goes.
type Sending struct {
	name   string
	size   int64
	sent   atomic.Int64
	told   atomic.Int64 // 1 more than what had been sent when trouble was told of
	begun  time.Time
	screen terminal.Display
	meter  meter
}

// NewSending begins to show the upload of size bytes of what is called name.
func NewSending(a *cli.App, name string, size int64) *Sending {
	return &Sending{name: name, size: size, begun: time.Now(), screen: terminal.NewDisplay(a.Err, a.Quiet || a.JSON)}
}

// sendingEvery is the time between looks at an upload.
const sendingEvery = 500 * time.Millisecond

// Reached notes how many bytes have been sent.
func (s *Sending) Reached(offset int64) { s.sent.Store(offset) }

// Troubled calls tell when the upload has stalled, once until it moves again.
func (s *Sending) Troubled(tell func()) {
	if at := s.sent.Load() + 1; s.told.Swap(at) != at {
		tell()
	}
}

// Any says whether anything has been sent.
func (s *Sending) Any() bool { return s.sent.Load() > 0 }

// Watch shows how far the upload is until ctx ends. It does not show an upload that ends within a
// moment.
func (s *Sending) Watch(ctx context.Context) {
	tick := time.NewTicker(sendingEvery)
	defer tick.Stop()
	shown := false
	for {
		select {
		case <-ctx.Done():
			if shown {
				now := time.Now()
				s.screen.Done(now, s.picture(now))
			}
			return
		case now := <-tick.C:
			shown = true
			s.screen.Show(now, s.picture(now))
		}
	}
}

func (s *Sending) picture(now time.Time) terminal.Picture {
	v := view{known: true, all: true, bytes: s.size, doneBytes: s.sent.Load(), elapsed: now.Sub(s.begun)}
	v.rate = s.meter.add(now, v.doneBytes)
	return terminal.Picture{Line: v.sendLine(s.name)}
}
