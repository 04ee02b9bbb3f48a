package progress

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/registry"
)

func TestMeter_LastTenSeconds(t *testing.T) {
	var m meter
	at := time.Unix(0, 0)
	if r := m.add(at, 0); r != 0 {
		t.Errorf("rate of one sample is %v, want 0", r)
	}
	// Fast for a minute, then at a tenth of it: after ten seconds the fast minute is forgotten.
	value, rate := int64(0), 0.0
	for range 60 {
		at, value = at.Add(time.Second), value+1000
		rate = m.add(at, value)
	}
	if rate != 1000 {
		t.Errorf("rate %v, want 1000", rate)
	}
	for range 10 {
		at, value = at.Add(time.Second), value+100
		rate = m.add(at, value)
	}
	if math.Abs(rate-100) > 1 {
		t.Errorf("rate %v ten seconds after it fell, want 100", rate)
	}
	if len(m.samples) > 12 {
		t.Errorf("%d samples are kept", len(m.samples))
	}
	if r := m.add(at.Add(time.Second), 50); r != 0 {
		t.Errorf("rate %v after the value shrank, want 0", r)
	}
}

func TestView_Remaining(t *testing.T) {
	for _, tt := range []struct {
		name string
		v    view
		want time.Duration
		ok   bool
	}{
		{"known", view{known: true, bytes: 1000, doneBytes: 500, rate: 100}, 5 * time.Second, true},
		{"total unknown", view{bytes: 1000, doneBytes: 500, rate: 100}, 0, false},
		{"stands still", view{known: true, bytes: 1000, doneBytes: 500}, 0, false},
		{"all there", view{known: true, bytes: 1000, doneBytes: 1000, rate: 100}, 0, false},
		{"more than all", view{known: true, bytes: 1000, doneBytes: 2000, rate: 100}, 0, false},
		{"for ever", view{known: true, bytes: math.MaxInt64, doneBytes: 1, rate: 0.001}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := tt.v.remaining(); got != tt.want || ok != tt.ok {
				t.Errorf("remaining %s, %t; want %s, %t", got, ok, tt.want, tt.ok)
			}
		})
	}
}

// TestView_Tasks: tasks have no files and no sizes.
func TestView_Tasks(t *testing.T) {
	v := view{elapsed: time.Second, all: true, jobs: 1, tasks: []string{"Processing: links 3 of 7"}}
	if got, want := v.line(), "[0:01]  Processing: links 3 of 7"; got != want {
		t.Errorf("one task: %q, want %q", got, want)
	}
	v.tasks, v.jobs, v.settled, v.failed, v.waiting = []string{"Completed", "Failed", "Pending"}, 3, 2, 1, "held"
	if got, want := v.line(), "[0:01]  tasks 2/3  1 failed  held"; got != want {
		t.Errorf("three tasks: %q, want %q", got, want)
	}
}

// Shares stay between 0 and 100 for any figures, and are not shown before the totals are final.
func TestView_PercentStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		figure := rapid.Int64Range(-1, math.MaxInt64/8)
		draw := func(name string) int64 { return figure.Draw(t, name) }
		var batches []registry.BatchProgress
		for range rapid.IntRange(1, 3).Draw(t, "batches") {
			batches = append(batches, registry.BatchProgress{
				Jobs: draw("jobs"), Open: draw("open"), Files: draw("files"), DoneFiles: draw("done files"), Bytes: draw("bytes"),
				DoneBytes: draw("done bytes"), SizeKnown: rapid.Bool().Draw(t, "size known"),
			})
		}
		v := viewOf(batches, time.Second, new(meter), time.Unix(1, 0))
		p, ok := v.percent()
		if p < 0 || p > 100 || math.IsNaN(p) {
			t.Fatalf("%v %%", p)
		}
		for _, b := range batches {
			if ok && !b.SizeKnown {
				t.Fatalf("%v %% of a total that is not known", p)
			}
		}
	})
}

func TestView_Line(t *testing.T) {
	now := time.Unix(100, 0)
	m := &meter{}
	m.add(now.Add(-10*time.Second), 0)
	batch := registry.BatchProgress{
		Expanded: true, SizeKnown: true, Jobs: 5, Open: 2, Completed: 2, Failed: 1, Files: 2480, DoneFiles: 310, Bytes: 10 << 30, DoneBytes: 1 << 30,
	}
	for _, tt := range []struct {
		name string
		v    view
		want string
	}{
		{
			"known", viewOf([]registry.BatchProgress{batch}, 42*time.Second, m, now),
			"[0:42] 10.0 %  jobs 3/5 (1 failed)  files 310/2,480  1.0 GiB/10.0 GiB  102.4 MiB/s  ETA 1:30",
		},
		{
			"unknown", viewOf([]registry.BatchProgress{{Jobs: 3, Open: 3, Files: 7, DoneFiles: 1, Bytes: 99, DoneBytes: 12}}, 0, new(meter), now),
			"[0:00]  jobs 0  files 1  12 B",
		},
		{
			"more than expected", viewOf([]registry.BatchProgress{{Expanded: true, SizeKnown: true, Jobs: 1, Files: 1, DoneFiles: 2, Bytes: 10, DoneBytes: 25}}, 0, new(meter), now),
			"[0:00] 100.0 %  jobs 1/1  files 2/2  25 B/25 B",
		},
		{
			"waiting for a retry", viewOf([]registry.BatchProgress{{Error: "503 from\nh.test", Class: registry.SystemFault}}, 0, new(meter), now),
			"[0:00]  jobs 0  files 0  0 B  waiting for a retry",
		},
		{
			"held, two batches", viewOf([]registry.BatchProgress{{Held: true}, {Held: true}}, 0, new(meter), now),
			"[0:00]  2 batches  jobs 0  files 0  0 B  held",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.v.line(); got != tt.want {
				t.Errorf("line\n got %q\nwant %q", got, tt.want)
			}
			if got, want := tt.v.picture().Cause, map[string]string{"waiting for a retry": "after: 503 from\nh.test"}[tt.name]; got != want {
				t.Errorf("cause %q, want %q", got, want)
			}
		})
	}
}
