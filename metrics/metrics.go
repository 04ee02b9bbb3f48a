// Package metrics has the measures that a process offers to Prometheus: what happened in it, and how
// long that took. Package metrics/state adds what the Registry's database tells, and [Handler] serves
// all.
//
// Names and units follow Prometheus's conventions: seconds, and counters are cumulative since the
// start of the process. docs/metrics.md lists the metrics; it is generated from the declarations.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// space begins the name of each metric.
const space = "holdfast"

// own has the metrics of this process.
var own = prometheus.NewRegistry()

func init() { //nolint:gochecknoinits // a process has one set of metrics
	own.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// How long things took in the process. Each metric has few values of its labels: no ids, no names of
// people or files.
var (
	Dispatch = timer("dispatch_duration_seconds", "From when an item could start until its attempt began. An item that waited for others could start when the last of them ended. Time under a hold or at a limit counts. An item that continues in its next stage at once is not counted.", short, "stage")
	// Attempt counts the attempts by outcome, too.
	Attempt  = timer("attempt_duration_seconds", "From the start of an attempt to its end. `_count` has the attempts by outcome: `done`, `failed`, `retry` (retries), `lost` (losses: the worker died), `withdrawn` (a person stopped it), `cancelled` (its worker stopped), `snooze`, `sent-back`.", long, "stage", "outcome")
	Step     = timer("step_duration_seconds", "How long the code of a step ran, in the worker's process.", long, "stage")
	Settle   = timer("settle_duration_seconds", "The transaction that ends an attempt, with the wait for it. `refused`: the attempt was over already, or its results were not valid. `unavailable`: the database did not answer.", short, "outcome")
	Submit   = timer("submit_duration_seconds", "The transaction that records a request, with the wait for it: `deposit`, `task`, `init-process`, `call-process`, `repair-process`, `retry-process`, `put-process`, `remove-process`.", short, "operation")
	Scan     = timer("scan_duration_seconds", "One pass of a search that repeats. `ready`: for items that programs with functions can take, also calls of processes. `due`: for items to offer to workers (the relay). `lost`: for attempts whose lease ran out (the sweep). `schedule`: for schedules to fire. `throughput`: for what happened since the last minute.", short, "pass")
	Removal  = timer("process_removal_duration_seconds", "The removal of a process with its history, inside its transaction.", short, "namespace")
	Delivery = timer("delivery_duration_seconds", "One try to deliver a message. `kind`: `callback`, `webhook`, `topic`, or the kind of a mail. `outcome`: `done` or `failed`.", short, "kind", "outcome")
)

// The upper bounds of buckets, in seconds: a factor of four leads from each to the next.
var (
	short = prometheus.ExponentialBuckets(0.001, 4, 11) // 1 ms to 17 minutes
	long  = prometheus.ExponentialBuckets(0.004, 4, 14) // 4 ms to 3 days
)

// Timer is a histogram of durations. It may be used concurrently.
type Timer struct{ of *prometheus.HistogramVec }

func timer(name, help string, buckets []float64, labels ...string) Timer {
	t := Timer{prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: declare(OfProcess, "histogram", name, help, labels), Help: help, Buckets: buckets}, labels)}
	own.MustRegister(t.of)
	return t
}

// Observe adds a duration. It takes one value for each label, in their order. A negative duration
// counts as zero: it comes from a clock that was set back.
func (t Timer) Observe(d time.Duration, labels ...string) {
	t.of.WithLabelValues(labels...).Observe(max(d, 0).Seconds())
}

// Since adds the time since begun.
func (t Timer) Since(begun time.Time, labels ...string) { t.Observe(time.Since(begun), labels...) }

// Outcome is the label of something that succeeded or failed.
func Outcome(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}

// Handler serves the process's metrics, with those of further collectors.
func Handler(more ...prometheus.Collector) http.Handler {
	all := prometheus.Gatherers{own}
	if len(more) > 0 {
		r := prometheus.NewRegistry()
		r.MustRegister(more...)
		all = append(all, r)
	}
	// A part that fails leaves the others: a scrape tells most when something is wrong.
	serve := promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		countRedis()
		serve.ServeHTTP(w, r)
	})
}
