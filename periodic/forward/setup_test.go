package forward_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/periodic/forward"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/web/api/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clock is a store's only source of time.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func openStore(t testing.TB) (*sqlstore.Store, *clock) {
	t.Helper()
	c := &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.SQLite(t), Now: c.now})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	must(t, s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"))
	return s, c
}

// submit makes n batches, an event each.
func submit(t testing.TB, s *sqlstore.Store, n int) {
	t.Helper()
	for range n {
		_, err := s.Submit(t.Context(), registry.Submission{Collection: "c", Actor: "ann", Spec: registry.Spec{URL: "https://h.test/x?sig=hunter2"}})
		must(t, err)
	}
}

// subscribe has a target told of everything from the first event on.
func subscribe(t testing.TB, s *sqlstore.Store, name, target string, change ...func(*registry.SubscriptionRequest)) registry.Subscription {
	t.Helper()
	r := registry.SubscriptionRequest{Name: name, Target: target, Actor: "admin"}
	for _, c := range change {
		c(&r)
	}
	out, err := s.PutSubscription(t.Context(), r)
	must(t, err)
	return out
}

func subscription(t testing.TB, s *sqlstore.Store, name string) registry.Subscription {
	t.Helper()
	all, err := s.Subscriptions(t.Context())
	must(t, err)
	for _, b := range all {
		if b.Name == name {
			return b
		}
	}
	t.Fatalf("no subscription %s", name)
	return registry.Subscription{}
}

// seqs are the numbers of all events, in order.
func seqs(t testing.TB, s *sqlstore.Store, filter func(registry.Event) bool) (out []int64) {
	t.Helper()
	for after := int64(0); ; {
		page, err := s.Feed(t.Context(), registry.FeedQuery{After: after, Limit: 500})
		must(t, err)
		if len(page) == 0 {
			return out
		}
		for _, e := range page {
			after = e.Seq
			if filter == nil || filter(e) {
				out = append(out, e.Seq)
			}
		}
	}
}

// event is an event as receivers get it.
type event struct {
	SpecVersion, ID, Source, Type, Subject, Time, DataContentType, Sequence string

	Data struct {
		registry.Event

		Action, Stage, Status, State string
		Omitted                      bool `json:"data_omitted"`
	}
}

// request is what a webhook got at once.
type request struct {
	header http.Header
	body   []byte
	events []event
}

func (r request) seqs() (out []int64) {
	for _, e := range r.events {
		out = append(out, e.Data.Seq)
	}
	return out
}

// receiver is a webhook that answers as it is told to, and remembers what it acknowledged.
type receiver struct {
	t   testing.TB
	url string

	mu       sync.Mutex
	requests []request
	changed  chan struct{}
}

// receive starts a webhook. answer returns the status; 0 breaks the connection off.
func receive(t testing.TB, answer func(*http.Request, request) int) *receiver {
	t.Helper()
	r := &receiver{t: t, changed: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		got := request{header: q.Header, body: body}
		if err != nil || json.Unmarshal(body, &got.events) != nil {
			t.Errorf("request %s cannot be read: %v", body, err)
		}
		status := http.StatusOK
		if answer != nil {
			status = answer(q, got)
		}
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		if status/100 == 2 {
			r.mu.Lock()
			r.requests = append(r.requests, got)
			close(r.changed)
			r.changed = make(chan struct{})
			r.mu.Unlock()
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL + "/secret-path"
	return r
}

// acknowledged are the numbers of all events that it acknowledged, in their order.
func (r *receiver) acknowledged() (out []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.requests {
		out = append(out, q.seqs()...)
	}
	return out
}

func (r *receiver) all() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// until waits until something holds of what was acknowledged.
func (r *receiver) until(what string, holds func([]int64) bool) {
	r.t.Helper()
	late := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if holds(r.acknowledged()) {
			return
		}
		select {
		case <-changed:
		case <-late:
			r.t.Fatalf("%s did not come; it has %v", what, r.acknowledged())
		}
	}
}

// has waits until an event was acknowledged.
func (r *receiver) has(seq int64) {
	r.t.Helper()
	r.until("event "+strconv.FormatInt(seq, 10), func(got []int64) bool { return slices.Contains(got, seq) })
}

// eventually waits for something that a store says.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// noted waits until the cursor of the subscription s is at an event.
func noted(t testing.TB, s *sqlstore.Store, seq int64) {
	t.Helper()
	eventually(t, "the cursor's note", func() bool { return subscription(t, s, "s").Cursor == seq })
}

// options are those of a Forwarder over a store.
func options(t testing.TB, r forward.Registry, owner string) forward.Options {
	t.Helper()
	web := callback.New(callback.Options{Guard: source.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}})
	t.Cleanup(web.Close)
	return forward.Options{
		Registry: r, Queue: noQueue{}, Webhooks: web, Keys: sealKeys(t), Redact: redact.Events, Owner: owner, Log: slog.New(slog.DiscardHandler),
	}
}

func sealKeys(t testing.TB) *secret.Keys {
	t.Helper()
	keys, err := secret.Parse("0123456789012345678901234567890123456789")
	must(t, err)
	return keys
}

type noQueue struct{}

func (noQueue) Send(context.Context, string, ...[]byte) error { return errors.New("there is no nsqd") }

// quick are a Forwarder's times for tests.
func quick(f *forward.Forwarder) *forward.Forwarder {
	f.Gather, f.Backoff, f.BackoffMax, f.CursorInterval = 0, time.Millisecond, 5*time.Millisecond, 0
	return f
}

// run runs a Forwarder until the test ends, or until it is stopped.
func run(t testing.TB, f *forward.Forwarder) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// locked is a buffer that a log may be written to while it is read.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
