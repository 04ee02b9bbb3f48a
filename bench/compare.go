package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// subject is one of the things that are compared. run does the work once and returns the time of
// its measured part.
type subject struct {
	name string
	run  func(ctx context.Context) (time.Duration, error)
}

// timing holds the times of all rounds of a subject, sorted.
type timing []time.Duration

func (t timing) median() time.Duration { return t[len(t)/2] }

// compare runs every subject once per round. Each round starts with another subject, so that none
// always has the idle disk or the warm caches.
func (b *bench) compare(ctx context.Context, subjects ...subject) (map[string]timing, error) {
	taken := map[string]timing{}
	for round := range b.rounds {
		for i := range subjects {
			s := subjects[(round+i)%len(subjects)]
			d, err := s.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			b.say("  %-44s %s", s.name, d.Round(time.Millisecond))
			taken[s.name] = append(taken[s.name], d)
		}
	}
	for _, t := range taken {
		slices.Sort(t)
	}
	return taken, nil
}

// part adds a part to the table: the subjects in their order, with their rates, their ratios to the
// base lines, and their recorded costs.
func (b *bench) part(title string, amount float64, unit string, taken map[string]timing, base [2]string, targets map[string]string, subjects ...subject) {
	p := part{title: title}
	for i, name := range base {
		p.base[i], _, _ = strings.Cut(name, ":") // for a short column header
	}
	for _, s := range subjects {
		t := taken[s.name]
		r := row{
			name: s.name, time: t.median(), low: t[0], high: t[len(t)-1], each: b.eachOf(s.name),
			rate: fmt.Sprintf("%s %s", figures(amount/t.median().Seconds()), unit), target: targets[s.name],
		}
		for i, name := range base {
			if o, ok := taken[name]; ok {
				r.ratio[i] = o.median().Seconds() / t.median().Seconds()
			}
		}
		p.rows = append(p.rows, r)
	}
	b.table.parts = append(b.table.parts, p)
	b.costs, b.calls = nil, nil
}

// figures formats a rate with about three significant digits.
func figures(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", math.Round(v/10)*10)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
