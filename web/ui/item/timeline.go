package item

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Sizes of a timeline, in its own units: it is scaled to the width of the page.
const (
	timelineWidth  = 920
	timelineLabels = 120 // width of the stages' names
	timelineEnd    = 110 // width of what stands behind the bars
	timelineRow    = 26
	timelineTop    = 24
	leastBar       = 4.0
	mostBars       = 300 // attempts that are drawn; the newest
)

// timeline is a drawing of an item's attempts: a row for each stage of its route, so that its height
// does not change, with bars for attempts and thin ones for waiting. A wait that is much longer than
// all work is drawn shorter, with a mark.
type timeline struct {
	Width, Height int
	Left, Right   int // of the bars
	Rows          []timelineStage
	From, To      time.Time
	Shortened     bool // some waits are
	Older         int  // attempts that are not drawn
}

// timelineStage is a row.
type timelineStage struct {
	Stage registry.Stage
	Y     int
	Bars  []timelineBar
	Tries int
	Time  time.Duration // of work
	Wait  time.Duration
}

// timelineBar is an attempt, or a wait before one.
type timelineBar struct {
	X, W    string
	Y, H    int
	Tone    string // that of its outcome; "wait" for a wait
	N       int64  // of the attempt; 0 for a wait
	Span    time.Duration
	Outcome registry.Outcome
	Cut     bool // drawn shorter than it is
}

// spell is a time in which an item was worked on, or waited.
type spell struct {
	stage  registry.Stage
	from   time.Time
	length time.Duration
	weight float64
	run    *registry.Attempt // nil: it waited
	cut    bool
}

// timelineOf draws the attempts, which are in their order; nil if there are none.
func timelineOf(it registry.WorkItem, attempts []registry.Attempt, now time.Time) *timeline {
	if len(attempts) == 0 {
		return nil
	}
	older := max(0, len(attempts)-mostBars)
	begin := it.CreatedAt
	if older > 0 {
		begin = attempts[older].StartedAt
	}
	spells := spellsOf(it, attempts[older:], begin, now)
	t := &timeline{Width: timelineWidth, Left: timelineLabels, Right: timelineWidth - timelineEnd, From: begin, Older: older}
	t.To = spells[len(spells)-1].from.Add(spells[len(spells)-1].length)
	t.Shortened = weigh(spells)
	t.rows(it, spells)
	t.place(spells)
	return t
}

// spellsOf cuts the life of an item into waits and attempts.
func spellsOf(it registry.WorkItem, attempts []registry.Attempt, begin, now time.Time) (all []spell) {
	at := begin
	for i := range attempts {
		a := &attempts[i]
		if wait := a.StartedAt.Sub(at); wait > 0 {
			all = append(all, spell{stage: a.Stage, from: at, length: wait})
		}
		end := now
		if a.FinishedAt != nil {
			end = *a.FinishedAt
		}
		all = append(all, spell{stage: a.Stage, from: a.StartedAt, length: max(0, end.Sub(a.StartedAt)), run: a})
		at = end
	}
	if it.Status == registry.Pending && now.After(at) {
		all = append(all, spell{stage: it.Stage, from: at, length: now.Sub(at)})
	}
	return all
}

// weigh sets how wide each spell is, and reports whether a wait was cut.
func weigh(spells []spell) (cut bool) {
	var work time.Duration
	for _, s := range spells {
		if s.run != nil {
			work += s.length
		}
	}
	most := max(work/3, time.Millisecond)
	for i := range spells {
		s := &spells[i]
		if s.cut = s.run == nil && s.length > most; s.cut {
			cut = true
		}
		s.weight = float64(s.length)
		if s.cut {
			s.weight = float64(most)
		}
	}
	return cut
}

// rows makes a row for each stage.
func (t *timeline) rows(it registry.WorkItem, spells []spell) {
	var stages []registry.Stage
	if route, ok := it.Route(); ok && !route.Functions {
		for _, step := range route.Steps {
			stages = append(stages, step.Stage)
		}
	}
	for _, s := range spells {
		if !slices.Contains(stages, s.stage) {
			stages = append(stages, s.stage)
		}
	}
	for i, stage := range stages {
		t.Rows = append(t.Rows, timelineStage{Stage: stage, Y: timelineTop + i*timelineRow})
	}
	t.Height = timelineTop + len(stages)*timelineRow
}

// place puts the spells into their rows.
func (t *timeline) place(spells []spell) {
	var total float64
	for _, s := range spells {
		total += s.weight
	}
	room := float64(t.Right-t.Left) - leastBar*float64(len(spells))
	x := float64(t.Left)
	for _, s := range spells {
		w := leastBar
		if total > 0 {
			w += max(0, room) * s.weight / total
		}
		if room < 0 {
			w = float64(t.Right-t.Left) / float64(len(spells))
		}
		i := slices.IndexFunc(t.Rows, func(r timelineStage) bool { return r.Stage == s.stage })
		row := &t.Rows[i]
		bar := timelineBar{X: fmt.Sprintf("%.1f", x), W: fmt.Sprintf("%.1f", w), Y: row.Y + 10, H: 4, Tone: "wait", Span: s.length, Cut: s.cut}
		if s.run != nil {
			bar.Y, bar.H, bar.N, bar.Outcome = row.Y+4, 16, s.run.N, s.run.Outcome
			bar.Tone = toneOf(s.run.Outcome)
			row.Tries++
			row.Time += s.length
		} else {
			row.Wait += s.length
		}
		row.Bars = append(row.Bars, bar)
		x += w
	}
}

// toneOf is the tone of an attempt's outcome, as for states.
func toneOf(o registry.Outcome) string {
	switch o {
	case "":
		return "active"
	case registry.OutcomeDone:
		return "good"
	case registry.OutcomeRetry, registry.OutcomeFailed, registry.OutcomeSentBack, registry.OutcomeLost:
		return "bad"
	case registry.OutcomeSnooze, registry.OutcomeReleased, registry.OutcomeWithdrawn:
	}
	return "still"
}

// measure is one measure of a running step, with its rate since the attempt began.
type measure struct {
	registry.Progress

	Share int64         // in percent; -1: unknown
	Rate  int64         // bytes a second, or others a minute; 0: unknown
	Left  time.Duration // 0: unknown
}

// measuresOf returns the measures of an item's running attempt. Those that say nothing yet are left
// out.
func measuresOf(it registry.WorkItem, a registry.Attempt, now time.Time) (all []measure) {
	for _, p := range a.Progress {
		if p.End < 0 && p.Kept {
			switch p.Unit { // what is transferred, whose size the item knows
			case "bytes":
				p.End = it.SizeBytes
			case "files":
				p.End = it.Files
			}
		}
		if p.Position == 0 && p.End < 0 {
			continue
		}
		m := measure{Progress: p, Share: -1}
		done, spent := p.Position-p.Start, now.Sub(a.StartedAt)
		if p.End > 0 {
			m.Share = int64(float64(min(p.Position, p.End)) / float64(p.End) * 100) // no overflow
		}
		if done > 0 && spent >= time.Second {
			rate := float64(done) / spent.Minutes()
			m.Rate = int64(rate)
			if p.Unit == "bytes" {
				m.Rate /= 60
			}
			if p.End > p.Position {
				m.Left = time.Duration(float64(p.End-p.Position) / rate * float64(time.Minute))
			}
		}
		all = append(all, m)
	}
	return all
}
