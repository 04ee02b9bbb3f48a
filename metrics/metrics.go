// Package metrics has the measures that a process offers to Prometheus: how long things took in this
// process. [Collect] adds the state of the queue, and [Handler] serves all.
//
// Names and units follow Prometheus's conventions: seconds, and counters are cumulative since the
// start of the process. docs/metrics.md describes each metric.
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

// What the process measures. Each has few values of its labels: no ids, no names of people or files.
var (
	// Dispatch is the time from when an item could start until a worker has it.
	Dispatch = timer("dispatch_duration_seconds", "From when an item could start until its attempt began.", short, "stage")
	// Attempt is the time from an attempt's start to its end, as the Registry sees it. Its counts are
	// the attempts by outcome: retries are outcome retry, lost ones are outcome lost.
	Attempt = timer("attempt_duration_seconds", "From the start of an attempt to its end.", long, "stage", "outcome")
	// Step is the time that a step's own code took, in the worker's process.
	Step = timer("step_duration_seconds", "How long the code of a step ran.", long, "stage")
	// Settle is the time of a settlement: the transaction that ends attempts, and the wait for it.
	Settle = timer("settle_duration_seconds", "How long the Registry took to settle an attempt.", short, "outcome")
	// Submit is the time of the transaction of a submission, and the wait for it.
	Submit = timer("submit_duration_seconds", "How long the Registry took to record a request: a deposit, a task, or a request to a process.", short, "operation")
	// Scan is the time of one pass of a search that repeats.
	Scan = timer("scan_duration_seconds", "How long one pass took: ready (search for items of functions and namespaces), due (offer of items to workers), lost (search for lost attempts), schedule (firing of schedules), throughput (count of a minute).", short, "pass")
	// Removal is the time that the removal of a process took within its transaction.
	Removal = timer("process_removal_duration_seconds", "How long it took to delete a process with its history.", short, "namespace")
	// Delivery is the time of one try to deliver a message.
	Delivery = timer("delivery_duration_seconds", "How long one try to deliver a message took.", short, "kind", "outcome")
)

// The upper bounds of buckets, in seconds: a factor of four leads from each to the next.
var (
	short = prometheus.ExponentialBuckets(0.001, 4, 11) // 1 ms to 17 minutes
	long  = prometheus.ExponentialBuckets(0.004, 4, 14) // 4 ms to 3 days
)

// Timer is a histogram of durations. It may be used concurrently.
type Timer struct{ of *prometheus.HistogramVec }

func timer(name, help string, buckets []float64, labels ...string) Timer {
	t := Timer{prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: space, Name: name, Help: help, Buckets: buckets}, labels)}
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
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}
