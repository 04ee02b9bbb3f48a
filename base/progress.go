package base

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Titles of the two measures that stand for an item's transfer as a whole: an item's done_bytes and
// done_files are taken from them.
const (
	TransferredBytes = "bytes transferred"
	TransferredFiles = "files transferred"
)

// Progress is one measure of a running step. Its methods are cheap enough for every buffer that is
// copied, may be called concurrently, and do nothing after the step is over. News travels with the
// next renewal of the claim. A step is stuck when none of its measures moves for its StuckAfter.
type Progress struct {
	title, unit string
	track       *track
	pos, end    atomic.Int64
	kept        atomic.Bool
}

// Kept says that what is counted is not done again: the next attempt goes on where this one stands.
// People are told so. It returns the measure itself.
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

// Set moves the position to pos: where a resumed step goes on, for instance. Setting it to where it
// is is no progress.
func (p *Progress) Set(pos int64) {
	if p.pos.Swap(pos) != pos {
		p.track.moved()
	}
}

// SetEnd tells how far the position will go; -1, which is also the value before the first call,
// means unknown.
func (p *Progress) SetEnd(end int64) {
	if p.end.Swap(end) != end {
		p.track.moved()
	}
}

// Position is where the measure stands.
func (p *Progress) Position() int64 { return p.pos.Load() }

// Reader returns a reader of r that moves the position by what it reads.
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
	last    atomic.Int64 // when something moved last: nanoseconds since started
	moves   atomic.Int64 // how often something moved

	mu       sync.Mutex
	measures []*Progress // in the order they were asked for
}

func newTrack() *track { return &track{started: time.Now()} }

func (t *track) moved() {
	t.last.Store(int64(time.Since(t.started)))
	t.moves.Add(1)
}

// idle is how long nothing has moved.
func (t *track) idle() time.Duration { return time.Since(t.started) - time.Duration(t.last.Load()) }

// measure returns the measure of a title, the same one for the same title.
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

// snapshot returns every measure as it stands; nil when there is none.
func (t *track) snapshot() []registry.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []registry.Progress
	for _, p := range t.measures {
		out = append(out, registry.Progress{Title: p.title, Unit: p.unit, Position: p.pos.Load(), End: p.end.Load(), Kept: p.kept.Load()})
	}
	return out
}

// position is where the measure of a title stands; -1 when there is none.
func position(measures []registry.Progress, title string) int64 {
	for _, p := range measures {
		if p.Title == title {
			return p.Position
		}
	}
	return -1
}
