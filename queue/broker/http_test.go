package broker_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nsqio/go-nsq"

	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/queue/queuetest"
)

func serve(t *testing.T, b *broker.Broker) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(b.Handler())
	t.Cleanup(s.Close)
	return s
}

func fetch(t *testing.T, s *httptest.Server, path string) (int, string) {
	t.Helper()
	resp, err := s.Client().Get(s.URL + path)
	if err != nil {
		t.Fatalf("get %s: %v", path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	return resp.StatusCode, string(body)
}

func TestHTTP_Ping(t *testing.T) {
	b := open(t, broker.Options{})
	s := serve(t, b)
	if status, body := fetch(t, s, "/ping"); status != http.StatusOK || body != "OK" {
		t.Errorf("ping = %d %q", status, body)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if status, _ := fetch(t, s, "/ping"); status != http.StatusInternalServerError {
		t.Errorf("ping after close = %d, want 500", status)
	}
}

func TestHTTP_Stats(t *testing.T) {
	b := open(t, broker.Options{})
	s := serve(t, b)
	p, _ := queuetest.Dial(t, b.Addr(), nil)
	p.Publish("waiting", "x")
	p.Publish("read", "1", "2", "3")
	c, _ := queuetest.Dial(t, b.Addr(), map[string]any{"client_id": "me"})
	c.Subscribe("read", workers, 2)
	c.Send(nsq.Requeue(c.ExpectMessage().ID, 3600e9))
	c.Sync()
	_, body := fetch(t, s, "/stats?format=json")
	var got broker.Stats
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("decode: %v", err)
	}
	if got.Health != "OK" || got.Topic("waiting").Depth != 1 || got.Topic("read").MessageCount != 3 {
		t.Errorf("stats = %s", body)
	}
	ch := got.Topic("read").Channel(workers)
	if len(ch.Clients) != 1 || ch.Clients[0].ID != "me" || ch.Clients[0].Ready != 2 || ch.Clients[0].InFlight != 2 {
		t.Errorf("clients = %+v", ch.Clients)
	}
	ch.Clients = nil
	want := broker.ChannelStats{
		Name: workers, Depth: 0, InFlight: 2, Deferred: 1, MessageCount: 3, RequeueCount: 1, ClientCount: 1,
	}
	if diff := cmp.Diff(want, ch); diff != "" {
		t.Errorf("channel (-want +got):\n%s", diff)
	}
	_, body = fetch(t, s, "/stats?format=json&topic=waiting&channel=none")
	if strings.Contains(body, `"read"`) || !strings.Contains(body, `"waiting"`) {
		t.Errorf("stats of one topic = %s", body)
	}
}

func TestHTTP_Lookup(t *testing.T) {
	b := open(t, broker.Options{})
	s := serve(t, b)
	for path, want := range map[string]int{
		"/lookup": http.StatusBadRequest, "/lookup?topic=bad$": http.StatusBadRequest, "/lookup?topic=new": http.StatusOK,
		"/nodes": http.StatusOK, "/pub?topic=new": http.StatusNotFound,
	} {
		if status, body := fetch(t, s, path); status != want {
			t.Errorf("%s = %d %s, want %d", path, status, body, want)
		}
	}
	// A wildcard address is answered as the one by which the client came.
	wild, err := broker.New(broker.Options{Remote: true})
	if err != nil {
		t.Fatal(err)
	}
	defer wild.Close()
	if err := wild.Listen(":0"); err != nil {
		t.Fatal(err)
	}
	if _, body := fetch(t, serve(t, wild), "/nodes"); !strings.Contains(body, `"broadcast_address":"127.0.0.1"`) {
		t.Errorf("nodes = %s", body)
	}
}

// go-nsq's own consumer finds the broker through its lookup.
func TestHTTP_LookupByGoNSQ(t *testing.T) {
	b := open(t, broker.Options{})
	s := serve(t, b)
	consumer, err := nsq.NewConsumer("topic", workers, nsq.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	consumer.SetLoggerLevel(nsq.LogLevelMax + 1)
	web := &http.Client{Transport: &http.Transport{}}
	defer web.CloseIdleConnections()
	consumer.SetLookupdHttpClient(web)
	got := make(chan string, 1)
	consumer.AddHandler(nsq.HandlerFunc(func(m *nsq.Message) error {
		got <- string(m.Body)
		return nil
	}))
	if err := consumer.ConnectToNSQLookupd(strings.TrimPrefix(s.URL, "http://")); err != nil {
		t.Fatalf("connect: %v", err)
	}
	p, _ := queuetest.Dial(t, b.Addr(), nil)
	p.Publish("topic", "found")
	if body := <-got; body != "found" {
		t.Errorf("body = %q, want found", body)
	}
	consumer.Stop()
	<-consumer.StopChan
}
