package base

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
)

// Titles of the two measures of an item's whole transfer, from which its done_bytes and done_files
// are taken.
const (
	TransferredBytes = "bytes transferred"
	TransferredFiles = "files transferred"
)

// Progress is one measure of a running step. Its methods may be called concurrently, are cheap
// enough for every buffer that is copied, and do nothing after the step is over. The next renewal
// of the claim reports it. A step is stuck if none of its measures moves for its StuckAfter.
type Progress struct {
	title, unit string
	track       *track
	start       atomic.Int64
	pos, end    atomic.Int64
	kept        atomic.Bool
}

// Kept marks what is counted as kept: the next attempt continues where this one stops, and people
// see that. It returns the measure itself.
func (p *Progress) Kept() *Progress {
	p.kept.Store(true)
	return p
}

// Add moves the position by n.
func (p *Progress) Add(n int64) {
	if n != 0 {
		p.pos.Add(n)
		p.track.moved()
	}
}

// Set moves the position to pos, for instance to where a resumed step continues. Setting the same
// position again is no progress.
func (p *Progress) Set(pos int64) {
	if p.pos.Swap(pos) != pos {
		p.track.moved()
	}
}

// SetStart sets where the step begins to count, and moves the position there: a step that goes on
// with the second half of its work starts in the middle. The initial start is 0.
func (p *Progress) SetStart(start int64) {
	p.start.Store(start)
	p.Set(start)
}

// SetEnd sets the position at which the measure is complete. -1, the initial value, means unknown.
func (p *Progress) SetEnd(end int64) {
	if p.end.Swap(end) != end {
		p.track.moved()
	}
}

// Position returns the current position.
func (p *Progress) Position() int64 { return p.pos.Load() }

// Reader returns a reader of r that adds the bytes read to the position.
func (p *Progress) Reader(r io.Reader) io.Reader { return &counted{r, p} }

type counted struct {
	io.Reader
	progress *Progress
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.progress.Add(int64(n))
	return n, err
}

// track is all the progress of one attempt.
type track struct {
	started time.Time
	last    atomic.Int64 // when a measure last moved: nanoseconds since started
	moves   atomic.Int64 // how often a measure moved

	mu       sync.Mutex
	measures []*Progress // in the order of their first use
}

func newTrack() *track { return &track{started: time.Now()} }

func (t *track) moved() {
	t.last.Store(int64(time.Since(t.started)))
	t.moves.Add(1)
}

// idle returns how long no measure has moved.
func (t *track) idle() time.Duration { return time.Since(t.started) - time.Duration(t.last.Load()) }

// measure returns the measure of a title, and makes it at the first call.
func (t *track) measure(title, unit string) *Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.measures {
		if p.title == title {
			return p
		}
	}
	p := &Progress{title: title, unit: unit, track: t}
	p.end.Store(-1)
	t.measures = append(t.measures, p)
	return p
}

// count adds the bytes and files of a step that is done to the metrics of its stage.
func (t *track) count(stage string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.measures {
		done := float64(max(0, p.Position()-p.start.Load()))
		switch p.unit {
		case "bytes":
			metrics.StepBytes.Add(done, stage)
		case "files":
			metrics.StepFiles.Add(done, stage)
		}
	}
}

// snapshot returns all measures as they are now; nil if there are none.
func (t *track) snapshot() []registry.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []registry.Progress
	for _, p := range t.measures {
		out = append(out, registry.Progress{Title: p.title, Unit: p.unit, Start: p.start.Load(), Position: p.pos.Load(), End: p.end.Load(), Kept: p.kept.Load()})
	}
	return out
}

// position returns the position of the measure with a title; -1 if there is none.
func position(measures []registry.Progress, title string) int64 {
	for _, p := range measures {
		if p.Title == title {
			return p.Position
		}
	}
	return -1
}
