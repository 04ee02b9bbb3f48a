package firstworker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/internal/awstest"
	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/periodic/firstworker"
	"github.com/holdfast/holdfast/registry"
)

// cluster is an Amazon ECS with one cluster, called archive.
type cluster struct {
	mu      sync.Mutex
	count   map[registry.Stage]int    // of services, by stage
	status  map[registry.Stage]string // of those that are not active
	refuses map[string]string         // the errors of operations, or of one with a stage: "UpdateService expand"
	asked   []string                  // operations with their stages
	lowered []registry.Stage
	read    func() // is called when DescribeServices has read its answer, before that is sent
}

// serve runs the cluster on this machine.
func (c *cluster) serve(t *testing.T) {
	t.Helper()
	awstest.Serve(t, "ECS", func(w http.ResponseWriter, r *http.Request) {
		var input map[string]any
		if err := json.NewDecoder(r.Body).Decode(&input); err != nil || !strings.Contains(r.Header.Get("Authorization"), awstest.Region+"/ecs/aws4_request") {
			t.Errorf("%v, signed by %q", err, r.Header.Get("Authorization"))
		}
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		answer, fault := c.answer(operation, input)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if fault != "" {
			w.WriteHeader(http.StatusBadRequest)
			answer = map[string]any{"__type": fault, "message": "no"}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
		if operation == "DescribeServices" && c.read != nil {
			c.read()
		}
	})
}

func (c *cluster) answer(operation string, input map[string]any) (answer map[string]any, fault string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if input["cluster"] != "archive" {
		return nil, "ClusterNotFoundException"
	}
	if fault := c.refuses[operation]; fault != "" {
		return nil, fault
	}
	switch operation {
	case "DescribeServices":
		var services, failures []any
		for _, name := range input["services"].([]any) {
			stage := registry.Stage(name.(string))
			if count, ok := c.count[stage]; ok {
				status := c.status[stage]
				if status == "" {
					status = "ACTIVE"
				}
				// With a deployment that is under way.
				services = append(services, map[string]any{
					"serviceName": name, "status": status, "desiredCount": count, "runningCount": 0,
					"deployments": []any{map[string]any{"status": "PRIMARY", "rolloutState": "IN_PROGRESS"}},
				})
			} else {
				failures = append(failures, map[string]any{"reason": "MISSING", "arn": name})
			}
		}
		c.asked = append(c.asked, fmt.Sprint(operation, input["services"]))
		return map[string]any{"services": services, "failures": failures}, ""
	case "UpdateService":
		stage, count := registry.Stage(input["service"].(string)), int(input["desiredCount"].(float64))
		c.asked = append(c.asked, fmt.Sprintf("%s %s %d, %d values", operation, stage, count, len(input)))
		if fault := c.refuses[operation+" "+string(stage)]; fault != "" {
			return nil, fault
		}
		if count < c.count[stage] {
			c.lowered = append(c.lowered, stage)
		}
		c.count[stage] = count
		return map[string]any{"service": map[string]any{"serviceName": stage, "desiredCount": count}}, ""
	}
	return nil, "InvalidAction"
}

// services are those of the cluster, which log to a text.
func services() (*firstworker.Services, *bytes.Buffer) {
	log := new(bytes.Buffer)
	return &firstworker.Services{Cluster: "archive", Log: slog.New(slog.NewTextHandler(log, nil))}, log
}

// TestStart: services that have no worker and want none get one, whatever is being deployed, and nothing else of
// them is changed. Others are left alone. A stage that may have no workers gets none.
func TestStart(t *testing.T) {
	c := &cluster{count: map[registry.Stage]int{registry.Expand: 0, registry.Download: 3, registry.Scan: 0, registry.Process: 1}}
	c.serve(t)
	s, log := services()
	s.Most = map[registry.Stage]int{registry.Expand: 5, registry.Scan: 0}
	stages := []registry.Stage{registry.Expand, registry.Download, registry.Scan, registry.Process}
	for range 2 {
		if started := s.Start(t.Context(), stages); !slices.Equal(started, []registry.Stage{registry.Expand, registry.Download, registry.Process}) {
			t.Errorf("%v are started", started)
		}
	}
	want := []string{"DescribeServices[expand download process]", "UpdateService expand 1, 3 values", "DescribeServices[expand download process]"}
	if !slices.Equal(c.asked, want) || log.Len() > 0 {
		t.Errorf("asked %q, logged %s; want %q", c.asked, log, want)
	}
	if started := s.Start(t.Context(), []registry.Stage{registry.Scan}); len(started) > 0 || len(c.asked) != len(want) {
		t.Errorf("a stage that may have no workers: %v are started, asked %q", started, c.asked)
	}
}

// TestStart_AllStages: ECS describes few services in one request.
func TestStart_AllStages(t *testing.T) {
	c := &cluster{count: map[registry.Stage]int{}}
	for _, stage := range registry.Stages() {
		c.count[stage] = 0
	}
	c.serve(t)
	s, _ := services()
	started := s.Start(t.Context(), registry.Stages())
	for stage, count := range c.count {
		if count != 1 {
			t.Errorf("%s has %d workers", stage, count)
		}
	}
	for _, asked := range c.asked {
		if len(strings.Fields(asked)) > 10 {
			t.Errorf("asked %s", asked)
		}
	}
	if !slices.Equal(started, registry.Stages()) {
		t.Errorf("%v are started", started)
	}
}

// TestStart_TwoAtOnce: two processes that both find no workers start one of each stage together, and lower nothing
// that an alarm does meanwhile.
func TestStart_TwoAtOnce(t *testing.T) {
	c := &cluster{count: map[registry.Stage]int{registry.Expand: 0, registry.Report: 0}}
	var both sync.WaitGroup
	both.Add(2)
	c.read = func() {
		both.Done()
		both.Wait()
		c.mu.Lock()
		c.count[registry.Report] = max(1, c.count[registry.Report]) // the alarm
		c.mu.Unlock()
	}
	c.serve(t)
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			s, _ := services()
			if started := s.Start(t.Context(), []registry.Stage{registry.Expand, registry.Report}); len(started) != 2 {
				t.Errorf("only %v are started", started)
			}
		})
	}
	asking.Wait()
	if want := map[registry.Stage]int{registry.Expand: 1, registry.Report: 1}; !maps.Equal(c.count, want) || len(c.lowered) > 0 {
		t.Errorf("services want %v workers, %v were lowered; want %v", c.count, c.lowered, want)
	}
}

// counted returns the metric of first workers.
func counted(t *testing.T) (done, failed int) {
	t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for outcome, n := range map[string]*int{"done": &done, "failed": &failed} {
		_, rest, _ := strings.Cut(w.Body.String(), `holdfast_first_workers_total{outcome="`+outcome+`"} `)
		if _, err := fmt.Sscan(rest, n); err != nil {
			t.Fatal(err)
		}
	}
	return done, failed
}

// TestStart_Refused: what is refused, throttled or not there is told, counted, logged once, and tried
// again. What does not depend on it goes on.
func TestStart_Refused(t *testing.T) {
	stages := []registry.Stage{registry.Expand, registry.Report}
	for name, tt := range map[string]struct {
		cluster *cluster
		started []registry.Stage
		says    string
	}{
		"no right to look":         {&cluster{refuses: map[string]string{"DescribeServices": "AccessDeniedException"}}, nil, "AccessDenied"},
		"throttled":                {&cluster{refuses: map[string]string{"DescribeServices": "ThrottlingException"}}, nil, "Throttling"},
		"no right to start one":    {&cluster{refuses: map[string]string{"UpdateService report": "AccessDeniedException"}}, stages[:1], "AccessDenied"},
		"a service is being ended": {&cluster{status: map[registry.Stage]string{registry.Report: "DRAINING"}}, stages[:1], "no service report"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cluster.count = map[registry.Stage]int{registry.Expand: 0, registry.Report: 0}
			tt.cluster.serve(t)
			s, log := services()
			doneBefore, failedBefore := counted(t)
			for range 2 {
				if started := s.Start(t.Context(), stages); !slices.Equal(started, tt.started) {
					t.Errorf("%v are started, want %v", started, tt.started)
				}
			}
			if n := strings.Count(log.String(), "starts no first workers"); n != 1 || !strings.Contains(log.String(), tt.says) {
				t.Errorf("logged %d failures, want one that says %s:\n%s", n, tt.says, log)
			}
			tt.cluster.refuses, tt.cluster.status = nil, nil
			if started := s.Start(t.Context(), stages); !slices.Equal(started, stages) || tt.cluster.count[registry.Expand] != 1 || tt.cluster.count[registry.Report] != 1 {
				t.Errorf("afterwards %v are started, and services want %v workers", started, tt.cluster.count)
			}
			if !strings.Contains(log.String(), "starts first workers again") {
				t.Errorf("logged no recovery:\n%s", log)
			}
			if done, failed := counted(t); done != doneBefore+len(stages) || failed != failedBefore+2*(len(stages)-len(tt.started)) {
				t.Errorf("counted %d done and %d failed", done-doneBefore, failed-failedBefore)
			}
		})
	}
}

// silent is an ECS that does not answer.
type silent struct{}

func (silent) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestStart_Silent: an ECS that does not answer delays little.
func TestStart_Silent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := services()
		firstworker.AskBy(s, silent{})
		begun := time.Now()
		started := s.Start(t.Context(), registry.Stages())
		if took := time.Since(begun); len(started) > 0 || took > firstworker.Timeout || !strings.Contains(log.String(), "deadline") {
			t.Errorf("after %v %v are started:\n%s", took, started, log)
		}
	})
}
