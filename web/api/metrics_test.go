package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// TestMetrics takes tasks through each outcome, and reads what became of it from /metrics.
func TestMetrics(t *testing.T) {
	b := newBench(t)
	metrics := func() string {
		answer, text := b.send(t, http.MethodGet, "/metrics", "", "Authorization", "Bearer "+tokenText(registry.RoleViewer))
		if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
			t.Fatalf("%d %s: %s", answer.StatusCode, answer.Header.Get("Content-Type"), text)
		}
		return text
	}
	p := b.program(t, "counter", "measured") // no other test has the function
	tell[struct{}](p, "/functions", `{"functions":[{"name":"measured","max_attempts":3}]}`, http.StatusNoContent)
	b.submitTask(t, "measured", `{}`)
	waiting := b.submitTask(t, "measured", `{}`, registry.Requirement{ItemID: b.submitTask(t, "measured", `{}`), WaitFor: registry.WaitSettled})
	b.pass(10 * time.Minute)
	ready := metrics()
	run := p.claim("measured")
	running := metrics()
	b.pass(time.Second)
	tell[wire.TaskVerdict](p, at(run, "settle"), `{"outcome":"done"}`, http.StatusOK)
	tell[wire.TaskVerdict](p, at(p.claim("measured"), "settle"), `{"outcome":"fatal","error":"no"}`, http.StatusOK)
	run = p.claim("measured")
	if run.ID != waiting {
		t.Fatalf("claimed %+v, want the one that waited", run)
	}
	tell[wire.TaskVerdict](p, at(run, "settle"), `{"outcome":"retry","error":"not yet"}`, http.StatusOK)
	answer, _ := p.post(at(run, "settle"), `{"outcome":"done"}`)
	if answer.StatusCode != http.StatusConflict {
		t.Errorf("a second outcome: %d", answer.StatusCode)
	}
	b.pass(time.Hour)
	run = p.claim("measured")
	_, err := b.store.Sweep(t.Context(), time.Minute)
	must(t, err)
	for range 10 { // the sweep is quiet after a gap
		b.pass(20 * time.Second)
		_, err = b.store.Sweep(t.Context(), time.Minute)
		must(t, err)
	}
	b.pass(time.Hour)
	run = p.claim("measured")
	_, err = b.store.Command(t.Context(), registry.Command{ItemID: run.ID, Act: registry.ActCancel, Actor: "admin", Confirmed: true})
	must(t, err)
	b.send(t, http.MethodGet, "/api/v1/items/unknown", "", "Authorization", "Bearer "+tokenText(registry.RoleViewer))
	end := metrics()
	for _, want := range []struct{ in, line string }{
		{ready, `holdfast_items{stage="run:measured",state="ready"} 2`},
		{ready, `holdfast_items{stage="run:measured",state="waiting"} 1`},
		{ready, `holdfast_oldest_ready_age_seconds{stage="run:measured"} `},
		{running, `holdfast_items{stage="run:measured",state="running"} 1`},
		{running, `holdfast_dispatch_duration_seconds_bucket{stage="run:measured",le="262.144"} 0`},
		{running, `holdfast_dispatch_duration_seconds_bucket{stage="run:measured",le="1048.576"} 1`},
		{running, `holdfast_scan_duration_seconds_count{pass="ready"} `},
		{running, `holdfast_submit_duration_seconds_count{operation="task"} `},
		{end, `holdfast_attempt_duration_seconds_bucket{outcome="done",stage="run:measured",le="0.256"} 0`},
		{end, `holdfast_attempt_duration_seconds_count{outcome="done",stage="run:measured"} 1`},
		{end, `holdfast_attempt_duration_seconds_count{outcome="failed",stage="run:measured"} 1`},
		{end, `holdfast_attempt_duration_seconds_count{outcome="retry",stage="run:measured"} 1`},
		{end, `holdfast_attempt_duration_seconds_count{outcome="lost",stage="run:measured"} 1`},
		{end, `holdfast_attempt_duration_seconds_count{outcome="withdrawn",stage="run:measured"} 1`},
		{end, `holdfast_settle_duration_seconds_count{outcome="done"} `},
		{end, `holdfast_settle_duration_seconds_count{outcome="refused"} `},
		{end, `holdfast_scan_duration_seconds_count{pass="lost"} `},
		{end, `holdfast_http_request_duration_seconds_count{method="GET",route="/metrics",status="2xx"} `},
		{end, `holdfast_http_request_duration_seconds_count{method="POST",route="/api/v1/functions",status="2xx"} `},
		{end, `holdfast_http_request_duration_seconds_count{method="GET",route="/api/v1/items/{id}",status="4xx"} `},
		{end, `holdfast_build_info{`},
		{end, `go_sql_open_connections{db_name="read"} `},
		{end, `holdfast_database_errors_total{connection="write"} `}, // other tests of this process stop a database
		{end, `holdfast_sweep_age_seconds `},
		// The one that waited could start when the other ended, a moment before its claim.
		{end, `holdfast_dispatch_duration_seconds_bucket{stage="run:measured",le="262.144"} 1`},
	} {
		if !strings.Contains(want.in, "\n"+want.line) {
			t.Errorf("no line %s", want.line)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(end) {
			if strings.Contains(line, "measured") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

// TestMetrics_Roles checks who reads metrics: they count items of all collections.
func TestMetrics_Roles(t *testing.T) {
	b := newBench(t)
	for role, status := range map[registry.Role]int{
		registry.RoleAdmin: http.StatusOK, registry.RoleOperator: http.StatusOK, registry.RoleViewer: http.StatusOK,
		registry.RoleDepositor: http.StatusForbidden, registry.RoleWorker: http.StatusForbidden, "": http.StatusUnauthorized,
	} {
		header := []string{"Authorization", "Bearer " + tokenText(role)}
		if role == "" {
			header = []string{"Authorization", ""}
		}
		if answer, text := b.send(t, http.MethodGet, "/metrics", "", header...); answer.StatusCode != status {
			t.Errorf("%q: %d %s, want %d", role, answer.StatusCode, text, status)
		}
	}
}
