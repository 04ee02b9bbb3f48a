package base_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	interimsql "github.com/holdfast/holdfast/interim/sqlstore"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// worker is a Handler whose work is a test's own. It serves expand, the first stage of a
// submission.
type worker struct {
	base.Worker
	work func(ctx context.Context, item *base.Item) error
}

func (w *worker) Stage() registry.Stage { return registry.Expand }

func (w *worker) Work(ctx context.Context, item *base.Item) error { return w.work(ctx, item) }

// openRegistry opens a real Registry with one collection.
func openRegistry(t *testing.T) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.SQLite(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close registry: %v", err)
		}
	})
	if err := s.PutCollection(t.Context(), registry.Collection{Mnemonic: "test", Tenant: sqldb.Tenant}, "tester"); err != nil {
		t.Fatal(err)
	}
	return s
}

func openInterim(t *testing.T) interim.Store {
	t.Helper()
	s, err := interimsql.Open(t.Context(), filepath.Join(t.TempDir(), "interim.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close interim store: %v", err)
		}
	})
	return s
}

// submit makes an item that stands in stage expand.
func submit(t *testing.T, s registry.Submitting) string {
	t.Helper()
	r, err := s.Submit(t.Context(), registry.Submission{
		Collection: "test", Name: "payload",
		Spec: registry.Spec{Type: registry.FileType, URL: "https://example.org/payload", Filename: "payload"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.BatchID
}

func itemOf(t *testing.T, s registry.ItemReader, id string) registry.WorkItem {
	t.Helper()
	it, err := s.Item(context.WithoutCancel(t.Context()), id)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// message records how it was answered.
type message struct {
	onFinish func()
	answered chan string // "finish" or "requeue DELAY"

	mu      sync.Mutex
	touched int
}

func (m *message) Touch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.touched++
}

func (m *message) touches() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.touched
}

func (m *message) Finish() {
	if m.onFinish != nil {
		m.onFinish()
	}
	m.answered <- "finish"
}

func (m *message) Requeue(d time.Duration) { m.answered <- "requeue " + d.String() }

// feed is a queue that a test plays: it delivers what the test says.
type feed struct {
	ready chan struct{} // closed at the first subscription

	mu      sync.Mutex
	handle  base.HandleFunc
	free    []int
	stopped int
	serving sync.WaitGroup
}

func newFeed() *feed { return &feed{ready: make(chan struct{})} }

func (f *feed) connect(_ context.Context, _ registry.Action, _ registry.Stage, _ int, handle base.HandleFunc) (base.Consumer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handle = handle
	close(f.ready)
	return f, nil
}

func (f *feed) SetFree(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = append(f.free, n)
}

func (f *feed) Stop(context.Context) error {
	f.mu.Lock()
	f.stopped++
	f.mu.Unlock()
	f.serving.Wait()
	return nil
}

func (f *feed) allowed() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]int(nil), f.free...)
}

// deliver hands a message to the worker, once it has subscribed.
func (f *feed) deliver(hint string) *message {
	m := &message{answered: make(chan string, 2)}
	f.deliverMessage(hint, m)
	return m
}

func (f *feed) deliverMessage(hint string, m *message) {
	<-f.ready
	f.serving.Go(func() { f.handle(context.Background(), hint, m) })
}

// start runs a Runner until the test, or stop, ends it. stop returns Run's result.
func start(t *testing.T, r *base.Runner, handlers ...base.Handler) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, handlers...) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// fakeRegistry is a Registry that a test plays: one item, and faults on demand.
type fakeRegistry struct {
	roomWait time.Duration // that claims tell

	registry.Working
	spec json.RawMessage

	onClaim  func(call int, r registry.ClaimRequest) error
	onRenew  func(call int, r registry.RenewRequest) ([]registry.Lease, error)
	heldAt   func(call int) bool // what renewal number call answers
	onSettle func(call int, s registry.Settlement) error
	onSave   func(call int) error
	taken    chan registry.Lease // what Withdrawn tells; nil: never anything

	mu      sync.Mutex
	begun   time.Time
	claims  []registry.ClaimRequest
	renews  []registry.RenewRequest
	renewAt []time.Duration
	settles []registry.Settlement
	saves   []string
}

func newFake() *fakeRegistry {
	return &fakeRegistry{begun: time.Now(), spec: json.RawMessage(`{"route_version":1}`)}
}

var errDown = errors.New("connection refused")

func (f *fakeRegistry) Claim(_ context.Context, r registry.ClaimRequest) (registry.Claim, error) {
	f.mu.Lock()
	f.claims = append(f.claims, r)
	n := len(f.claims)
	f.mu.Unlock()
	if f.onClaim != nil {
		if err := f.onClaim(n, r); err != nil {
			return registry.Claim{}, err
		}
	}
	item := registry.WorkItem{ID: r.Hint, Action: registry.Batch, Stage: r.Stage, Status: registry.Running, Attempt: int64(n), Spec: f.spec}
	return registry.Claim{Item: item, Lease: registry.Lease{ItemID: r.Hint, N: int64(n)}, RoomWait: f.roomWait}, nil
}

func (f *fakeRegistry) Renew(_ context.Context, r registry.RenewRequest) (registry.Renewal, error) {
	f.mu.Lock()
	f.renews = append(f.renews, r)
	f.renewAt = append(f.renewAt, time.Since(f.begun))
	n := len(f.renews)
	f.mu.Unlock()
	var answer registry.Renewal
	if f.heldAt != nil {
		answer.Held = f.heldAt(n)
	}
	if f.onRenew != nil {
		lost, err := f.onRenew(n, r)
		answer.Lost = lost
		return answer, err
	}
	return answer, nil
}

func (f *fakeRegistry) Settle(_ context.Context, s registry.Settlement) (registry.Verdict, error) {
	f.mu.Lock()
	f.settles = append(f.settles, s)
	n := len(f.settles)
	f.mu.Unlock()
	if f.onSettle != nil {
		if err := f.onSettle(n, s); err != nil {
			return registry.Verdict{}, err
		}
	}
	return registry.Verdict{Stage: registry.Expand, Status: registry.Pending}, nil
}

func (f *fakeRegistry) SaveResult(_ context.Context, _ registry.Lease, name string, v json.RawMessage) (json.RawMessage, error) {
	f.mu.Lock()
	f.saves = append(f.saves, name)
	n := len(f.saves)
	f.mu.Unlock()
	if f.onSave != nil {
		if err := f.onSave(n); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (f *fakeRegistry) Withdrawn(ctx context.Context, q registry.WithdrawnQuery) ([]registry.Lease, int64, error) {
	select {
	case l := <-f.taken:
		return []registry.Lease{l}, q.After + 1, nil
	case <-ctx.Done():
		return nil, q.After, nil
	}
}

func (f *fakeRegistry) claimed() []registry.ClaimRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.claims)
}

func (f *fakeRegistry) settled() []registry.Settlement {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]registry.Settlement(nil), f.settles...)
}

func (f *fakeRegistry) renewals() ([]registry.RenewRequest, []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]registry.RenewRequest(nil), f.renews...), append([]time.Duration(nil), f.renewAt...)
}

// fakeInterim keeps entries in memory and fails on demand.
type fakeInterim struct {
	interim.Store
	onCall func(call int) error

	mu      sync.Mutex
	calls   int
	puts    int
	entries map[string][]byte
}

func newFakeInterim() *fakeInterim { return &fakeInterim{entries: map[string][]byte{}} }

func (f *fakeInterim) called() error {
	f.mu.Lock()
	f.calls++
	n := f.calls
	f.mu.Unlock()
	if f.onCall != nil {
		return f.onCall(n)
	}
	return nil
}

func (f *fakeInterim) Adopt(context.Context, interim.Attempt) (int64, error) { return 0, f.called() }

func (f *fakeInterim) Put(_ context.Context, _ interim.Attempt, entries map[string][]byte) error {
	if err := f.called(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.puts++
	for k, v := range entries {
		f.entries[k] = v
	}
	return nil
}

func (f *fakeInterim) Get(_ context.Context, _ interim.Attempt, key string) ([]byte, error) {
	if err := f.called(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.entries[key]
	if !ok {
		return nil, fmt.Errorf("key %s: %w", key, interim.ErrNotFound)
	}
	return v, nil
}

func (f *fakeInterim) written() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.puts
}

// logbook keeps what was logged.
type logbook struct {
	mu      sync.Mutex
	records []slog.Record
}

func (l *logbook) logger() *slog.Logger { return slog.New(&bookHandler{book: l}) }

func (l *logbook) count(level slog.Level, text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, r := range l.records {
		if r.Level == level && r.Message == text {
			n++
		}
	}
	return n
}

type bookHandler struct{ book *logbook }

func (h *bookHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *bookHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *bookHandler) WithGroup(string) slog.Handler            { return h }
func (h *bookHandler) Handle(_ context.Context, r slog.Record) error {
	h.book.mu.Lock()
	defer h.book.mu.Unlock()
	h.book.records = append(h.book.records, r)
	return nil
}
