package queue

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Size of a chart in its own units; the page stretches it.
const (
	chartWidth  = 600
	chartHeight = 100
)

// charts are the figures of a span, drawn.
type charts struct {
	registry.Throughput

	Spans  []registry.ThroughputSpan
	Charts []chart
	Lines  []line // of the table behind them, newest first
	// Gaps says that some of the span was not counted.
	Gaps bool
}

// Middle is the time in the middle of the span.
func (c charts) Middle() time.Time { return c.From.Add(c.To.Sub(c.From) / 2) }

// Days says that times are shown with their day.
func (c charts) Days() bool { return c.Span == registry.ThroughputMonth }

// chart is one figure over time.
type chart struct {
	Name        string
	Class       string // of its colour
	Size        bool   // the figures are bytes
	Sum         bool   // Total is a sum; otherwise the latest
	Total, Most int64  // -1: not known
	Whole       string // path of the complete intervals
	Part        string // path of the one that is not complete
	Gap         string // path of what was not counted
}

// line is a row of the table: an interval, or several that were not counted.
type line struct {
	registry.ThroughputPoint

	End    time.Time
	Absent bool
}

// Waits is how many jobs waited; -1: not known.
func (l line) Waits() int64 { return known(l.Waiting) }

// Runs is how many jobs ran; -1: not known.
func (l line) Runs() int64 { return known(l.Running) }

func known(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// draw draws the charts of a span.
func draw(t registry.Throughput) charts {
	c := charts{Throughput: t, Spans: registry.ThroughputSpans()}
	step := time.Duration(t.Step) * time.Second
	n := 0
	if step > 0 {
		n = int(t.To.Sub(t.From) / step)
	}
	at := make([]*registry.ThroughputPoint, n)
	for i := range t.Rows {
		if k := int(t.Rows[i].At.Sub(t.From) / step); k >= 0 && k < n {
			at[k] = &t.Rows[i]
		}
	}
	// The interval that has only begun is no gap.
	last := n - 1
	for i := n - 1; i >= 0; i-- {
		from := t.From.Add(time.Duration(i) * step)
		switch {
		case at[i] != nil:
			c.Lines = append(c.Lines, line{ThroughputPoint: *at[i], End: from.Add(step)})
		case i == last:
		case len(c.Lines) > 0 && c.Lines[len(c.Lines)-1].Absent:
			c.Gaps, c.Lines[len(c.Lines)-1].At = true, from
		default:
			c.Gaps = true
			c.Lines = append(c.Lines, line{ThroughputPoint: registry.ThroughputPoint{At: from}, End: from.Add(step), Absent: true})
		}
	}
	count := func(get func(*registry.ThroughputPoint) int64) func(*registry.ThroughputPoint) *int64 {
		return func(p *registry.ThroughputPoint) *int64 { n := get(p); return &n }
	}
	partial := func(i int) bool { return t.From.Add(time.Duration(i+1) * step).After(t.NotedTo) }
	c.Charts = []chart{
		plot(chart{Name: "preserved", Class: "good", Sum: true}, at, partial, count(func(p *registry.ThroughputPoint) int64 { return p.Preserved })),
		plot(chart{Name: "bytes", Class: "good", Sum: true, Size: true}, at, partial, count(func(p *registry.ThroughputPoint) int64 { return p.Bytes })),
		plot(chart{Name: "waiting", Class: "active"}, at, partial, func(p *registry.ThroughputPoint) *int64 { return p.Waiting }),
		plot(chart{Name: "failed", Class: "bad", Sum: true}, at, partial, count(func(p *registry.ThroughputPoint) int64 { return p.Failed })),
	}
	return c
}

// plot draws one figure as bars. A figure that is not known has none.
func plot(c chart, at []*registry.ThroughputPoint, partial func(int) bool, get func(*registry.ThroughputPoint) *int64) chart {
	var sum int64
	c.Total = -1
	for _, p := range at {
		if p == nil || get(p) == nil {
			continue
		}
		n := *get(p)
		sum += n
		c.Most, c.Total = max(c.Most, n), n
	}
	if c.Sum {
		c.Total = sum
	}
	var whole, part, gap strings.Builder
	width := float64(chartWidth) / float64(max(1, len(at)))
	for i, p := range at {
		x := float64(i) * width
		if p == nil {
			if i < len(at)-1 {
				_, _ = fmt.Fprintf(&gap, "M%.1f 0h%.1fv%dh-%.1fz", x, width, chartHeight, width)
			}
			continue
		}
		v := get(p)
		if v == nil || *v == 0 || c.Most == 0 {
			continue
		}
		height := max(1.5, float64(*v)/float64(c.Most)*chartHeight)
		into := &whole
		if partial(i) {
			into = &part
		}
		_, _ = fmt.Fprintf(into, "M%.1f %dv-%.1fh%.1fv%.1fz", x+width*0.1, chartHeight, height, width*0.8, height)
	}
	c.Whole, c.Part, c.Gap = whole.String(), part.String(), gap.String()
	return c
}
