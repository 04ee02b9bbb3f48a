package queue_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/queue/queuetest"
)

// lookup serves the HTTP side of a server, until the test ends, and returns its host:port.
func (s *server) lookup() string {
	web := httptest.NewServer(s.Handler())
	s.t.Cleanup(web.Close)
	return strings.TrimPrefix(web.URL, "http://")
}

// A producer with only nsqlookupds publishes to all nsqds that they know, skips one that dies, and
// uses it again later.
func TestProducer_Lookup(t *testing.T) {
	t.Parallel()
	a, b := openServer(t), openServer(t)
	p := queuetest.OpenProducer(t, queue.ProducerConfig{LookupAddrs: []string{a.lookup(), b.lookup(), nobody}, Timing: quick})
	const messages = 20
	send := func() {
		t.Helper()
		for range messages {
			if err := p.Publish(t.Context(), "topic", "id"); err != nil {
				t.Fatalf("publish: %v", err)
			}
		}
	}
	send()
	count := func(s *server) int { return s.Stats().Topic("topic").Depth }
	if count(a) == 0 || count(b) == 0 || count(a)+count(b) != messages {
		t.Errorf("%d messages at one nsqd and %d at the other, want some at each and %d in all", count(a), count(b), messages)
	}
	before := count(b)
	a.stop()
	send()
	if got := count(b) - before; got < messages {
		t.Errorf("%d messages at the nsqd that is left, want %d", got, messages)
	}
	a.start()
	queuetest.Eventually(t, "the other nsqd is used again", func() bool {
		return p.Publish(t.Context(), "topic", "id") == nil && count(a) > 0
	})
}

// An unreachable nsqd that no nsqlookupd knows any more is dropped. If none is left, that is an
// outage.
func TestProducer_LookupForgets(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	unknown, err := broker.New(broker.Options{}) // it listens nowhere, so its lookup knows nobody
	if err != nil {
		t.Fatal(err)
	}
	defer unknown.Close()
	var forgotten atomic.Bool
	var answers atomic.Int64 // since then
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if forgotten.Load() {
			defer answers.Add(1)
			unknown.Handler().ServeHTTP(w, r)
		} else {
			s.Handler().ServeHTTP(w, r)
		}
	}))
	defer web.Close()
	p := queuetest.OpenProducer(t, queue.ProducerConfig{LookupAddrs: []string{web.URL}, Timing: quick})
	if err := p.Publish(t.Context(), "topic", "id"); err != nil {
		t.Fatal(err)
	}
	forgotten.Store(true)
	// It is connected still, and a lookup that was started anew knows nobody at first.
	queuetest.Eventually(t, "the lookup is asked again", func() bool { return answers.Load() >= 2 })
	if err := p.Publish(t.Context(), "topic", "id"); err != nil {
		t.Errorf("publish to a connected nsqd that no lookup knows: %v", err)
	}
	s.stop()
	queuetest.Eventually(t, "it is let go of", func() bool {
		err := p.Publish(t.Context(), "topic", "id")
		return errors.Is(err, queue.ErrUnavailable) && strings.Contains(err.Error(), "no nsqlookupd knows one")
	})
}

func TestInspect(t *testing.T) {
	t.Parallel()
	b, err := broker.New(broker.Options{MaxMsgTimeout: 7 * time.Minute, MaxRdyCount: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	got, err := queue.Inspect(t.Context(), b.Addr(), "")
	if err != nil || got.MaxMsgTimeout != 7*time.Minute || got.MaxReady != 3 || got.Version == "" {
		t.Errorf("it is %+v, %v", got, err)
	}
	if _, err := queue.Inspect(t.Context(), nobody, ""); err == nil {
		t.Error("an nsqd that is not there was inspected")
	}
	web := httptest.NewServer(nil)
	defer web.Close()
	if _, err := queue.Inspect(t.Context(), strings.TrimPrefix(web.URL, "http://"), ""); !errors.Is(err, queue.ErrRefused) {
		t.Errorf("a web server: %v, want ErrRefused", err)
	}
	nodes, err := queue.Nodes(t.Context(), (&server{Broker: b, t: t}).lookup())
	if err != nil || len(nodes) != 1 || nodes[0] != b.Addr() {
		t.Errorf("the lookup knows %v, %v; want %s", nodes, err, b.Addr())
	}
}
