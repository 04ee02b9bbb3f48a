package progress

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
)

// Sending shows the progress of an upload.
type Sending struct {
	name   string
	size   int64
	sent   atomic.Int64
	warned atomic.Int64 // the offset of the last warning, plus 1
	begun  time.Time
	screen terminal.Display
	meter  meter
}

// NewSending returns the display of an upload of size bytes.
func NewSending(a *cli.App, name string, size int64) *Sending {
	return &Sending{name: name, size: size, begun: time.Now(), screen: terminal.NewDisplay(a.Err, a.Quiet || a.JSON)}
}

// sendingEvery is the interval of the display.
const sendingEvery = 500 * time.Millisecond

// Reached sets the number of sent bytes.
func (s *Sending) Reached(offset int64) { s.sent.Store(offset) }

// Troubled calls warn if the upload has stalled, once until it progresses again.
func (s *Sending) Troubled(warn func()) {
	if at := s.sent.Load() + 1; s.warned.Swap(at) != at {
		warn()
	}
}

// Any reports whether any byte was sent.
func (s *Sending) Any() bool { return s.sent.Load() > 0 }

// Watch shows the progress until ctx ends. Short uploads are not shown.
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
