package tracing_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/tracing"
)

const (
	sampled   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

// sent makes spans with a real receiver and returns what that got, in the order of their ends.
func sent(t *testing.T, spans func()) (all []*otlp.Span) {
	t.Helper()
	var mu sync.Mutex
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &in); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, of := range in.GetResourceSpans() {
			for _, in := range of.GetScopeSpans() {
				all = append(all, in.GetSpans()...)
			}
		}
	}))
	defer receiver.Close()
	stop, err := tracing.Open(t.Context(), receiver.URL, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	spans()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return all
}

// attempt makes the span of an attempt, and returns the context that its callbacks would pass on.
func attempt(item, stage string, n int64, parent string) (passed string) {
	ctx, span := tracing.StartAttempt(context.Background(), tracing.Attempt{Item: item, Stage: stage, N: n, Parent: parent})
	defer span.End(nil)
	return tracing.Parent(ctx)
}

// TestAttempts: the attempts at an item are in the trace that is kept in it, over stages and retries.
// One of no trace, or with a malformed one, has a trace of its own, which is the same in each attempt.
func TestAttempts(t *testing.T) {
	for _, tt := range []struct{ name, kept string }{
		{"kept", sampled},
		{"none", ""},
		{"not in parts", "malformed"},
		{"zero", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"},
		{"not hexadecimal", strings.ReplaceAll(sampled, "4bf9", "xyz!")},
		{"cut", sampled[:50]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := sent(t, func() {
				attempt("i1", "download", 1, tt.kept)
				attempt("i1", "download", 2, tt.kept)
				attempt("i1", "process", 3, tt.kept)
				attempt("i2", "download", 1, tt.kept)
			})
			if len(all) != 4 {
				t.Fatalf("%d spans, want one for each attempt", len(all))
			}
			for i, s := range all[:3] {
				if !bytes.Equal(s.GetTraceId(), all[0].GetTraceId()) {
					t.Errorf("attempt %d is in another trace", i+1)
				}
				if links := s.GetLinks(); i == 0 && len(links) != 0 || i > 0 && (len(links) != 1 || !bytes.Equal(links[0].GetSpanId(), all[i-1].GetSpanId())) {
					t.Errorf("attempt %d has links %v, want one to that before", i+1, links)
				}
				if parent := hex.EncodeToString(s.GetParentSpanId()); tt.kept == sampled && parent != "00f067aa0ba902b7" || tt.kept != sampled && parent != "" {
					t.Errorf("attempt %d has parent %q", i+1, parent)
				}
			}
			if id := hex.EncodeToString(all[0].GetTraceId()); (id == registry.Trace{Parent: sampled}.ID()) != (tt.kept == sampled) {
				t.Errorf("the trace is %s", id)
			}
			if one := bytes.Equal(all[3].GetTraceId(), all[0].GetTraceId()); one != (tt.kept == sampled) {
				t.Errorf("another item is in the same trace: %t", one)
			}
		})
	}
}

// TestSampling: a decision that a caller or the submission has made is kept in all attempts, whatever
// this process would decide. Its own is the same for all attempts at an item.
func TestSampling(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	if all := sent(t, func() {
		if passed := attempt("i", "download", 1, sampled); !strings.HasSuffix(passed, "-01") {
			t.Errorf("passed on: %s", passed)
		}
		attempt("i", "process", 2, sampled)
		attempt("alone", "fixity", 1, "")
	}); len(all) != 2 {
		t.Errorf("%d spans, want those of the sampled trace", len(all))
	}
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_on")
	if all := sent(t, func() {
		if passed := attempt("i", "download", 1, unsampled); !strings.HasSuffix(passed, "-00") {
			t.Errorf("passed on: %s", passed)
		}
		attempt("i", "download", 2, unsampled)
	}); len(all) != 0 {
		t.Errorf("%d spans of a trace that is not sampled", len(all))
	}
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
	of := map[string]int{}
	const items = 64
	for _, s := range sent(t, func() {
		for i := range items {
			attempt(fmt.Sprint(i), "fixity", 1, "")
			attempt(fmt.Sprint(i), "fixity", 2, "")
		}
	}) {
		of[string(s.GetTraceId())]++
	}
	for id, n := range of {
		if n != 2 {
			t.Errorf("%d of 2 attempts of trace %x", n, id)
		}
	}
	if len(of) == 0 || len(of) == items {
		t.Errorf("%d of %d items are sampled, want about half", len(of), items)
	}
}

// TestHangingReceiver: with a receiver that takes requests and never answers, spans delay no work, what
// waits is bounded, and the end does not wait for the receiver.
func TestHangingReceiver(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600000")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "600000")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var hanging sync.WaitGroup
	t.Cleanup(hanging.Wait)
	t.Cleanup(func() { _ = l.Close() })
	came := make(chan struct{}, 1)
	hanging.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			select {
			case came <- struct{}{}:
			default:
			}
		}
	})
	stop, err := tracing.Open(t.Context(), "http://"+l.Addr().String(), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for i := range int64(20_000) {
			attempt("i", "download", i+1, sampled)
		}
		<-came
		ended <- stop()
	}()
	select {
	case err := <-ended: // the receiver still hangs
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute): // a fifth of the receiver's own time
		t.Fatal("the end waits for the receiver")
	}
	if tracing.On() {
		t.Error("spans are still made")
	}
}
