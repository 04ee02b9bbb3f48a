package state_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/metrics/state"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

//go:generate go test . -run ^TestGenerated -update

// queue tells a status, or an error.
type queue struct {
	state.Registry
	err error
}

func (q queue) QueueStatus(context.Context) (registry.QueueStatus, error) {
	hourAgo := time.Now().Add(-time.Hour)
	return registry.QueueStatus{
		Accepting: registry.Accepting{On: true}, Damaged: 2, OneCopy: 3, Deliveries: registry.OpenDeliveries{Retrying: 4, Failed: 5}, OldestDue: &hourAgo, SweptAt: &hourAgo,
		Stages: []registry.StageQueue{
			{
				Stage: registry.Download, Ready: 5, Waiting: 6, Held: 7, Running: 9, Limit: 9, AtLimit: 4, Rung: 10, Failed: 11, Capacity: 12, Free: 4, OldestReady: &hourAgo,
				WaitsFor: map[registry.Reason]int64{registry.ReasonNoSpace: 2, registry.ReasonNotDue: 4}, ServiceSeconds: 24,
			},
			{Stage: "run:count", Ready: 3},
		},
	}, q.err
}

func (q queue) Holdings(context.Context) (registry.Holdings, error) {
	return registry.Holdings{
		Files: 100, FixityDays: 90, Late: 1, Checked: []registry.CheckedWithin{{Days: 90, Files: 99}}, Copies: []registry.CopyCount{{Copies: 2, Versions: 50}},
		Rooms: []registry.Room{{Volume: "staging", Items: 1, Coming: 1000, Kept: 10}},
	}, q.err
}

func (q queue) Subscriptions(context.Context) ([]registry.Subscription, error) {
	hourAgo := time.Now().Add(-time.Hour)
	return []registry.Subscription{{}, {Behind: 3}, {Behind: 30, BehindSince: &hourAgo, FailingSince: &hourAgo}, {Behind: 5, FailingSince: &hourAgo, Paused: &registry.SubscriptionPause{}}}, q.err
}

func (q queue) Storages(context.Context, []string) (registry.StorageReport, error) {
	return registry.StorageReport{
		Storages: []registry.Storage{
			{Name: "storage", State: registry.StorageInUse, Missing: registry.Amount{Objects: 4}, Failed: 2},
			{Name: "second", State: registry.StorageFilling, Missing: registry.Amount{Objects: 5}, Begun: registry.Amount{Objects: 20}},
		},
		Collections: []registry.CollectionCopies{{Collection: "maps", Short: registry.Amount{Objects: 7}}, {Collection: "whole"}},
	}, q.err
}

// room tells a volume's room.
type room storage.Space

func (r room) Space(context.Context) (storage.Space, error) { return storage.Space(r), nil }

func scrape(t *testing.T, q queue) string {
	t.Helper()
	w := httptest.NewRecorder()
	c := state.Collector{Registry: q, Log: slog.New(slog.DiscardHandler), Volumes: []state.Volume{{Name: "staging", Store: room{Total: 500, Used: 300}}}}
	metrics.Handler(c).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestCollector checks values, Prometheus's rules on names and help texts, and that each declared
// gauge is told.
func TestCollector(t *testing.T) {
	text := scrape(t, queue{})
	for _, line := range []string{
		`holdfast_items{stage="download",state="ready"} 5`, `holdfast_items{stage="download",state="waiting"} 6`,
		`holdfast_items{stage="download",state="held"} 7`, `holdfast_items{stage="download",state="running"} 9`,
		`holdfast_waiting_items{reason="held",stage="download"} 7`, `holdfast_waiting_items{reason="limit",stage="download"} 4`,
		`holdfast_waiting_items{reason="no-space",stage="download"} 2`, `holdfast_waiting_items{reason="not-due",stage="download"} 4`,
		`holdfast_waiting_items{reason="locked",stage="download"} 0`, `holdfast_waiting_items{reason="blocked",stage="run:count"} 0`,
		`holdfast_slots{stage="download",state="all"} 12`, `holdfast_slots{stage="download",state="free"} 4`,
		`holdfast_backlog_seconds{stage="download"} 2`, `holdfast_backlog_seconds{stage="run:count"} 0.09375`, `holdfast_slot_utilization_ratio{stage="download"} 0.75`, `holdfast_slot_utilization_ratio{stage="run:count"} 0`, `holdfast_service_seconds{stage="download"} 24`,
		`holdfast_stage_needed{stage="download"} 1`, `holdfast_stage_needed{stage="run:count"} 1`,
		`holdfast_messages{stage="download"} 10`, `holdfast_item_limit{stage="download"} 9`, `holdfast_oldest_ready_age_seconds{stage="run:count"} 0`,
		`holdfast_failed_items{stage="download"} 11`, `holdfast_accepting 1`, `holdfast_paused 0`, `holdfast_damaged_files 2`, `holdfast_short_objects{collection="maps"} 7`, `holdfast_short_objects{collection=""} 0`,
		`holdfast_copies_left{storage="second"} 5`, `holdfast_copies_left{storage="storage"} 0`, `holdfast_copied_ratio{storage="second"} 0.75`, `holdfast_failed_copies{storage="storage"} 2`, `holdfast_foreign_files 0`,
		`holdfast_one_copy_collections 3`, `holdfast_failing_subscriptions 0`, `holdfast_queue_up 1`,
		`holdfast_deliveries{state="retrying"} 4`, `holdfast_deliveries{state="failed"} 5`,
		`holdfast_stored_files 100`, `holdfast_checked_files{days="90"} 99`, `holdfast_versions{copies="2"} 50`, `holdfast_fixity_period_seconds 7.776e+06`, `holdfast_late_files 1`,
		`holdfast_subscriptions{state="current"} 1`, `holdfast_subscriptions{state="behind"} 1`, `holdfast_subscriptions{state="failing"} 1`, `holdfast_subscriptions{state="paused"} 1`,
		`holdfast_feed_lag_events{state="failing"} 30`, `holdfast_reserved_bytes{state="coming",volume="staging"} 1000`, `holdfast_reserved_bytes{state="kept",volume="staging"} 10`,
		`holdfast_reservations{volume="staging"} 1`, `holdfast_volume_bytes{state="total",volume="staging"} 500`, `holdfast_volume_bytes{state="used",volume="staging"} 300`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, hour := range []string{`holdfast_oldest_ready_age_seconds{stage="download"}`, `holdfast_relay_lag_seconds`, `holdfast_sweep_age_seconds`, `holdfast_feed_lag_seconds{state="failing"}`} {
		if !regexp.MustCompile(`\n` + regexp.QuoteMeta(hour) + ` 36\d\d`).MatchString(text) {
			t.Errorf("%s is not an hour", hour)
		}
	}
	for _, absent := range []string{`holdfast_item_limit{stage="run:count"}`, `holdfast_service_seconds{stage="run:count"}`} {
		if strings.Contains(text, absent) {
			t.Errorf("%s is told", absent)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "holdfast_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, d := range metrics.All() {
		if d.Of == metrics.OfRegistry && !strings.Contains(text, "\n# TYPE "+d.Name+" gauge\n") {
			t.Errorf("%s is declared and not told", d.Name)
		}
	}
}

// TestCollector_WithoutDatabase checks that the process's own metrics are told when the queue cannot
// be.
func TestCollector_WithoutDatabase(t *testing.T) {
	text := scrape(t, queue{err: registry.ErrUnavailable})
	if !strings.Contains(text, "\nholdfast_queue_up 0\n") || strings.Contains(text, "\nholdfast_items") || !strings.Contains(text, "\ngo_goroutines ") {
		t.Errorf("told: %s", text)
	}
}

// TestGeneratedMetrics writes the tables of docs/metrics.md.
func TestGeneratedMetrics(t *testing.T) {
	for _, part := range []struct {
		name string
		has  func(metrics.Declared) bool
	}{
		{"durations", func(d metrics.Declared) bool { return d.Of == metrics.OfProcess && d.Kind == "histogram" }},
		{"counts", func(d metrics.Declared) bool { return d.Of == metrics.OfProcess && d.Kind != "histogram" }},
		{"state", func(d metrics.Declared) bool { return d.Of == metrics.OfRegistry }},
	} {
		var b strings.Builder
		b.WriteString("| metric | labels | what it tells |\n| --- | --- | --- |\n")
		for _, d := range metrics.All() {
			if part.has(d) {
				labels := ""
				if len(d.Labels) > 0 {
					labels = "`" + strings.Join(d.Labels, "`, `") + "`"
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Name, labels, d.Help)
			}
		}
		generatedtest.Part(t, "docs/metrics.md", part.name+" of metrics", b.String())
	}
}
