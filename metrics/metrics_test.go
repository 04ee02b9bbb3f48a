package metrics_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
)

// queue tells a status, or an error.
type queue struct {
	registry.Queue
	status registry.QueueStatus
	err    error
}

func (q queue) QueueStatus(context.Context) (registry.QueueStatus, error) { return q.status, q.err }

// observed makes one observation of each timer, once for all tests: a process has one set of them.
var observed = sync.OnceFunc(func() {
	for _, m := range []metrics.Timer{metrics.Dispatch, metrics.Step} {
		m.Observe(time.Second, "run:count")
	}
	metrics.Attempt.Observe(-time.Second, "run:count", "done")
	metrics.Settle.Observe(0, "done")
	metrics.Submit.Observe(0, "task")
	metrics.Scan.Observe(0, "ready")
	metrics.Removal.Observe(0, "curation")
	metrics.Delivery.Observe(0, "callback", metrics.Outcome(errors.New("no answer")))
})

func scrape(t *testing.T, q queue) string {
	t.Helper()
	observed()
	w := httptest.NewRecorder()
	metrics.Handler(metrics.Queue{Registry: q, Log: slog.New(slog.DiscardHandler)}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func status() registry.QueueStatus {
	hourAgo := time.Now().Add(-time.Hour)
	return registry.QueueStatus{
		Accepting: registry.Accepting{On: true}, Damaged: 2, OneCopy: 3,
		Stages: []registry.StageQueue{
			{Stage: registry.Download, Ready: 5, Waiting: 6, Held: 7, Running: 8, Limit: 9, Rung: 10, Capacity: 12, Free: 4, OldestReady: &hourAgo},
			{Stage: "run:count"},
		},
	}
}

// TestHandler checks values, Prometheus's rules on names and help texts, and that docs/metrics.md
// describes each metric and no others.
func TestHandler(t *testing.T) {
	text := scrape(t, queue{status: status()})
	for _, line := range []string{
		`holdfast_items{stage="download",state="ready"} 5`, `holdfast_items{stage="download",state="waiting"} 6`,
		`holdfast_items{stage="download",state="held"} 7`, `holdfast_items{stage="download",state="running"} 8`,
		`holdfast_slots{stage="download",state="all"} 12`, `holdfast_slots{stage="download",state="free"} 4`,
		`holdfast_messages{stage="download"} 10`, `holdfast_item_limit{stage="download"} 9`, `holdfast_oldest_ready_age_seconds{stage="run:count"} 0`,
		`holdfast_accepting 1`, `holdfast_paused 0`, `holdfast_damaged_files 2`, `holdfast_one_copy_collections 3`, `holdfast_failing_subscriptions 0`, `holdfast_queue_up 1`,
		`holdfast_dispatch_duration_seconds_bucket{stage="run:count",le="0.256"} 0`, `holdfast_dispatch_duration_seconds_bucket{stage="run:count",le="1.024"} 1`,
		`holdfast_attempt_duration_seconds_sum{outcome="done",stage="run:count"} 0`, `holdfast_delivery_duration_seconds_count{kind="callback",outcome="failed"} 1`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if !regexp.MustCompile(`\nholdfast_oldest_ready_age_seconds\{stage="download"\} 36\d\d`).MatchString(text) {
		t.Error("the age of the oldest ready item is not an hour")
	}
	if strings.Contains(text, `holdfast_item_limit{stage="run:count"}`) {
		t.Error("a stage without a limit has one")
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
	docs, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	named := func(pattern, text string) (names []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	have, told := named(`# TYPE (holdfast_\w+)`, text), named("\\| `(holdfast_\\w+)`", string(docs))
	if !slices.Equal(have, told) {
		t.Errorf("the process has %v\ndocs/metrics.md has %v", have, told)
	}
}

// TestHandler_WithoutDatabase checks that the process's own metrics are told when the queue cannot
// be.
func TestHandler_WithoutDatabase(t *testing.T) {
	text := scrape(t, queue{err: registry.ErrUnavailable})
	if !strings.Contains(text, "\nholdfast_queue_up 0\n") || strings.Contains(text, "holdfast_items") || !strings.Contains(text, "holdfast_scan_duration_seconds_count") {
		t.Errorf("told: %s", text)
	}
}
