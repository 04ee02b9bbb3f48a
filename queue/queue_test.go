package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"
	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick makes connections again soon.
var quick = queue.Timing{Retry: 5 * time.Millisecond, MaxRetry: 20 * time.Millisecond, Poll: 20 * time.Millisecond}

// server is a broker that can be taken away and come back at the same address.
type server struct {
	*broker.Broker
	t    testing.TB
	addr string
}

func openServer(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, addr: "127.0.0.1:0"}
	s.start()
	t.Cleanup(func() { s.Close() })
	return s
}

func (s *server) start() {
	s.t.Helper()
	b, err := broker.New(broker.Options{})
	if err != nil {
		s.t.Fatalf("new broker: %v", err)
	}
	if err := b.Listen(s.addr); err != nil {
		s.t.Fatalf("listen: %v", err)
	}
	s.Broker, s.addr = b, b.Addr()
}

func (s *server) stop() {
	s.t.Helper()
	if err := s.Close(); err != nil {
		s.t.Fatalf("close: %v", err)
	}
}

func (s *server) workers(topic string) broker.ChannelStats {
	return s.Stats().Topic(topic).Channel(queue.Channel)
}

// Addresses where nobody listens.
const nobody, nobodyElse = "127.0.0.1:1", "127.0.0.1:2"

// logLines collects what is logged.
type logLines struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func newLogLines() *logLines { return &logLines{Handler: slog.DiscardHandler} }

func (l *logLines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l *logLines) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, r.Level.String()+" "+r.Message)
	return nil
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "; ")
}

func (l *logLines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(strings.Join(l.lines, "\n"), text)
}

func TestTopic(t *testing.T) {
	t.Parallel()
	tests := []struct {
		prefix, action, stage, want string
	}{
		{"", "ingest", "download", "ingest.download"},
		{"east-", "task", "run", "east-task.run"},
		{"", "", "run", ""},
		{"", "task", "", ""},
		{"a b", "task", "run", ""},
		{"", "task", "run#ephemeral", ""},
		{strings.Repeat("p", 60), "task", "run", ""},
	}
	for _, test := range tests {
		got, err := queue.Topic(test.prefix, test.action, test.stage)
		if test.want == "" {
			if !errors.Is(err, queue.ErrBadTopic) {
				t.Errorf("Topic(%q, %q, %q) = %v, want ErrBadTopic", test.prefix, test.action, test.stage, err)
			}
		} else if err != nil || got != test.want {
			t.Errorf("Topic(%q, %q, %q) = %q, %v, want %q", test.prefix, test.action, test.stage, got, err, test.want)
		}
	}
}

func TestPublish_RefusesBeforeSending(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	p := queuetest.OpenProducer(t, queue.ProducerConfig{Addrs: []string{s.addr}})
	if err := p.Publish(t.Context(), "bad topic", "id"); !errors.Is(err, queue.ErrBadTopic) {
		t.Errorf("bad topic = %v, want ErrBadTopic", err)
	}
	for _, id := range []string{"", "a\nb", "a\x00", "\xff", strings.Repeat("x", queue.MaxItemID+1)} {
		if err := p.Publish(t.Context(), "topic", "good", id); !errors.Is(err, queue.ErrBadItemID) {
			t.Errorf("id %q = %v, want ErrBadItemID", id, err)
		}
	}
	if err := p.Publish(t.Context(), "topic"); err != nil {
		t.Errorf("no ids = %v, want nil", err)
	}
	if topics := s.Stats().Topics; len(topics) != 0 {
		t.Errorf("something was sent: %+v", topics)
	}
}

// More than one command can carry.
func TestPublish_Splits(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	ids := make([]string, 30_000)
	for i := range ids {
		ids[i] = strings.Repeat("x", 200)
	}
	queuetest.Publish(t, s.addr, "topic", ids...)
	if got := s.Stats().Topic("topic").Depth; got != len(ids) {
		t.Errorf("depth = %d, want %d", got, len(ids))
	}
}

// refusing answers every command after IDENTIFY with an error frame.
func refusing(t *testing.T, reason string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { l.Close(); serving.Wait() })
	frame := func(kind byte, data string) []byte {
		return append([]byte{0, 0, 0, byte(len(data) + 4), 0, 0, 0, kind}, data...)
	}
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				buf := make([]byte, 64<<10)
				identified := false
				for {
					n, err := conn.Read(buf)
					if err != nil {
						return
					}
					got := string(buf[:n])
					if !identified && strings.Contains(got, "}") {
						identified = true
						_, _ = conn.Write(frame(0, "OK"))
					} else if identified && strings.Contains(got, "PUB") {
						_, _ = conn.Write(frame(1, reason))
					}
				}
			})
		}
	})
	return l.Addr().String()
}

func TestPublish_Refused(t *testing.T) {
	t.Parallel()
	addr := refusing(t, "E_BAD_MESSAGE MPUB message too big")
	p := queuetest.OpenProducer(t, queue.ProducerConfig{Addrs: []string{addr}})
	err := p.Publish(t.Context(), "topic", "id")
	if !errors.Is(err, queue.ErrRefused) || !strings.Contains(err.Error(), addr) {
		t.Errorf("publish = %v, want ErrRefused naming %s", err, addr)
	}
	if protocol := (nsq.ErrProtocol{}); !errors.As(err, &protocol) {
		t.Errorf("publish = %v, want nsqd's own error in it", err)
	}
}

func TestPublish_FailsOver(t *testing.T) {
	t.Parallel()
	a, b, sick := openServer(t), openServer(t), refusing(t, "E_MPUB_FAILED MPUB failed exiting")
	p := queuetest.OpenProducer(t, queue.ProducerConfig{Addrs: []string{a.addr, sick, b.addr, nobody}, Timing: quick})
	publish := func(n int) {
		t.Helper()
		for range n {
			if err := p.Publish(t.Context(), "topic", "id"); err != nil {
				t.Fatalf("publish: %v", err)
			}
		}
	}
	publish(20)
	inA, inB := a.Stats().Topic("topic").Depth, b.Stats().Topic("topic").Depth
	if inA == 0 || inB == 0 || inA+inB != 20 {
		t.Errorf("depths %d and %d, want both some and 20 together", inA, inB)
	}
	a.stop()
	publish(20)
	if got := b.Stats().Topic("topic").Depth; got != inB+20 {
		t.Errorf("depth = %d, want %d", got, inB+20)
	}
}

func TestPublish_NobodyThere(t *testing.T) {
	t.Parallel()
	const first, second = nobody, nobodyElse
	p := queuetest.OpenProducer(t, queue.ProducerConfig{Addrs: []string{first, second}})
	for range 3 {
		err := p.Publish(t.Context(), "topic", "id")
		if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), second) {
			t.Errorf("publish = %v, want ErrUnavailable naming %s and %s", err, first, second)
		}
	}
	if err := p.Ping(); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("ping = %v, want ErrUnavailable", err)
	}
	p.Close()
	if err := p.Publish(t.Context(), "topic", "id"); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("publish after close = %v, want ErrClosed", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	again := queuetest.OpenProducer(t, queue.ProducerConfig{Addrs: []string{first}})
	if err := again.Publish(ctx, "topic", "id"); !errors.Is(err, context.Canceled) && !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("publish with an ended context = %v", err)
	}
	if _, err := queue.OpenProducer(t.Context(), queue.ProducerConfig{}); err == nil {
		t.Error("a producer without an address was opened")
	}
	if _, err := queue.OpenProducer(t.Context(), queue.ProducerConfig{Addrs: []string{"nowhere"}}); err == nil {
		t.Error("a producer without a port was opened")
	}
}

// OnChange is called when a connection is lost, since other nsqds may be available, and when it is
// back (R19): the relay then publishes again. The log has one line for the loss, however long it
// lasts, and one for the recovery.
func TestProducer_Reconnects(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	changed := make(chan string, 10)
	log := newLogLines()
	p := queuetest.OpenProducer(t, queue.ProducerConfig{
		Addrs: []string{s.addr}, Timing: quick, Log: slog.New(log), OnChange: func(addr string) { changed <- addr },
	})
	queuetest.Eventually(t, "it is up", func() bool { return p.Ping() == nil })
	for round := range 2 {
		s.stop()
		queuetest.Eventually(t, "it is down", func() bool { return p.Ping() != nil })
		for range 20 {
			if err := p.Publish(t.Context(), "topic", "id"); !errors.Is(err, queue.ErrUnavailable) {
				t.Fatalf("publish = %v, want ErrUnavailable", err)
			}
		}
		s.start()
		for _, change := range []string{"lost", "back"} {
			if addr := <-changed; addr != s.addr {
				t.Errorf("%s: %s, want %s", change, addr, s.addr)
			}
		}
		if err := p.Publish(t.Context(), "topic", "id"); err != nil {
			t.Errorf("publish: %v", err)
		}
		if got := log.count("INFO nsqd connection recovered"); got != round+1 {
			t.Errorf("%d lines of recovery after %d losses: %s", got, round+1, log)
		}
	}
	if got := log.count("WARN"); got > 2*2 {
		t.Errorf("%d warnings for 2 losses: %s", got, log)
	}
}
