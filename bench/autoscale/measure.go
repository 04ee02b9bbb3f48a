package autoscale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prometheus "github.com/prometheus/common/model"

	"github.com/holdfast/holdfast/registry"
)

// Names of the metrics that have the service times.
const (
	attempts = "holdfast_attempt_duration_seconds" // of the Registry and of `holdfast up`, with outcomes
	steps    = "holdfast_step_duration_seconds"    // of each process with workers
	moved    = "holdfast_step_bytes_total"
	cpu      = "process_cpu_seconds_total"
)

// Scrape returns what a process tells at the address of its metrics. token is sent unless it is empty.
func Scrape(ctx context.Context, address, token string) (text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// Measure adds up what processes tell at /metrics: the attempts that were done, by stage, and, from
// the processes that serve one stage only, the processor time of its steps. An error says what cannot
// be read. Stages of which no attempt was done are missing from the result.
func Measure(scrapes ...io.Reader) (t Times, err error) {
	of := map[registry.Stage]*StageTimes{}
	stage := func(m *dto.Metric) *StageTimes {
		name := registry.Stage(label(m, "stage"))
		if of[name] == nil {
			of[name] = &StageTimes{Stage: name}
		}
		return of[name]
	}
	for i, scrape := range scrapes {
		parser := expfmt.NewTextParser(prometheus.UTF8Validation)
		families, err := parser.TextToMetricFamilies(scrape)
		if err != nil {
			return t, fmt.Errorf("metrics of process %d: %w", i+1, err)
		}
		for _, m := range families[attempts].GetMetric() {
			if label(m, "outcome") == "done" {
				stage(m).add(m.GetHistogram())
			}
		}
		for _, m := range families[moved].GetMetric() {
			stage(m).Bytes += int64(m.GetCounter().GetValue())
		}
		if serves, used := families[steps].GetMetric(), families[cpu].GetMetric(); len(serves) == 1 && len(used) == 1 && families[attempts] == nil {
			stage(serves[0]).CPUSeconds += used[0].GetCounter().GetValue() + used[0].GetGauge().GetValue()
		}
	}
	for _, name := range registry.Stages() {
		if s := of[name]; s != nil && s.Steps > 0 {
			s.Seconds = math.Round(s.Seconds*1e6) / 1e6
			s.CPUSeconds = math.Round(s.CPUSeconds*1e3) / 1e3
			t.Stages = append(t.Stages, *s)
		}
	}
	if t.Stages == nil {
		return t, errors.New("no attempt was done: the metrics of a Registry, or of holdfast up, have none")
	}
	return t, nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// add adds a histogram, whose buckets are cumulative. What took longer than the last bound counts as
// four times that.
func (s *StageTimes) add(h *dto.Histogram) {
	s.Steps += int64(h.GetSampleCount())
	s.Seconds += h.GetSampleSum()
	var before, last float64
	for _, b := range h.GetBucket() {
		most := b.GetUpperBound()
		if math.IsInf(most, 1) {
			most = 4 * last
		}
		last = most
		n := float64(b.GetCumulativeCount())
		if n == before {
			continue
		}
		i, known := slices.BinarySearchFunc(s.Buckets, most, func(b Bucket, most float64) int {
			switch {
			case b.Most < most:
				return -1
			case b.Most > most:
				return 1
			}
			return 0
		})
		if !known {
			s.Buckets = slices.Insert(s.Buckets, i, Bucket{Most: most})
		}
		s.Buckets[i].Steps += int64(n - before)
		before = n
	}
}
