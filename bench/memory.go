package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// peak is the greatest memory of a Holdfast in all rounds of a contest.
type peak struct {
	label string
	bytes int64
}

// remember records a peak; the highest of all rounds counts.
func (b *bench) remember(label string, bytes int64) {
	i := slices.IndexFunc(b.peaks, func(p peak) bool { return p.label == label })
	if i < 0 {
		b.peaks = append(b.peaks, peak{label: label})
		i = len(b.peaks) - 1
	}
	b.peaks[i].bytes = max(b.peaks[i].bytes, bytes)
}

// idleFor is how long a service must be idle before its memory is measured.
const idleFor = 2 * time.Second

// starts measures the time of a start on a new folder, and the memory of an idle Holdfast.
func (b *bench) starts(ctx context.Context) error {
	b.say("start and memory")
	var idle int64
	ready := subject{name: "holdfast up, new folder, until ready", run: func(ctx context.Context) (taken time.Duration, err error) {
		err = b.onFresh(ctx, b.up, func(s *service) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(idleFor):
			}
			idle = max(idle, s.memory("VmRSS"))
			taken = s.procs[0].started
			return nil
		})
		return taken, err
	}}
	taken, err := b.compare(ctx, ready)
	if err != nil {
		return err
	}
	b.part("start", 1, "starts/s", taken, [2]string{}, map[string]string{ready.name: "under 1 s"}, ready)
	b.remember("idle", idle)
	return nil
}

// memory adds the recorded peaks to the table.
func (b *bench) memory() {
	if len(b.peaks) == 0 {
		return
	}
	memory := part{title: "memory of holdfast up"}
	for _, p := range b.peaks {
		target := "under 128 MiB a worker"
		if p.label == "idle" {
			target = "under 100 MiB"
		}
		value := "unknown on this system"
		if p.bytes > 0 {
			value = fmt.Sprintf("%d MiB", p.bytes/mib)
		}
		memory.rows = append(memory.rows, row{name: p.label, rate: value, target: target})
	}
	b.table.parts = append(b.table.parts, memory)
}
