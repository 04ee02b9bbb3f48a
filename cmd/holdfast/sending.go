package main

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// sending shows how much of an upload has gone while it goes.
type sending struct {
	name   string
	size   int64
	sent   atomic.Int64
	begun  time.Time
	screen display
	meter  meter
}

// sendingEvery is the time between looks at an upload.
const sendingEvery = 500 * time.Millisecond

// reader counts what is read through it.
func (s *sending) reader(r io.Reader) io.Reader { return &countingReader{r: r, n: &s.sent} }

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

type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

// Read implements io.Reader.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
