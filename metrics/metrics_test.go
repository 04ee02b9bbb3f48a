package metrics_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/holdfast/holdfast/metrics"
)

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

// TestDeclarations checks Prometheus's rules on names and help texts, and that what the process serves
// is declared.
func TestDeclarations(t *testing.T) {
	observed()
	w := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	text := w.Body.String()
	for _, line := range []string{
		`holdfast_dispatch_duration_seconds_bucket{stage="run:count",le="0.256"} 0`, `holdfast_dispatch_duration_seconds_bucket{stage="run:count",le="1.024"} 1`,
		`holdfast_attempt_duration_seconds_sum{outcome="done",stage="run:count"} 0`, `holdfast_delivery_duration_seconds_count{kind="callback",outcome="failed"} 1`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
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
	declared := map[string]string{}
	for _, d := range metrics.All() {
		if declared[d.Name] != "" {
			t.Errorf("%s is declared twice", d.Name)
		}
		declared[d.Name] = d.Kind
	}
	for _, m := range regexp.MustCompile(`# TYPE (holdfast_\w+) (\w+)`).FindAllStringSubmatch(text, -1) {
		if declared[m[1]] != m[2] {
			t.Errorf("%s is a %s, but declared as %q", m[1], m[2], declared[m[1]])
		}
	}
}

// TestRedisPool: time-outs add up over scrapes and over pools.
func TestRedisPool(t *testing.T) {
	told := func() string {
		w := httptest.NewRecorder()
		metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return regexp.MustCompile(`(?m)^holdfast_redis_pool_timeouts_total .*$`).FindString(w.Body.String())
	}
	timeouts := uint32(3)
	count := func() (total, idle, n uint32) { return 2, 1, timeouts }
	metrics.RedisPool(count)
	first := told()
	timeouts = 5
	second := told()
	timeouts = 1
	metrics.RedisPool(count)
	if third := told(); first != "holdfast_redis_pool_timeouts_total 3" || second != "holdfast_redis_pool_timeouts_total 5" || third != "holdfast_redis_pool_timeouts_total 6" {
		t.Errorf("told %q, %q, %q", first, second, third)
	}
}
