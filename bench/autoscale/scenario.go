package autoscale

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Scenario is what happens to the fleet.
type Scenario struct {
	Name  string
	About string
	Rate  float64 // jobs a second, usually
	Hours float64 // how long it lasts
	// from and until bound what is unusual, in seconds. After until, everything is as usual again.
	from, until float64
	arrivals    func(s Scenario, at float64) float64 // jobs a second
	more        func(m *model)
	slowShare   float64 // of the jobs
}

const hour = 3600.0

// Unusual are the factors of the scenarios.
const (
	burstFactor = 100
	slowFactor  = 20
	slowJobs    = 0.5
	reclaimed   = 1.0 / 3
	unwarned    = 0.1 // of reclaimed workers: they die without a SIGTERM
)

// Scenarios returns all scenarios, for a usual rate of jobs a second.
func Scenarios(rate float64) []Scenario {
	return []Scenario{
		{
			Name: "burst", About: fmt.Sprintf("%d times the usual rate for ten minutes", burstFactor), Rate: rate, Hours: 4, from: hour, until: hour + 600,
			arrivals: func(s Scenario, at float64) float64 {
				if at >= s.from && at < s.until {
					return burstFactor * s.Rate
				}
				return s.Rate
			},
		},
		{
			Name: "spot", About: "thirty times the usual rate; after an hour, a third of all workers is reclaimed at once, a tenth of them without warning", Rate: rate, Hours: 3, from: hour, until: hour + 120,
			arrivals: func(s Scenario, _ float64) float64 { return spotRate * s.Rate },
			more: func(m *model) {
				m.at(m.o.Scenario.from, m.reclaim)
			},
		},
		{
			Name: "slow", About: fmt.Sprintf("ten times the usual rate; for an hour, half of the jobs come from a source that takes %d times as long", slowFactor), Rate: rate, Hours: 4, from: hour, until: 2 * hour, slowShare: slowJobs,
			arrivals: func(s Scenario, _ float64) float64 { return slowRate * s.Rate },
			more: func(m *model) {
				m.at(m.o.Scenario.from, func() { m.slower[1] = slowFactor })
				m.at(m.o.Scenario.until, func() { m.slower[1] = 1 })
			},
		},
		{
			Name: "idle", About: "a deposit each two hours, and nothing else", Rate: rate, Hours: 24,
			arrivals: func(Scenario, float64) float64 { return 0 },
			more: func(m *model) {
				for at := 17.0; at < 23*hour; at += 2*hour + 13 {
					m.at(at, func() { m.arrive(0) })
				}
			},
		},
		{
			Name: "steady", About: "thirty times the usual rate, and nothing else", Rate: rate, Hours: 4,
			arrivals: func(s Scenario, _ float64) float64 { return spotRate * s.Rate },
		},
	}
}

const (
	spotRate = 30
	slowRate = 10
)

// ScenarioOf returns a scenario by its name; the error lists the names.
func ScenarioOf(name string, rate float64) (Scenario, error) {
	all := Scenarios(rate)
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		var names []string
		for _, s := range all {
			names = append(names, s.Name)
		}
		return Scenario{}, fmt.Errorf("no scenario %q; there are %s", name, strings.Join(names, ", "))
	}
	return all[i], nil
}

func (s Scenario) length() float64 { return s.Hours * hour }

// plan plans the arrivals, a Poisson process, and what else happens.
func (s Scenario) plan(m *model) {
	source := rand.New(rand.NewPCG(m.o.Seed, 2)) //nolint:gosec // a run can be repeated
	const step = 1.0
	var next func(at float64)
	next = func(at float64) {
		m.at(at, func() {
			for range poisson(source, s.arrivals(s, at)*step/float64(m.o.Rows)) {
				lane := 0
				if source.Float64() < s.slowShare {
					lane = 1
				}
				m.at(at+source.Float64()*step, func() { m.arrive(lane) })
			}
			if at+step < s.length() {
				next(at + step)
			}
		})
	}
	if s.arrivals(s, 0) > 0 {
		next(0)
	}
	if s.more != nil {
		s.more(m)
	}
}

// poisson draws a number of events.
func poisson(r *rand.Rand, mean float64) (n int) {
	for at := r.ExpFloat64(); at < mean; at += r.ExpFloat64() {
		n++
	}
	return n
}

// reclaim takes a third of the workers of each stage; the first one runs on demand.
func (m *model) reclaim() {
	for _, s := range m.stages {
		spot := slices.Clone(s.workers)
		if len(spot) > 0 {
			spot = spot[1:]
		}
		m.random.Shuffle(len(spot), func(i, j int) { spot[i], spot[j] = spot[j], spot[i] })
		for _, w := range spot[:ceil(reclaimed*float64(len(spot)))] {
			m.figures.Reclaimed++
			if m.random.Float64() < unwarned {
				w.kill()
			} else {
				w.stop()
			}
		}
		s.reconcile()
	}
}
