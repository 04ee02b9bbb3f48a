package cloudwatch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go/encoding/cbor"

	"github.com/holdfast/holdfast/internal/awstest"
	"github.com/holdfast/holdfast/periodic/cloudwatch"
	"github.com/holdfast/holdfast/registry"
)

// still is a feed without events.
type still struct{}

func (still) FeedEnd(context.Context) (int64, error) { return 0, nil }

func (still) AwaitFeed(ctx context.Context, _ int64) error {
	<-ctx.Done()
	return ctx.Err()
}

// queue is a Registry with this queue.
type queue struct {
	still
	status registry.QueueStatus
}

func (q queue) QueueStatus(context.Context) (registry.QueueStatus, error) {
	return q.status, nil
}

// serve runs a CloudWatch on this machine.
func serve(t *testing.T, handler http.HandlerFunc) {
	t.Helper()
	awstest.Serve(t, "CLOUDWATCH", handler)
}

// metric is what a request says of one figure.
type metric struct {
	Name, Stage, Unit string
	Value             float64
	Seconds           float64 // its resolution
}

// decode reads a request of PutMetricData.
func decode(r *http.Request) (namespace string, all []metric, err error) {
	body := r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(r.Body); err != nil {
			return "", nil, err
		}
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return "", nil, err
	}
	value, err := cbor.Decode(text)
	if err != nil {
		return "", nil, err
	}
	input, ok := value.(cbor.Map)
	data, listed := input["MetricData"].(cbor.List)
	if !ok || !listed {
		return "", nil, errors.New("no MetricData")
	}
	for _, d := range data {
		of := d.(cbor.Map)
		dimensions := of["Dimensions"].(cbor.List)
		m := metric{Name: string(of["MetricName"].(cbor.String)), Unit: string(of["Unit"].(cbor.String)), Value: number(of["Value"]), Seconds: number(of["StorageResolution"])}
		if dimension := dimensions[0].(cbor.Map); len(dimensions) == 1 && dimension["Name"] == cbor.String("Stage") {
			m.Stage = string(dimension["Value"].(cbor.String))
		}
		all = append(all, m)
	}
	return string(input["Namespace"].(cbor.String)), all, nil
}

func number(v cbor.Value) float64 {
	switch n := v.(type) {
	case cbor.Float64:
		return float64(n)
	case cbor.Float32:
		return float64(n)
	case cbor.Uint:
		return float64(n)
	}
	return -1
}

// TestPublisher_AllStages: one request has the figures of each stage of the pipeline, and none of a
// function.
func TestPublisher_AllStages(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var requests int
	var sent []metric
	serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		namespace, all, err := decode(r)
		if err != nil || namespace != "Archive" || !strings.HasSuffix(r.URL.Path, "/PutMetricData") || !strings.Contains(r.Header.Get("Authorization"), "eu-central-1/monitoring") {
			t.Errorf("%s %s of namespace %q: %v", r.Method, r.URL, namespace, err)
		}
		sent = all
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		cancel()
	})
	q := queue{status: registry.QueueStatus{Stages: []registry.StageQueue{
		{Stage: registry.Download, Ready: 340, AtLimit: 40, ServiceSeconds: 2, Capacity: 60, Workers: 2, Running: 45},
		{Stage: registry.Process, Ready: 5, ServiceSeconds: 64, Running: 3}, // nobody works: as for one worker
		{Stage: registry.Record},
		{Stage: "run:link-check", Ready: 7},
	}}}
	(&cloudwatch.Publisher{Registry: q, Namespace: "Archive", Log: slog.New(slog.DiscardHandler)}).Run(ctx)
	want := []metric{
		{"BacklogSeconds", "download", "Seconds", 10, 1},
		{"SlotUtilization", "download", "Percent", 75, 1},
		{"Needed", "download", "None", 1, 1},
		{"LiveWorkers", "download", "Count", 2, 1},
		{"BacklogSeconds", "process", "Seconds", 10, 1},
		{"SlotUtilization", "process", "Percent", 0, 1},
		{"Needed", "process", "None", 1, 1},
		{"LiveWorkers", "process", "Count", 0, 1},
		{"BacklogSeconds", "record", "Seconds", 0, 1},
		{"SlotUtilization", "record", "Percent", 0, 1},
		{"Needed", "record", "None", 1, 1},
		{"LiveWorkers", "record", "Count", 0, 1},
	}
	if requests != 1 || !slices.Equal(sent, want) {
		t.Errorf("%d requests sent %v, want %v", requests, sent, want)
	}
}

// TestPublisher_Outage: while CloudWatch fails, that is logged once; then that it works again.
func TestPublisher_Outage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		n++
		switch n {
		case 1, 2, 3:
			w.WriteHeader(http.StatusInternalServerError)
		case 5:
			cancel()
		}
	})
	var log bytes.Buffer
	p := &cloudwatch.Publisher{Registry: queue{}, Namespace: "Archive", Log: slog.New(slog.NewTextHandler(&log, nil)), Every: time.Millisecond}
	p.Run(ctx)
	if failed, works := strings.Count(log.String(), "CloudWatch failed"), strings.Count(log.String(), "CloudWatch again"); n != 5 || failed != 1 || works != 1 {
		t.Errorf("%d requests, logged %d failures and %d recoveries:\n%s", n, failed, works, log.String())
	}
}

// slow is a Registry that needs some time to count its queue. It notes when it is asked, and for how long.
type slow struct {
	still
	begun *[]time.Time
	took  *[]time.Duration
}

func (s slow) QueueStatus(context.Context) (registry.QueueStatus, error) {
	begun := time.Now()
	time.Sleep(20 * time.Millisecond)
	*s.begun, *s.took = append(*s.begun, begun), append(*s.took, time.Since(begun))
	return registry.QueueStatus{}, nil
}

// TestPublisher_LargeQueue: counting takes at most a fifth of the time.
func TestPublisher_LargeQueue(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q := slow{begun: &[]time.Time{}, took: &[]time.Duration{}}
	serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		if len(*q.begun) == 3 {
			cancel()
		}
	})
	(&cloudwatch.Publisher{Registry: q, Namespace: "Archive", Log: slog.New(slog.DiscardHandler), Every: time.Millisecond}).Run(ctx)
	for i, took := range (*q.took)[:2] {
		if gap := (*q.begun)[i+1].Sub((*q.begun)[i]); gap < 5*took {
			t.Errorf("count %d took %v, and the next began %v after it had", i, took, gap)
		}
	}
}

// changing is a Registry whose queue changes. Each change is an event.
type changing struct {
	mu     sync.Mutex
	status registry.QueueStatus
	end    int64
	news   chan struct{}
}

func (c *changing) set(stages ...registry.StageQueue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Stages, c.end = stages, c.end+1
	close(c.news)
	c.news = make(chan struct{})
}

func (c *changing) QueueStatus(context.Context) (registry.QueueStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status, nil
}

func (c *changing) FeedEnd(context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end, nil
}

func (c *changing) AwaitFeed(ctx context.Context, after int64) error {
	c.mu.Lock()
	end, news := c.end, c.news
	c.mu.Unlock()
	if end > after {
		return nil
	}
	select {
	case <-news:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// client is a CloudWatch that notes when a request came, and which stages are needed and have no worker: its
// alarms start one.
type client struct {
	begun   time.Time
	at      []time.Duration
	alarmed [][]registry.Stage
}

func (c *client) Do(r *http.Request) (*http.Response, error) {
	_, all, _ := decode(r) // an empty queue has no figures
	figure := func(name string, of registry.Stage) float64 {
		for _, m := range all {
			if m.Name == name && m.Stage == string(of) {
				return m.Value
			}
		}
		return 0
	}
	var alarmed []registry.Stage
	for _, stage := range registry.Stages() {
		if figure(cloudwatch.Needed, stage) > 0 && figure(cloudwatch.LiveWorkers, stage) < 1 {
			alarmed = append(alarmed, stage)
		}
	}
	c.at, c.alarmed = append(c.at, time.Since(c.begun)), append(c.alarmed, alarmed)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Smithy-Protocol": {"rpc-v2-cbor"}}, Body: http.NoBody, Request: r}, nil
}

// TestPublisher_FirstWorkers: first workers are asked for when work comes, and each ten seconds until they live;
// not for what is paused, and within a second when it no longer is. CloudWatch's alarms start those that could
// not be had, and no others.
func TestPublisher_FirstWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q, c := &changing{news: make(chan struct{})}, &client{begun: time.Now()}
		asked := map[time.Duration][]registry.Stage{}
		refused := map[registry.Stage]bool{registry.Fixity: true}
		p := &cloudwatch.Publisher{Registry: q, Namespace: "Archive", Log: slog.New(slog.DiscardHandler), Start: func(_ context.Context, stages []registry.Stage) []registry.Stage {
			asked[time.Since(c.begun)/time.Second] = slices.Clone(stages)
			return slices.DeleteFunc(stages, func(s registry.Stage) bool { return refused[s] })
		}}
		cloudwatch.SendBy(p, c)
		done := make(chan struct{})
		go func() { p.Run(ctx); close(done) }()
		wait := func(until time.Duration) {
			time.Sleep(until*time.Second - time.Since(c.begun))
			synctest.Wait()
		}
		wait(2)
		deliver := registry.StageQueue{Stage: registry.Deliver, Running: 1, Paused: true}
		q.set(registry.StageQueue{Stage: registry.Fixity, Ready: 1}, registry.StageQueue{Stage: registry.Restore}, deliver)
		wait(5)
		deliver.Paused = false
		q.set(registry.StageQueue{Stage: registry.Fixity, Ready: 1}, deliver)
		wait(15)
		delete(refused, registry.Fixity)
		deliver.Workers = 1
		q.set(registry.StageQueue{Stage: registry.Fixity, Ready: 1}, deliver)
		wait(25)
		q.set(registry.StageQueue{Stage: registry.Fixity, Running: 1, Workers: 1}, deliver)
		wait(35)
		cancel()
		<-done
		fixity, both := []registry.Stage{registry.Fixity}, []registry.Stage{registry.Deliver, registry.Fixity}
		wantAsked := map[time.Duration][]registry.Stage{2: fixity, 5: both, 10: both, 20: fixity}
		if !maps.EqualFunc(asked, wantAsked, slices.Equal) {
			t.Errorf("asked for %v, want %v", asked, wantAsked)
		}
		if want := [][]registry.Stage{nil, fixity, fixity, fixity, nil, nil}; !slices.EqualFunc(c.alarmed, want, slices.Equal) {
			t.Errorf("alarms start workers of %v, want %v", c.alarmed, want)
		}
	})
}

// TestPublisher_AtOnce: figures are sent each ten seconds, and within a second when work comes to an idle
// stage: once, whatever else happens; an event that brings no work sends nothing.
func TestPublisher_AtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q, c := &changing{news: make(chan struct{})}, &client{begun: time.Now()}
		p := &cloudwatch.Publisher{Registry: q, Namespace: "Archive", Log: slog.New(slog.DiscardHandler)}
		cloudwatch.SendBy(p, c)
		done := make(chan struct{})
		go func() { p.Run(ctx); close(done) }()
		wait := func(until time.Duration) {
			time.Sleep(until*time.Second - time.Since(c.begun))
			synctest.Wait()
		}
		wait(3)
		q.set() // an upload, perhaps
		wait(7)
		q.set(registry.StageQueue{Stage: registry.Fixity, Ready: 1})
		wait(8)
		q.set(registry.StageQueue{Stage: registry.Fixity, Running: 1}, registry.StageQueue{Stage: registry.Expand, Ready: 1})
		for i := range int64(90) { // a burst, until 17.5 s
			time.Sleep(100 * time.Millisecond)
			q.set(registry.StageQueue{Stage: registry.Expand, Ready: i}, registry.StageQueue{Stage: registry.Download, Ready: 7})
		}
		wait(25)
		q.set() // all is done; the next round tells it
		wait(35)
		cancel()
		<-done
		want := []time.Duration{0, 7, 8, 10, 20, 30}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(c.at, want) {
			t.Errorf("figures were sent at %v, want %v", c.at, want)
		}
	})
}
