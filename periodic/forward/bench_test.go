package forward_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast/holdfast/periodic/forward"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// filled is a store with the events of n jobs.
func filled(b *testing.B, n int) (*sqlstore.Store, int64) {
	b.Helper()
	s, _ := openStore(b)
	r, err := s.Submit(b.Context(), registry.Submission{Collection: "c"})
	must(b, err)
	c, err := s.Claim(b.Context(), registry.ClaimRequest{RequestID: "r", Stage: registry.Expand, Hint: r.BatchID, Lease: time.Hour, MaxAttempts: 5})
	must(b, err)
	for row := 0; row < n; {
		jobs := make([]registry.NewJob, 500)
		for i := range jobs {
			row++
			jobs[i] = registry.NewJob{Line: int64(row), Name: fmt.Sprint(row), Spec: registry.Spec{URL: "https://example.org/" + fmt.Sprint(row)}}
		}
		_, err := s.AddJobs(b.Context(), c.Lease, jobs)
		must(b, err)
	}
	end, err := s.FeedEnd(b.Context())
	must(b, err)
	return s, end
}

// BenchmarkForward sends a backlog of 20,000 events to a webhook and to an NSQ topic over loopback.
func BenchmarkForward(b *testing.B) {
	const events = 20_000
	s, end := filled(b, events)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	b.Cleanup(server.Close)
	nsqd, err := broker.New(broker.Options{})
	must(b, err)
	b.Cleanup(func() { _ = nsqd.Close() })
	must(b, nsqd.Listen("127.0.0.1:0"))
	producer, err := queue.OpenProducer(context.Background(), queue.ProducerConfig{Addrs: []string{nsqd.Addr()}})
	must(b, err)
	b.Cleanup(producer.Close)
	for _, target := range []string{server.URL, "nsq:life"} {
		name := "webhook"
		if target != server.URL {
			name = "nsq"
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				subscribe(b, s, "s", target)
				o := options(b, s, "one")
				o.Queue = producer
				stop := run(b, forward.New(o))
				eventually(b, "the end", func() bool { return subscription(b, s, "s").Cursor >= end })
				stop()
				must(b, s.RemoveSubscription(b.Context(), "s", "admin"))
			}
			b.ReportMetric(float64(end)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
