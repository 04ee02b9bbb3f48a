// Package throughputtest is the conformance kit of throughput.
package throughputtest

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{registrytest.NewTopic("throughput", throughputTests())}
}

// fixture adds this kit's helpers. Its clock stands at a full hour.
type fixture struct{ *registrytest.Fixture }

// preserve completes a job that preserves an object.
func (f *fixture) preserve() {
	f.Helper()
	f.Object()
}

// fail fails a job.
func (f *fixture) fail() {
	f.Helper()
	id := f.WaitingAt(registry.Download, registrytest.Mnemonic, 1, false)[0]
	_, err := f.Store.Settle(f.Context(), registry.Settlement{
		Lease: f.Take(registry.Download, id).Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "404", MaxAttempts: 5,
	})
	f.Must(err)
}

// noted counts, and returns what there is of a span.
func (f *fixture) noted(span registry.ThroughputSpan) registry.Throughput {
	f.Helper()
	f.Must(f.Store.NoteThroughput(f.Context()))
	t, err := f.Store.Throughput(f.Context(), span)
	f.Must(err)
	return t
}

// line is an interval as these tests compare it.
type line struct {
	At                       string
	Preserved, Bytes, Failed int64
	Waiting, Running         int64 // -1: not known
}

// wants compares the intervals of which something is known.
func (f *fixture) wants(t registry.Throughput, want ...line) {
	f.Helper()
	known := func(n *int64) int64 {
		if n == nil {
			return -1
		}
		return *n
	}
	var got []line
	for _, p := range t.Rows {
		got = append(got, line{p.At.UTC().Format("02 15:04"), p.Preserved, p.Bytes, p.Failed, known(p.Waiting), known(p.Running)})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s (-want +got):\n%s", t.Span, diff)
	}
}

func throughputTests() map[string]func(*fixture) {
	return map[string]func(*fixture){
		"counts_each_event_once_in_its_minute": func(f *fixture) {
			f.preserve()
			f.fail()
			f.WaitingAt(registry.Download, registrytest.Mnemonic, 3, false)
			f.Clock.Pass(time.Minute)
			f.fail()
			t := f.noted(registry.ThroughputHour)
			f.wants(t, line{"01 12:00", 1, t.Rows[0].Bytes, 1, 3, 0}, line{"01 12:01", 0, 0, 1, -1, -1})
			if t.Rows[0].Bytes <= 0 {
				f.Errorf("%d bytes preserved", t.Rows[0].Bytes)
			}
			f.wants(f.noted(registry.ThroughputHour), line{"01 12:00", 1, t.Rows[0].Bytes, 1, 3, 0}, line{"01 12:01", 0, 0, 1, -1, -1})
			f.Clock.Pass(time.Minute)
			f.wants(f.noted(registry.ThroughputHour), line{"01 12:00", 1, t.Rows[0].Bytes, 1, 3, 0}, line{"01 12:01", 0, 0, 1, 3, 0})
			f.wants(f.noted(registry.ThroughputDay), line{"01 12:00", 1, t.Rows[0].Bytes, 2, 3, 0})
			f.wants(f.noted(registry.ThroughputMonth), line{"01 12:00", 1, t.Rows[0].Bytes, 2, 3, 0})
		},
		"knows_the_steps_of_each_stage": func(f *fixture) {
			f.preserve()
			f.Clock.Pass(time.Minute)
			t := f.noted(registry.ThroughputHour)
			done := map[registry.Stage]int64{}
			for _, s := range t.Stages {
				done[s.Stage] = s.Done
			}
			if done[registry.Process] != 1 || done[registry.Download] != 1 || done["recorded"] != 0 {
				f.Errorf("steps done: %v", done)
			}
			f.Clock.Pass(2 * registry.ThroughputRecent)
			if t = f.noted(registry.ThroughputHour); len(t.Stages) != 0 {
				f.Errorf("after a pause: %v", t.Stages)
			}
		},
		// The mean time of a stage follows the steps that were done, and stays when nothing happens.
		"knows_the_mean_time_of_each_stage": func(f *fixture) {
			step := func(took time.Duration, n int) {
				for _, id := range f.WaitingAt(registry.Download, registrytest.Mnemonic, n, false) {
					l := f.Take(registry.Download, id).Lease
					f.Clock.Pass(took)
					f.Done(l)
				}
				f.Clock.Pass(time.Minute)
				f.noted(registry.ThroughputHour)
			}
			mean := func() registry.StageQueue {
				q, err := f.Store.QueueStatus(f.Context())
				f.Must(err)
				return q.Stages[slices.IndexFunc(q.Stages, func(s registry.StageQueue) bool { return s.Stage == registry.Download })]
			}
			if s := mean(); s.ServiceSeconds != 0 || s.Backlog() != 0 {
				f.Errorf("before any step: %+v", s)
			}
			step(2*time.Second, 1)
			step(4*time.Second, 3)
			f.Clock.Pass(100 * time.Hour)
			f.noted(registry.ThroughputHour)
			f.WaitingAt(registry.Download, registrytest.Mnemonic, 2, false)
			if s := mean(); s.ServiceSeconds != 3.5 || s.Ready == 0 || s.Backlog() != time.Duration(s.Ready)*3500*time.Millisecond/registry.DefaultSlots {
				f.Errorf("%+v, backlog %v; want 3.5 s for each ready item, divided by the slots of a worker", s, s.Backlog())
			}
			step(10*time.Second, 300)
			if s := mean(); s.ServiceSeconds < 9.9 || s.ServiceSeconds > 10 {
				f.Errorf("the mean is %v; want almost 10 s", s.ServiceSeconds)
			}
		},
		// After an outage, what happened before it is in its own minute; what nobody looked at is missing.
		"an_outage_is_a_gap": func(f *fixture) {
			f.Clock.Pass(time.Minute)
			f.noted(registry.ThroughputHour)
			f.fail()
			f.Clock.Pass(20 * time.Minute)
			f.fail()
			f.Clock.Pass(10*time.Minute + 30*time.Second)
			t := f.noted(registry.ThroughputHour)
			f.wants(t, line{"01 12:00", 0, 0, 0, 0, 0}, line{"01 12:01", 0, 0, 1, -1, -1}, line{"01 12:21", 0, 0, 1, -1, -1}, line{"01 12:30", 0, 0, 0, 0, 0})
			if want := time.Date(2026, 3, 1, 12, 31, 0, 0, time.UTC); !t.NotedTo.Equal(want) || !t.From.Equal(want.Add(-59*time.Minute)) || !t.To.Equal(want.Add(time.Minute)) {
				f.Errorf("from %v to %v, counted to %v", t.From, t.To, t.NotedTo)
			}
		},
		"minutes_end_before_hours_do": func(f *fixture) {
			f.fail()
			f.Clock.Pass(time.Minute)
			f.noted(registry.ThroughputHour)
			f.Clock.Pass(49 * time.Hour)
			f.wants(f.noted(registry.ThroughputDay), line{"03 13:00", 0, 0, 0, 0, 0})
			f.wants(f.noted(registry.ThroughputMonth), line{"01 12:00", 0, 0, 1, 0, 0}, line{"03 12:00", 0, 0, 0, 0, 0})
		},
		// A clock that was set back does not stop the counting for long, and nothing is counted twice.
		"goes_on_after_the_clock_was_set_back": func(f *fixture) {
			f.Clock.Pass(48 * time.Hour)
			f.fail()
			f.noted(registry.ThroughputHour)
			f.Clock.Pass(-48 * time.Hour)
			f.fail()
			f.wants(f.noted(registry.ThroughputHour), line{"01 11:59", 0, 0, 0, 0, 0}, line{"01 12:00", 0, 0, 1, -1, -1})
			f.Clock.Pass(48 * time.Hour) // for the invariants
		},
		"an_unknown_span_is_refused": func(f *fixture) {
			_, err := f.Store.Throughput(f.Context(), "year")
			f.Is(err, registry.ErrInvalid)
		},
	}
}
