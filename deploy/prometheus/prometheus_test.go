// Package prometheus_test checks the alerts for Prometheus and the dashboard for Grafana against the
// metrics that exist, the documents, and Prometheus's own tool.
package prometheus_test

import (
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/metrics"
	_ "github.com/holdfast/holdfast/metrics/state" // declares its metrics
)

// known returns the labels of each series that may be asked for, by its name.
func known(t *testing.T) map[string][]string {
	t.Helper()
	series := map[string][]string{"up": {"job"}}
	for _, d := range metrics.All() {
		series[d.Name] = d.Labels
		if d.Kind == "histogram" {
			delete(series, d.Name)
			series[d.Name+"_count"], series[d.Name+"_sum"] = d.Labels, d.Labels
			series[d.Name+"_bucket"] = append(slices.Clone(d.Labels), "le")
		}
	}
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewDBStatsCollector(&sql.DB{}, "read"))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		series[f.GetName()] = labels
	}
	return series
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	selector = regexp.MustCompile(`\b((?:holdfast|go|process)_\w+|up)\b(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*[=!]`)
	grouping = regexp.MustCompile(`\b(?:by|on|group_left) \(?([^)(]*)\)`)
)

// wrongIn returns what an expression names that does not exist.
func wrongIn(expr string, series map[string][]string) (wrong []string) {
	expr = quoted.ReplaceAllString(expr, `""`)
	labels, found := []string{}, false
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		has, ok := series[m[1]]
		if !ok {
			wrong = append(wrong, m[1])
		}
		found = true
		labels = append(labels, has...)
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(has, l[1]) {
				wrong = append(wrong, m[1]+"{"+l[1]+"}")
			}
		}
	}
	if !found {
		wrong = append(wrong, "no metric")
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, l := range strings.FieldsFunc(g[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains(labels, l) {
				wrong = append(wrong, "by ("+l+")")
			}
		}
	}
	return wrong
}

type rule struct {
	Alert, Expr string
	Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal(read(t, "alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) == 0 || len(file.Groups[0].Rules) == 0 {
		t.Fatal("alerts.yaml has no rules")
	}
	return file.Groups[0].Rules
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAlerts checks that alerts ask for metrics and labels that exist, and that each leads to its
// section of docs/alerts.md and has a test in alerts_test.yaml.
func TestAlerts(t *testing.T) {
	series, docs, tests := known(t), string(read(t, "../../docs/alerts.md")), string(read(t, "alerts_test.yaml"))
	sections := regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(docs, -1)
	for i, r := range rules(t) {
		for _, wrong := range wrongIn(r.Expr, series) {
			t.Errorf("%s: %s does not exist", r.Alert, wrong)
		}
		if i >= len(sections) || sections[i][1] != r.Alert {
			t.Fatalf("section %d of docs/alerts.md is not %s", i+1, r.Alert)
		}
		if !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/alerts.md#"+strings.ToLower(r.Alert)) || r.Annotations["summary"] == "" {
			t.Errorf("%s: annotations %q", r.Alert, r.Annotations)
		}
		if !strings.Contains(tests, `alertname="`+r.Alert+`"`) {
			t.Errorf("%s has no test in alerts_test.yaml", r.Alert)
		}
	}
	if n := len(rules(t)); len(sections) != n {
		t.Errorf("docs/alerts.md has %d sections for %d alerts", len(sections), n)
	}
	for expr, want := range map[string]string{
		`sum by (stages) (holdfast_items)`:             "by (stages)",
		`holdfast_items{color="red"} > 0`:              "holdfast_items{color}",
		`rate(holdfast_item_total[5m])`:                "holdfast_item_total",
		`holdfast_step_duration_seconds{stage="scan"}`: "holdfast_step_duration_seconds",
	} {
		if wrong := wrongIn(expr, series); !slices.Contains(wrong, want) {
			t.Errorf("%s: %q, want %q", expr, wrong, want)
		}
	}
}

// TestDashboard checks that the dashboard asks for metrics and labels that exist.
func TestDashboard(t *testing.T) {
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(read(t, "dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	if len(board.Panels) == 0 {
		t.Fatal("the dashboard is empty")
	}
	series, legend := known(t), regexp.MustCompile(`\{\{(\w+)\}\}`)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			for _, wrong := range wrongIn(target.Expr, series) {
				t.Errorf("%s: %s does not exist", p.Title, wrong)
			}
			for _, l := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + l[1] + `\b`).MatchString(target.Expr) {
					t.Errorf("%s: its legend has %s, which %s does not keep", p.Title, l[1], target.Expr)
				}
			}
		}
	}
}

// TestPromtool has Prometheus's own tool check the rules, and run their tests.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		proctest.Absent(t, "promtool (Debian: prometheus)", err)
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
