package autoscale

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
)

// Figures are the outcome of a run.
type Figures struct {
	Scenario string   `json:"scenario"`
	Platform Platform `json:"platform"`
	Jobs     int      `json:"jobs"` // that came
	Left     int      `json:"left"` // of them, at the end
	// Drain is the time, in seconds, from the end of what is unusual until nothing waited for longer
	// than the target; -1: that was not before the end.
	Drain float64 `json:"drain_seconds"`
	// P50 and P95 are how long steps waited for a slot, in seconds.
	P50 float64 `json:"wait_p50_seconds"`
	P95 float64 `json:"wait_p95_seconds"`
	// FirstWork is the longest time from a deposit that came to idle stages until its first step, and
	// FirstDone until its report was made, in seconds; 0: there was none.
	FirstWork float64 `json:"first_work_seconds"`
	// FirstWorkP50 is the median of these times until a first step.
	FirstWorkP50 float64 `json:"first_work_p50_seconds"`
	FirstDone    float64 `json:"first_done_seconds"`
	// WorkerHours are those of all stages, from the request for a worker to its end. In IdleHours of
	// them a live worker ran nothing.
	WorkerHours float64 `json:"worker_hours"`
	IdleHours   float64 `json:"idle_hours"`
	// Peak is the most workers that there were at once. Overshoot is the most live workers of one
	// stage that ran nothing at one moment.
	Peak      int `json:"peak"`
	Overshoot int `json:"overshoot"`
	// Flaps counts scale-outs of a stage within half an hour after it was scaled in.
	Flaps       int `json:"flaps"`
	Zero        int `json:"zero"`        // how often all stages had come to no worker
	Reclaimed   int `json:"reclaimed"`   // workers that were taken
	Interrupted int `json:"interrupted"` // steps that went on in another worker
	Killed      int `json:"killed"`      // steps that began anew

	Series []Point `json:"-"`
}

// Point is the state of a stage at a time.
type Point struct {
	At      float64 // seconds
	Stage   string
	Ready   int
	Running int
	Live    int
	Desired int
	Backlog float64 // seconds
}

const (
	sampleEvery = 10.0
	seriesEvery = 60.0
	flapWithin  = 1800.0
)

// Run runs a scenario.
func Run(o Options) Figures {
	m := newModel(o)
	m.figures.Scenario, m.figures.Platform, m.figures.Drain = o.Scenario.Name, m.o.Platform, -1
	m.run()
	m.now = o.Scenario.length()
	for _, s := range m.stages {
		for len(s.workers) > 0 {
			s.workers[0].leave()
		}
	}
	f := m.figures
	f.Jobs, f.Left = m.came, m.open
	slices.Sort(m.waits)
	f.P50, f.P95 = quantile(m.waits, 0.5), quantile(m.waits, 0.95)
	slices.Sort(m.firsts)
	f.FirstWork, f.FirstWorkP50 = quantile(m.firsts, 1), quantile(m.firsts, 0.5)
	return f
}

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// waited notes how long a job waited for its step.
func (m *model) waited(s *station, j *job) {
	m.waits = append(m.waits, m.now-j.ready)
	if s.i == 0 && j.first {
		m.firsts = append(m.firsts, m.now-j.came)
	}
}

// sample looks at the fleet.
func (m *model) sample() {
	f := &m.figures
	workers, waits := 0, false
	for _, s := range m.stages {
		workers += len(s.workers)
		idle := 0
		for _, w := range s.workers {
			if w.live && len(w.steps) == 0 {
				idle++
			}
		}
		f.Overshoot = max(f.Overshoot, idle)
		for _, q := range s.queue {
			waits = waits || len(q) > 0 && m.now-q[0].ready > m.o.Policy.Target.Seconds()
		}
		if int(m.now)%int(seriesEvery) == 0 {
			of := m.queueStatus().Stages[s.i]
			f.Series = append(f.Series, Point{m.now, string(s.stage), s.ready(), s.running(), s.live(), s.desired, of.Backlog().Seconds()})
		}
	}
	if workers == 0 && f.Peak > 0 && !m.rests {
		f.Zero++
	}
	m.rests = workers == 0
	f.Peak = max(f.Peak, workers)
	if until := m.o.Scenario.until; m.now >= until && f.Drain < 0 && !waits {
		f.Drain = m.now - until
	}
}

// WriteCSV writes the series of runs, for a plot.
func WriteCSV(to io.Writer, runs []Figures) error {
	w := csv.NewWriter(to)
	if err := w.Write([]string{"scenario", "platform", "seconds", "stage", "ready", "running", "live", "desired", "backlog_seconds"}); err != nil {
		return err
	}
	for _, f := range runs {
		for _, p := range f.Series {
			err := w.Write([]string{
				f.Scenario, string(f.Platform), strconv.FormatFloat(p.At, 'f', 0, 64), p.Stage, strconv.Itoa(p.Ready), strconv.Itoa(p.Running),
				strconv.Itoa(p.Live), strconv.Itoa(p.Desired), strconv.FormatFloat(p.Backlog, 'f', 2, 64),
			})
			if err != nil {
				return err
			}
		}
	}
	w.Flush()
	return w.Error()
}
