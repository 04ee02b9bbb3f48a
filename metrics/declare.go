package metrics

import (
	"database/sql"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Declared describes a metric that processes offer.
type Declared struct {
	Name   string // with the space
	Kind   string // histogram, counter or gauge
	Help   string
	Labels []string
	// Of says whose it is: [OfProcess] or [OfRegistry].
	Of Of
}

// Of says what a metric is about.
type Of string

// What metrics are about.
const (
	OfProcess  Of = "process"  // what happened in the process since it started: add up over processes
	OfRegistry Of = "registry" // what the Registry's database says: all its processes tell the same
)

// declared has all metrics, in the order of their declarations.
var declared []Declared

// All returns every declared metric by name.
func All() []Declared {
	all := slices.Clone(declared)
	slices.SortFunc(all, func(a, b Declared) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func declare(of Of, kind, name, help string, labels []string) string {
	declared = append(declared, Declared{Name: space + "_" + name, Kind: kind, Help: help, Labels: labels, Of: of})
	return space + "_" + name
}

// State declares a gauge of the Registry's state, for a collector. Call it while a package is
// initialized.
func State(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(declare(OfRegistry, "gauge", name, help, labels), help, labels, nil)
}

// Pool adds the metrics of a pool of database connections (go_sql_..., as client_golang has them)
// until stop is called. If a pool of that name is there, as when a test opens several databases,
// that one stays alone.
func Pool(db *sql.DB, name string) (stop func()) {
	c := collectors.NewDBStatsCollector(db, name)
	if own.Register(c) != nil {
		return func() {}
	}
	return func() { own.Unregister(c) }
}

// Counter counts what happened. It may be used concurrently.
type Counter struct{ of *prometheus.CounterVec }

func counter(name, help string, labels ...string) Counter {
	c := Counter{prometheus.NewCounterVec(prometheus.CounterOpts{Name: declare(OfProcess, "counter", name, help, labels), Help: help}, labels)}
	own.MustRegister(c.of)
	return c
}

// from0 lets series exist before their first event, so that Prometheus sees the increase to 1. It
// takes the values of the only label; none, if there is no label.
func (c Counter) from0(values ...string) Counter {
	if len(values) == 0 {
		c.of.WithLabelValues()
	}
	for _, v := range values {
		c.of.WithLabelValues(v)
	}
	return c
}

// Add adds n. It takes one value for each label, in their order.
func (c Counter) Add(n float64, labels ...string) { c.of.WithLabelValues(labels...).Add(n) }

// Gauge is a value of the process that goes up and down. It may be used concurrently.
type Gauge struct{ of *prometheus.GaugeVec }

func gauge(name, help string, labels ...string) Gauge {
	g := Gauge{prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: declare(OfProcess, "gauge", name, help, labels), Help: help}, labels)}
	own.MustRegister(g.of)
	return g
}

// Set sets the value. It takes one value for each label, in their order.
func (g Gauge) Set(v float64, labels ...string) { g.of.WithLabelValues(labels...).Set(v) }
