package metrics

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast/holdfast/registry"
)

// scrapeTimeout bounds the queries of one scrape. Prometheus waits 10 s by default.
const scrapeTimeout = 8 * time.Second

// Queue collects the state of the queue. It asks the Registry once for each scrape. Every process
// of the Registry tells the same: take the maximum over them, not the sum.
type Queue struct {
	Registry registry.Queue
	Log      *slog.Logger
}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(space+"_"+name, help, labels, nil)
}

var (
	queueUp     = gauge("queue_up", "Whether the Registry told the state of its queue: 1, or 0.")
	items       = gauge("items", "Items of a stage by state: ready, waiting, held, running.", "stage", "state")
	oldestReady = gauge("oldest_ready_age_seconds", "How long the longest waiting ready item of a stage has been able to start; 0 if none waits.", "stage")
	slots       = gauge("slots", "Slots of live workers: all, free.", "stage", "state")
	messages    = gauge("messages", "Messages sent to workers of a stage and not answered.", "stage")
	itemLimit   = gauge("item_limit", "How many items of a stage may run at once, where there is a limit.", "stage")
	accepting   = gauge("accepting", "Whether submissions are accepted: 1, or 0.")
	paused      = gauge("paused", "Whether a hold stops everything, or all deposits: 1, or 0.")
	damaged     = gauge("damaged_files", "Stored files that are known to be damaged or missing in some storage.")
	oneCopy     = gauge("one_copy_collections", "Collections whose objects have one copy only.")
	failing     = gauge("failing_subscriptions", "Subscriptions whose receivers do not acknowledge events.")
)

// Describe implements prometheus.Collector.
func (q Queue) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queueUp, items, oldestReady, slots, messages, itemLimit, accepting, paused, damaged, oneCopy, failing} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (q Queue) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	set := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	s, err := q.Registry.QueueStatus(ctx)
	if err != nil {
		q.Log.WarnContext(ctx, "the metrics of the queue are missing from a scrape", "err", err)
		set(queueUp, 0)
		return
	}
	set(queueUp, 1)
	set(accepting, bit(s.Accepting.On))
	set(paused, bit(s.Paused != nil))
	set(damaged, float64(s.Damaged))
	set(oneCopy, float64(s.OneCopy))
	set(failing, float64(len(s.Failing)))
	for _, of := range s.Stages {
		stage := string(of.Stage)
		set(items, float64(of.Ready), stage, "ready")
		set(items, float64(of.Waiting), stage, "waiting")
		set(items, float64(of.Held), stage, "held")
		set(items, float64(of.Running), stage, "running")
		age := time.Duration(0)
		if of.OldestReady != nil {
			age = max(0, time.Since(*of.OldestReady))
		}
		set(oldestReady, age.Seconds(), stage)
		set(slots, float64(of.Capacity), stage, "all")
		set(slots, float64(of.Free), stage, "free")
		set(messages, float64(of.Rung), stage)
		if of.Limit > 0 {
			set(itemLimit, float64(of.Limit), stage)
		}
	}
}

func bit(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
