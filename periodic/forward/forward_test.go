package forward_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nsqio/go-nsq"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/periodic/forward"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/registry"
)

const signingKey = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// TestWebhook checks that a receiver gets every event, earlier and concurrent ones, once and in
// order. They have the documented form, are signed and contain no secrets.
func TestWebhook(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	submit(t, s, 150)
	parsed, err := callback.ParseKey(signingKey)
	must(t, err)
	r := receive(t, func(q *http.Request, got request) int {
		if _, err := callback.Verify(q.Header.Get, got.body, time.Now(), time.Minute, parsed); err != nil {
			t.Errorf("not ours: %v", err)
		}
		return http.StatusAccepted
	})
	var log locked
	o := options(t, s, "one")
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	key := registry.Credential{Collection: registry.SubscriptionOwner("s"), Origin: "signing:a", Kind: registry.CredentialSigning, CreatedBy: "admin"}
	key.Sealed, err = o.Keys.Seal(signingKey, key.About()...)
	must(t, err)
	sub := subscribe(t, s, "s", r.url, func(q *registry.SubscriptionRequest) { q.Credentials = []registry.Credential{key} })
	f := quick(forward.New(o))
	f.Gather = time.Millisecond
	stop := run(t, f)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() { submit(t, s, 10) })
	}
	writers.Wait()
	want := seqs(t, s, nil)
	last := want[len(want)-1]
	r.has(last)
	noted(t, s, last)
	stop()
	if diff := cmp.Diff(want, r.acknowledged()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if b := subscription(t, s, "s"); b.Cursor != last || b.Told != int64(len(want)) || b.Behind != 0 || b.Owner != "" {
		t.Errorf("it is %+v", b)
	}
	ids := map[string]bool{}
	for _, q := range r.all() {
		if q.header.Get("Content-Type") != "application/cloudevents-batch+json" || len(q.events) > 100 {
			t.Errorf("%d events of %s", len(q.events), q.header.Get("Content-Type"))
		}
		id := q.header.Get("Webhook-Id")
		if ids[id] || strings.Contains(id, ".") || !strings.HasPrefix(id, sub.ID+"_0_") {
			t.Errorf("message id %s", id)
		}
		ids[id] = true
		for _, e := range q.events {
			if e.SpecVersion != "1.0" || !strings.HasPrefix(e.Source, "urn:uuid:") || e.Type != "org.holdfast."+e.Data.Type || e.Subject != e.Data.ItemID ||
				e.DataContentType != "application/json" || e.ID == "" || e.ID != e.Data.ID || e.Sequence != fmt.Sprintf("%019d", e.Data.Seq) {
				t.Errorf("event %+v", e)
			}
			if e.Data.Type == "submit" && (e.Data.State != "Pending" || e.Data.Action != "batch" || e.Data.Collection != "c" || e.Data.Stage != "expand") {
				t.Errorf("a submission is %+v", e.Data)
			}
		}
		for _, secret := range []string{"hunter2", signingKey, "secret-path"} {
			if strings.Contains(string(q.body), secret) {
				t.Errorf("%s is told in %s", secret, q.body)
			}
		}
	}
	for _, secret := range []string{"hunter2", signingKey, "secret-path"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%s is in the log:\n%s", secret, log.String())
		}
	}
}

// TestNSQ checks with a real broker that a consumer gets one message per event, in order.
func TestNSQ(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	submit(t, s, 120)
	b, err := broker.New(broker.Options{})
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	must(t, b.Listen("127.0.0.1:0"))
	producer, err := queue.OpenProducer(context.Background(), queue.ProducerConfig{Addrs: []string{b.Addr()}})
	must(t, err)
	t.Cleanup(producer.Close)
	o := options(t, s, "one")
	o.Queue, o.Prefix = producer, "site-"
	subscribe(t, s, "s", "nsq:life")
	run(t, quick(forward.New(o)))

	config := nsq.NewConfig()
	config.MaxInFlight = 1
	consumer, err := nsq.NewConsumer("site-life", "them", config)
	must(t, err)
	consumer.SetLoggerLevel(nsq.LogLevelMax)
	got := make(chan event, 1000)
	consumer.AddHandler(nsq.HandlerFunc(func(m *nsq.Message) error {
		var e event
		if err := json.Unmarshal(m.Body, &e); err != nil {
			t.Errorf("message %s: %v", m.Body, err)
		}
		got <- e
		return nil
	}))
	must(t, consumer.ConnectToNSQD(b.Addr()))
	t.Cleanup(func() { consumer.Stop(); <-consumer.StopChan })
	submit(t, s, 30)
	for _, want := range seqs(t, s, nil) {
		select {
		case e := <-got:
			if e.Data.Seq != want || e.SpecVersion != "1.0" {
				t.Fatalf("got event %d, want %d", e.Data.Seq, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("event %d did not come", want)
		}
	}
}

// TestOutage checks that a receiver that was down gets all events in order. Meanwhile its
// subscription shows the error, another receiver gets everything, and items are still accepted.
func TestOutage(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	submit(t, s, 250)
	var up atomic.Bool
	var tries atomic.Int64
	answers := []int{0, 503, 500, 404, 302, 410, 429, 100 + 300}
	sick := receive(t, func(*http.Request, request) int {
		if up.Load() {
			return http.StatusNoContent
		}
		return answers[int(tries.Add(1))%len(answers)]
	})
	well := receive(t, nil)
	subscribe(t, s, "sick", sick.url)
	subscribe(t, s, "well", well.url)
	run(t, quick(forward.New(options(t, s, "one"))))
	eventually(t, "twenty tries", func() bool { return tries.Load() > 20 })
	submit(t, s, 5)
	want := seqs(t, s, nil)
	well.has(want[len(want)-1])
	b := subscription(t, s, "sick")
	if b.Cursor != 0 || b.FailingSince == nil || b.Tries == 0 || b.Error == "" || strings.Contains(b.Error, "secret-path") {
		t.Errorf("the sick one says %+v", b)
	}
	if q, err := s.QueueStatus(t.Context()); err != nil || len(q.Failing) != 1 || q.Failing[0].Name != "sick" || q.Failing[0].Behind != int64(len(want)) {
		t.Errorf("the queue says %+v, %v", q.Failing, err)
	}
	if len(sick.acknowledged()) != 0 {
		t.Errorf("acknowledged %v", sick.acknowledged())
	}
	up.Store(true)
	sick.has(want[len(want)-1])
	for name, r := range map[string]*receiver{"sick": sick, "well": well} {
		if diff := cmp.Diff(want, r.acknowledged()); diff != "" {
			t.Errorf("%s was told (-want +got):\n%s", name, diff)
		}
	}
	eventually(t, "recovery", func() bool { return subscription(t, s, "sick").FailingSince == nil })
}

// TestSlowReceiver checks that a receiver that never answers delays no other.
func TestSlowReceiver(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	hang, asked := make(chan struct{}), make(chan struct{}, 100)
	slow := receive(t, func(q *http.Request, _ request) int {
		asked <- struct{}{}
		select {
		case <-hang:
		case <-q.Context().Done():
		}
		return http.StatusOK
	})
	well := receive(t, nil)
	subscribe(t, s, "slow", slow.url)
	subscribe(t, s, "well", well.url)
	stop := run(t, quick(forward.New(options(t, s, "one"))))
	<-asked
	for range 3 {
		submit(t, s, 120)
		want := seqs(t, s, nil)
		well.has(want[len(want)-1])
	}
	if len(asked) != 0 || len(slow.acknowledged()) != 0 {
		t.Error("the slow one is asked again before it has answered")
	}
	close(hang)
	want := seqs(t, s, nil)
	slow.has(want[len(want)-1])
	stop()
	if diff := cmp.Diff(want, slow.acknowledged()); diff != "" {
		t.Errorf("the slow one was told (-want +got):\n%s", diff)
	}
}

// TestFilter checks that a receiver gets the events that its filter selects, and that its cursor
// passes the rest.
func TestFilter(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	r := receive(t, nil)
	filter := registry.FeedFilter{States: []registry.State{registry.StateCancelled}}
	subscribe(t, s, "s", r.url, func(q *registry.SubscriptionRequest) { q.Filter = filter })
	run(t, quick(forward.New(options(t, s, "one"))))
	for i := range 30 {
		b, err := s.Submit(t.Context(), registry.Submission{Collection: "c"})
		must(t, err)
		if i%7 == 0 {
			_, err = s.Command(t.Context(), registry.Command{ItemID: b.BatchID, Act: registry.ActCancel, Actor: "boss"})
			must(t, err)
		}
	}
	want := seqs(t, s, func(e registry.Event) bool { return e.Type == "cancel" })
	end, err := s.FeedEnd(t.Context())
	must(t, err)
	eventually(t, "the cursor at the end", func() bool { return subscription(t, s, "s").Cursor == end })
	if diff := cmp.Diff(want, r.acknowledged()); diff != "" || len(want) != 5 {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestR17_RewindDuringDelivery checks that a delivery under way cannot undo a rewind: all events
// are sent again, with new message ids.
func TestR17_RewindDuringDelivery(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	submit(t, s, 30)
	end := seqs(t, s, nil)
	inside, goOn := make(chan struct{}), make(chan struct{})
	first := true
	r := receive(t, func(q *http.Request, got request) int {
		if first && slices.Contains(got.seqs(), end[len(end)-1]) {
			first = false
			close(inside)
			<-goOn // it takes what it got although the sender has gone
		}
		return http.StatusOK
	})
	subscribe(t, s, "s", r.url)
	stop := run(t, quick(forward.New(options(t, s, "one"))))
	<-inside
	_, err := s.RewindSubscription(t.Context(), "s", 0, "again", "admin")
	must(t, err)
	close(goOn)
	all := seqs(t, s, nil)
	last := all[len(all)-1]
	r.has(last)
	noted(t, s, last)
	stop()
	got := r.acknowledged()
	from := len(got) - len(all)
	if from < 0 || !slices.Equal(got[from:], all) {
		t.Errorf("told %v, want all of %v at the end", got, all)
	}
	if b := subscription(t, s, "s"); b.Cursor != last || b.Rewinds != 1 {
		t.Errorf("it is %+v", b)
	}
	ids := map[string]bool{}
	for _, q := range r.all() {
		id := q.header.Get("Webhook-Id")
		if ids[id] {
			t.Errorf("message id %s comes twice", id)
		}
		ids[id] = true
	}
}

// TestRemovedDuringDelivery checks that nothing is sent after a subscription was removed, and that
// a new one of the same name starts afresh.
func TestRemovedDuringDelivery(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	submit(t, s, 3)
	inside, gone := make(chan struct{}), make(chan struct{})
	r := receive(t, func(q *http.Request, _ request) int {
		close(inside)
		<-q.Context().Done() // the sender gives up
		close(gone)
		return http.StatusInternalServerError
	})
	subscribe(t, s, "s", r.url)
	run(t, quick(forward.New(options(t, s, "one"))))
	<-inside
	must(t, s.RemoveSubscription(t.Context(), "s", "admin"))
	<-gone
	again := receive(t, nil)
	subscribe(t, s, "s", again.url)
	want := seqs(t, s, nil)
	again.has(want[len(want)-1])
	if diff := cmp.Diff(want, again.acknowledged()); diff != "" || len(r.acknowledged()) != 0 {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestPaused checks that nothing is sent during a pause, and everything afterwards.
func TestPaused(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	r, other := receive(t, nil), receive(t, nil)
	subscribe(t, s, "s", r.url)
	subscribe(t, s, "other", other.url)
	_, err := s.PauseSubscription(t.Context(), "s", "they move", "admin")
	must(t, err)
	run(t, quick(forward.New(options(t, s, "one"))))
	submit(t, s, 10)
	want := seqs(t, s, nil)
	other.has(want[len(want)-1])
	if got := r.acknowledged(); len(got) != 0 {
		t.Errorf("told %v while it is paused", got)
	}
	_, err = s.ResumeSubscription(t.Context(), "s", "admin")
	must(t, err)
	want = seqs(t, s, nil)
	r.has(want[len(want)-1])
	if diff := cmp.Diff(want, r.acknowledged()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestTooLarge checks that a receiver that takes only small bodies gets everything in small ones,
// and that an event too large for anybody comes without its data.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	c, err := s.Submit(t.Context(), registry.Submission{Collection: "c"})
	must(t, err)
	claim, err := s.Claim(t.Context(), registry.ClaimRequest{RequestID: "r", Stage: registry.Expand, Hint: c.BatchID, Lease: time.Hour, MaxAttempts: 5})
	must(t, err)
	_, err = s.Settle(t.Context(), registry.Settlement{
		Lease: claim.Lease, Outcome: registry.OutcomeReleased, MaxAttempts: 5,
		Events: []registry.NewEvent{{Type: "manifest-warnings", Data: json.RawMessage(`{"text":"` + strings.Repeat("x", 300<<10) + `"}`)}},
	})
	must(t, err)
	submit(t, s, 100)
	const most = 6 << 10
	r := receive(t, func(_ *http.Request, got request) int {
		if len(got.body) > most {
			return http.StatusRequestEntityTooLarge
		}
		return http.StatusOK
	})
	subscribe(t, s, "s", r.url)
	run(t, quick(forward.New(options(t, s, "one"))))
	want := seqs(t, s, nil)
	r.has(want[len(want)-1])
	if diff := cmp.Diff(want, r.acknowledged()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	large := 0
	for _, q := range r.all() {
		for _, e := range q.events {
			if e.Data.Omitted {
				large++
				if e.Data.Type != "manifest-warnings" || e.Data.Data != nil {
					t.Errorf("left out of %+v", e.Data.Event)
				}
			}
		}
	}
	if large != 1 {
		t.Errorf("%d events came without their data, want 1", large)
	}
	if b := subscription(t, s, "s"); b.FailingSince != nil {
		t.Errorf("smaller bodies count as failures: %+v", b)
	}
}

// TestCredentialMended checks that a subscription is tried at once when its signing key is set,
// however long its backoff was.
func TestCredentialMended(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	parsed, err := callback.ParseKey(signingKey)
	must(t, err)
	r := receive(t, func(q *http.Request, got request) int {
		if _, err := callback.Verify(q.Header.Get, got.body, time.Now(), time.Minute, parsed); err != nil {
			return http.StatusUnauthorized
		}
		return http.StatusOK
	})
	subscribe(t, s, "s", r.url)
	o := options(t, s, "one")
	f := forward.New(o)
	f.Gather, f.Backoff, f.BackoffMax, f.Lease = 0, time.Hour, time.Hour, time.Hour // nothing but the change has it looked at
	run(t, f)
	eventually(t, "a failure", func() bool { return subscription(t, s, "s").Tries == 1 })
	key := registry.Credential{Collection: registry.SubscriptionOwner("s"), Origin: "signing:a", Kind: registry.CredentialSigning, CreatedBy: "admin"}
	key.Sealed, err = o.Keys.Seal(signingKey, key.About()...)
	must(t, err)
	must(t, s.PutCredential(t.Context(), key))
	want := seqs(t, s, nil)
	last := want[len(want)-1]
	r.has(last)
	noted(t, s, last)
	if b := subscription(t, s, "s"); !slices.Equal(r.acknowledged(), want) || b.FailingSince != nil {
		t.Errorf("told %v, want %v; it is %+v", r.acknowledged(), want, b)
	}
}
