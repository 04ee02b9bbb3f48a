package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	stepwise "github.com/holdfast/holdfast/process"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/remote"
	"github.com/holdfast/holdfast/web/wire"
)

// spans receives traces by OTLP over HTTP.
type spans struct {
	mu  sync.Mutex
	all []*otlp.Span
}

// ServeHTTP implements http.Handler.
func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range sent.GetResourceSpans() {
		for _, in := range of.GetScopeSpans() {
			s.all = append(s.all, in.GetSpans()...)
		}
	}
}

// names returns the names of all spans, with how many there are.
func (s *spans) names() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]int{}
	for _, span := range s.all {
		found[span.GetName()]++
	}
	return found
}

// of returns the spans of a trace by name.
func (s *spans) of(trace string) map[string][]*otlp.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string][]*otlp.Span{}
	for _, span := range s.all {
		if hex.EncodeToString(span.GetTraceId()) == trace {
			found[span.GetName()] = append(found[span.GetName()], span)
		}
	}
	return found
}

func attribute(s *otlp.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// programs serves a function and processes over the workers' protocol, as programs in Go do, and
// another function over the public one. It has a task of each and a process done. The stages are returned.
func (h *holdfast) programs() (stages []string) {
	h.t.Helper()
	stages = []string{string(registry.Run.Of("greet")), string(registry.Run.Of("tell")), string(registry.ProcessStep.Of("counter"))}
	secret, _ := h.token("--name", "programs", "--role", "worker", "--stage", strings.Join(stages, ","))
	var m task.Mux
	task.Handle(&m, "greet", func(context.Context, *task.Run, struct{}) (string, error) { return "hello", nil })
	stepwise.Handle(&m, "counter", func(_ context.Context, step *stepwise.Step[int]) error {
		step.State++
		return nil
	})
	r := remote.Open(h.url(), secret)
	ctx, stop := context.WithCancel(h.t.Context())
	served := make(chan error, 1)
	go func() { served <- task.Serve(ctx, r, &m, task.Options{}) }()
	defer func() {
		stop()
		if err := errors.Join(<-served, r.Close()); err != nil {
			h.t.Error(err)
		}
	}()
	p := &program{h: h, secret: secret}
	p.good(http.MethodPost, "/functions", wire.FunctionsRequest{Functions: []wire.FunctionRequest{{Name: "tell"}}}, nil)
	h.until("the programs have announced what they serve", func() bool {
		return strings.Contains(h.run("task", "functions").stdout, "greet") && strings.Contains(h.run("process", "namespaces").stdout, "counter")
	})
	h.must(0, "task", "submit", "tell")
	p.settle(p.claim("tell"), wire.TaskSettlement{Outcome: wire.TaskDone})
	h.must(0, "task", "submit", "greet", "--wait")
	h.must(0, "process", "init", "counter", "one")
	return stages
}

// TestTraces: a deposit is one trace, from the caller's span through every stage to the callback, which
// passes it on, also over a restart. A failed try has a span of its own, to which the next try links. Each row of a batch
// has a trace, which links to the batch's. No span has a secret.
func TestTraces(t *testing.T) {
	t.Parallel()
	received := &spans{}
	otel := httptest.NewServer(received)
	t.Cleanup(otel.Close)
	var mu sync.Mutex
	var told []string // the header traceparent of callbacks
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if told = append(told, r.Header.Get("Traceparent")); len(told) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(receiver.Close)
	web := http.NewServeMux()
	files := httptest.NewServer(web)
	t.Cleanup(files.Close)
	web.HandleFunc("/a.txt", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "alpha") })
	web.HandleFunc("/rows", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "#%checkm_0.7\n#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName\n"+
			strings.Repeat(files.URL+"/a.txt | | | | | a.txt\n", 3)+"#%eof\n")
	})
	h := up(t, "HOLDFAST_TRACES_URL="+otel.URL)
	h.collection("traced", `"callback": {"url": "`+receiver.URL+`/hush"}`)
	h.collection("rows")
	submit := func(collection, address, kind, trace string) (batch string) {
		body, _ := json.Marshal(map[string]any{"collection": collection, "url": files.URL + address, "type": kind, "title": "Traced"})
		url, token := h.address()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/batches", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Idempotency-Key", trace)
		q.Header.Set("Traceparent", trace)
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		var answer struct {
			ID string `json:"batch_id"`
		}
		if text, _ := io.ReadAll(a.Body); json.Unmarshal(text, &answer) != nil || answer.ID == "" {
			t.Fatalf("%s: %s", a.Status, text)
		}
		return answer.ID
	}
	const one, rows, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7"
	batches := []string{
		submit("traced", "/a.txt", "file", "00-"+one+"-"+caller+"-01"),
		submit("rows", "/rows", "single-file-batch-manifest", "00-"+rows+"-"+caller+"-01"),
	}
	h.must(0, "watch", batches[1])
	outside := h.programs()
	h.until("the callback will be tried again", func() bool { return strings.Contains(h.log.String(), "item will be tried again") })
	if !strings.Contains(h.log.String(), one) {
		t.Error("the log does not name the trace")
	}
	h.stop()
	h.hurry(0)
	h.start()
	h.must(0, "watch", batches[0])
	h.stop() // it sends what waits

	found := received.of(one)
	if len(found["submit"]) != 1 || hex.EncodeToString(found["submit"][0].GetParentSpanId()) != caller {
		t.Fatalf("no submission below the caller's span: %v", found)
	}
	root := string(found["submit"][0].GetSpanId())
	for _, name := range outside {
		if n := received.names()[name]; n != 1 {
			t.Errorf("%s, which a program did, has %d spans", name, n)
		}
	}
	for _, family := range registry.Families() {
		if !slices.ContainsFunc(outside, func(stage string) bool { return registry.Stage(stage).Family() == family }) {
			t.Errorf("the test has no program with a stage of %s", family)
		}
	}
	for _, stage := range []string{"expand", "estimate", "provision", "download", "process", "record", "notify", "report"} {
		all := found[stage]
		if len(all) == 0 {
			t.Errorf("%s has no span", stage)
		}
		for _, s := range all {
			if string(s.GetParentSpanId()) != root || attribute(s, "holdfast.collection") != "traced" || attribute(s, "holdfast.outcome") == "" {
				t.Errorf("%s: %v", stage, s)
			}
		}
	}
	parents := func(child, parent string) {
		t.Helper()
		for _, s := range found[child] {
			if !slices.ContainsFunc(found[parent], func(of *otlp.Span) bool { return bytes.Equal(of.GetSpanId(), s.GetParentSpanId()) }) {
				t.Errorf("%s is not below %s: %v", child, parent, s)
			}
		}
	}
	parents("ocfl write", "process")
	parents("callback", "notify")
	if len(found["ocfl write"]) != 1 || len(found["callback"]) != 2 || len(found["notify"]) != 2 {
		t.Fatalf("%d versions written, %d callbacks, %d tries to notify", len(found["ocfl write"]), len(found["callback"]), len(found["notify"]))
	}
	slices.SortFunc(found["notify"], func(a, b *otlp.Span) int { return int(a.GetStartTimeUnixNano()) - int(b.GetStartTimeUnixNano()) })
	first, second := found["notify"][0], found["notify"][1]
	if first.GetStatus().GetCode() != otlp.Status_STATUS_CODE_ERROR || attribute(first, "holdfast.outcome") != "retry" || attribute(first, "error.type") != "http-503" ||
		!slices.ContainsFunc(second.GetLinks(), func(l *otlp.Span_Link) bool { return bytes.Equal(l.GetSpanId(), first.GetSpanId()) }) {
		t.Errorf("the failed try: %v\nthe next: %v", first, second)
	}
	for i, parent := range told {
		if want := func(s *otlp.Span) bool { return parent == "00-"+one+"-"+hex.EncodeToString(s.GetSpanId())+"-01" }; !slices.ContainsFunc(found["callback"], want) {
			t.Errorf("callback %d had traceparent %q", i+1, parent)
		}
	}

	ofRows := map[string]bool{}
	for _, s := range received.all {
		if s.GetName() == "row" && len(s.GetLinks()) == 1 && hex.EncodeToString(s.GetLinks()[0].GetTraceId()) == rows {
			ofRows[hex.EncodeToString(s.GetTraceId())] = true
			of := received.of(hex.EncodeToString(s.GetTraceId()))
			if len(of["record"]) != 1 || !bytes.Equal(of["record"][0].GetParentSpanId(), s.GetSpanId()) {
				t.Errorf("a row's trace: %v", of)
			}
		}
		if strings.Contains(s.String(), "hush") || strings.Contains(s.String(), "/a.txt") {
			t.Errorf("a span tells an address: %v", s)
		}
	}
	if len(ofRows) != 3 {
		t.Errorf("%d rows have traces of their own, want 3", len(ofRows))
	}
}
