// Package state tells Prometheus what the Registry's database says: what waits and why, how well files
// are kept, and how far behind deliveries are. Each scrape costs a bounded number of queries. All
// processes of one Registry tell the same: take the maximum over them, not the sum.
package state

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// scrapeTimeout bounds the queries of one scrape. Prometheus waits 10 s by default.
const scrapeTimeout = 8 * time.Second

// Registry is what a Collector asks.
type Registry interface {
	registry.Queue
	registry.HoldingsReader
	Storages(ctx context.Context, names []string) (registry.StorageReport, error)
	Subscriptions(ctx context.Context) ([]registry.Subscription, error)
}

// Volume is a place whose room is told.
type Volume struct {
	Name  string
	Store interface {
		Space(ctx context.Context) (storage.Space, error)
	}
}

// Collector collects the state of the Registry.
type Collector struct {
	Registry Registry
	Volumes  []Volume
	Log      *slog.Logger
}

var (
	up            = metrics.State("queue_up", "1: the Registry told the state of its queue. 0: the database did not answer, and the other gauges of the Registry are absent.")
	items         = metrics.State("items", "Items by state: `ready` (depth), `waiting` (for time, room, a lock or other items), `held`, `running` (in flight).", "stage", "state")
	waiting       = metrics.State("waiting_items", "Items that do not start, by reason: `held`, `limit` (ready, but as many run as a limit of the stage or collection allows), `no-space` (room in staging), `not-due` (a time: a retry, a source, an archive), `locked` (another item has the object), `blocked` (items that must end first).", "stage", "reason")
	oldestReady   = metrics.State("oldest_ready_age_seconds", "How long the longest waiting ready item has been able to start; 0 if none is ready.", "stage")
	slots         = metrics.State("slots", "Slots of live workers: `all`, `free`.", "stage", "state")
	service       = metrics.State("service_seconds", "Mean time of an attempt that was done, over about the last 200 of the stage; absent before the first.", "stage")
	backlog       = metrics.State("backlog_seconds", "Seconds of work waiting for each slot of live workers: items that start as soon as there are slots (ready, and not at a limit), times their mean time (1 s while none is known), divided by the slots. 0 exactly if no such item waits; without live workers as for one worker of 32 slots. Scale workers by it.", "stage")
	utilization   = metrics.State("slot_utilization_ratio", "Share of the slots of live workers that are busy: 0 to 1. Above 0 while a step runs in a live worker. Keep workers by it.", "stage")
	needed        = metrics.State("stage_needed", "1: the stage needs a worker. Something of it starts as soon as there are slots, or runs; or, for a stage that each deposit passes, something of another stage of deposits does. So the stages of a deposit get their first workers together. A stage that a hold stops needs no first worker.", "stage")
	messages      = metrics.State("messages", "Messages sent to workers and not answered.", "stage")
	itemLimit     = metrics.State("item_limit", "How many items may run at once, where there is a limit.", "stage")
	failedItems   = metrics.State("failed_items", "Failed items that wait for somebody's decision; counted up to 10,000.", "stage")
	accepting     = metrics.State("accepting", "1: submissions are accepted.")
	paused        = metrics.State("paused", "1: a hold stops everything, or all deposits.")
	damaged       = metrics.State("damaged_files", "Stored files that are known to be damaged or missing in some storage.")
	foreign       = metrics.State("foreign_files", "1: a search found files in a storage that belong to no object.")
	oneCopy       = metrics.State("one_copy_collections", "Collections whose objects have one copy only.")
	files         = metrics.State("stored_files", "Stored files of all objects; counted every ten minutes.")
	checked       = metrics.State("checked_files", "Stored files that were read and found right in every storage within some days, or were written then. Divided by `holdfast_stored_files`: the share that is checked.", "days")
	fixityPeriod  = metrics.State("fixity_period_seconds", "Time after which every stored file is checked again (`HOLDFAST_FIXITY_DAYS`); 0: there is no schedule.")
	late          = metrics.State("late_files", "Stored files whose last check is older than the period and a tenth of it; 0 without a schedule. Divided by `holdfast_stored_files`: the share that is late.")
	versions      = metrics.State("versions", "Versions of objects by their number of copies; counted every ten minutes.", "copies")
	shortObjects  = metrics.State("short_objects", "Objects with fewer copies than the profile of their collection asks for, of the 50 collections with most; the empty name has those of all others. Counted every ten minutes, or while that takes a twentieth of a processor.", "collection")
	copiesLeft    = metrics.State("copies_left", "Objects to be copied until a storage is filled, or until a retiring one is not needed; 0 for the others.", "storage")
	copiedShare   = metrics.State("copied_ratio", "Share of the objects that were to be copied when a storage began to be filled or retired and that are copied: 0 to 1; 1 for the others.", "storage")
	failedCopies  = metrics.State("failed_copies", "Copies to a storage that failed and wait for somebody's decision.", "storage")
	failing       = metrics.State("failing_subscriptions", "Subscriptions whose receivers do not acknowledge events.")
	subscriptions = metrics.State("subscriptions", "Subscriptions by state: `current`, `behind`, `failing`, `paused`.", "state")
	feedLag       = metrics.State("feed_lag_seconds", "Age of the oldest event of the feed that a subscription has not passed on or skipped: the largest of a state.", "state")
	feedLagEvents = metrics.State("feed_lag_events", "Events of the feed after what a subscription has passed on or skipped: the largest of a state.", "state")
	deliveries    = metrics.State("deliveries", "Callbacks and mails that were tried and are not delivered: `retrying`, or `failed` if they wait for somebody's decision; counted up to 10,000.", "state")
	relayLag      = metrics.State("relay_lag_seconds", "How long the oldest item has waited for the relay to offer it to workers; 0 if none waits. More than what the window of messages has room for waits here.")
	sweepAge      = metrics.State("sweep_age_seconds", "Time since the last sweep for expired leases, by any process.")
	reservedBytes = metrics.State("reserved_bytes", "Bytes of items on a staging volume: `coming` (reserved and not there yet), `kept` (of failed and cancelled items, for a requeue).", "volume", "state")
	reservations  = metrics.State("reservations", "Items with a reservation on a staging volume.", "volume")
	volumeBytes   = metrics.State("volume_bytes", "Room of staging and storages, where it is limited: `total`, `used`.", "volume", "state")
	all           = []*prometheus.Desc{
		up, items, waiting, oldestReady, slots, service, backlog, utilization, needed, messages, itemLimit, failedItems, accepting, paused, damaged, foreign, oneCopy,
		files, checked, fixityPeriod, late, versions, shortObjects, copiesLeft, copiedShare, failedCopies, failing, subscriptions, feedLag, feedLagEvents, deliveries, relayLag, sweepAge, reservedBytes, reservations, volumeBytes,
	}
)

// Describe implements prometheus.Collector.
func (c Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range all {
		ch <- d
	}
}

// scrape is one collection.
type scrape chan<- prometheus.Metric

func (s scrape) set(d *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// Unavailable tells that the database does not answer, without asking it.
type Unavailable struct{}

// Describe implements prometheus.Collector.
func (Unavailable) Describe(ch chan<- *prometheus.Desc) { ch <- up }

// Collect implements prometheus.Collector.
func (Unavailable) Collect(ch chan<- prometheus.Metric) { scrape(ch).set(up, 0) }

// Collect implements prometheus.Collector.
func (c Collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	s := scrape(ch)
	q, err := c.Registry.QueueStatus(ctx)
	if err != nil {
		c.Log.WarnContext(ctx, "the metrics of the queue are missing from a scrape", "err", err)
		s.set(up, 0)
		return
	}
	s.set(up, 1)
	s.queue(q)
	if h, err := c.Registry.Holdings(ctx); err != nil {
		c.Log.WarnContext(ctx, "the metrics of what is kept are missing from a scrape", "err", err)
	} else {
		s.holdings(h)
	}
	if r, err := c.Registry.Storages(ctx, nil); err != nil {
		c.Log.WarnContext(ctx, "the metrics of storages are missing from a scrape", "err", err)
	} else {
		s.storages(r)
	}
	if subs, err := c.Registry.Subscriptions(ctx); err != nil {
		c.Log.WarnContext(ctx, "the metrics of subscriptions are missing from a scrape", "err", err)
	} else {
		s.subscriptions(subs)
	}
	for _, v := range c.Volumes {
		switch space, err := v.Store.Space(ctx); {
		case errors.Is(err, storage.ErrUnlimited):
		case err != nil:
			c.Log.WarnContext(ctx, "the room of a volume is missing from a scrape", "volume", v.Name, "err", err)
		default:
			s.set(volumeBytes, float64(space.Total), v.Name, "total")
			s.set(volumeBytes, float64(space.Used), v.Name, "used")
		}
	}
}

func (s scrape) queue(q registry.QueueStatus) {
	s.set(accepting, bit(q.Accepting.On))
	s.set(paused, bit(q.Paused != nil))
	s.set(damaged, float64(q.Damaged))
	s.set(foreign, bit(q.Strays != ""))
	s.set(oneCopy, float64(q.OneCopy))
	s.set(failing, float64(len(q.Failing)))
	s.set(deliveries, float64(q.Deliveries.Retrying), "retrying")
	s.set(deliveries, float64(q.Deliveries.Failed), "failed")
	s.set(relayLag, since(q.OldestDue))
	if q.SweptAt != nil {
		s.set(sweepAge, since(q.SweptAt))
	}
	for _, of := range q.Stages {
		s.stage(of)
		s.set(needed, bit(q.Needed(of.Stage)), string(of.Stage))
	}
}

func (s scrape) stage(of registry.StageQueue) {
	stage := string(of.Stage)
	s.set(items, float64(of.Ready), stage, "ready")
	s.set(items, float64(of.Waiting), stage, "waiting")
	s.set(items, float64(of.Held), stage, "held")
	s.set(items, float64(of.Running), stage, "running")
	s.set(waiting, float64(of.Held), stage, "held")
	s.set(waiting, float64(of.AtLimit), stage, "limit")
	for _, reason := range []registry.Reason{registry.ReasonNoSpace, registry.ReasonNotDue, registry.ReasonLocked, registry.ReasonBlocked} {
		s.set(waiting, float64(of.WaitsFor[reason]), stage, string(reason))
	}
	s.set(oldestReady, since(of.OldestReady), stage)
	s.set(slots, float64(of.Capacity), stage, "all")
	s.set(slots, float64(of.Free), stage, "free")
	s.set(messages, float64(of.Rung), stage)
	s.set(failedItems, float64(of.Failed), stage)
	s.set(backlog, of.Backlog().Seconds(), stage)
	s.set(utilization, of.Utilization(), stage)
	if of.ServiceSeconds > 0 {
		s.set(service, of.ServiceSeconds, stage)
	}
	if of.Limit > 0 {
		s.set(itemLimit, float64(of.Limit), stage)
	}
}

func (s scrape) holdings(h registry.Holdings) {
	s.set(files, float64(h.Files))
	for _, c := range h.Checked {
		s.set(checked, float64(c.Files), strconv.Itoa(c.Days))
	}
	s.set(fixityPeriod, h.FixityDays*(24*time.Hour).Seconds())
	s.set(late, float64(h.Late))
	for _, c := range h.Copies {
		s.set(versions, float64(c.Versions), strconv.Itoa(c.Copies))
	}
	for _, r := range h.Rooms {
		s.set(reservedBytes, float64(r.Coming), r.Volume, "coming")
		s.set(reservedBytes, float64(r.Kept), r.Volume, "kept")
		s.set(reservations, float64(r.Items), r.Volume)
	}
}

// collectionsTold bounds the collections that are told by name: names are labels.
const collectionsTold = 50

// storages tells where there are too few copies, and how far storages are.
func (s scrape) storages(r registry.StorageReport) {
	all := slices.Clone(r.Collections)
	slices.SortStableFunc(all, func(a, b registry.CollectionCopies) int { return cmp.Compare(b.Short.Objects, a.Short.Objects) })
	var others int64
	for i, c := range all {
		switch {
		case c.Short.Objects == 0:
		case i < collectionsTold:
			s.set(shortObjects, float64(c.Short.Objects), c.Collection)
		default:
			others += c.Short.Objects
		}
	}
	s.set(shortObjects, float64(others), "")
	for _, of := range r.Storages {
		s.set(copiesLeft, float64(of.Left().Objects), of.Name)
		s.set(copiedShare, of.Copied(), of.Name)
		s.set(failedCopies, float64(of.Failed), of.Name)
	}
}

// subscriptions adds up subscriptions by state. Names would be labels without bound.
func (s scrape) subscriptions(subs []registry.Subscription) {
	type sum struct{ n, events, seconds float64 }
	states := map[string]*sum{"current": {}, "behind": {}, "failing": {}, "paused": {}}
	for _, sub := range subs {
		state := "current"
		switch {
		case sub.Paused != nil:
			state = "paused"
		case sub.FailingSince != nil:
			state = "failing"
		case sub.Behind > 0:
			state = "behind"
		}
		of := states[state]
		of.n++
		of.events, of.seconds = max(of.events, float64(sub.Behind)), max(of.seconds, since(sub.BehindSince))
	}
	for state, of := range states {
		s.set(subscriptions, of.n, state)
		s.set(feedLagEvents, of.events, state)
		s.set(feedLag, of.seconds, state)
	}
}

// since returns the seconds since a time; 0 if there is none.
func since(t *time.Time) float64 {
	if t == nil {
		return 0
	}
	return max(0, time.Since(*t)).Seconds()
}

func bit(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
