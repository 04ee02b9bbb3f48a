package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nsqio/go-nsq"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/queue/broker"
)

// heard is what a receiver got, event by event.
type heard struct {
	mu     sync.Mutex
	seqs   []int64
	events []string // their bytes
}

func (h *heard) add(t *testing.T, raw []byte) {
	var e struct{ Data struct{ Seq int64 } }
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Errorf("event %s: %v", raw, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seqs, h.events = append(h.seqs, e.Data.Seq), append(h.events, string(raw))
}

// all returns the numbers and the bytes of the events.
func (h *heard) all() ([]int64, []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seqs), slices.Clone(h.events)
}

// TestFeed: a webhook and an NSQ topic get all events of a batch in order, although the webhook is
// down at first and the process is killed meanwhile. A rewind repeats them.
func TestFeed(t *testing.T) {
	t.Parallel()
	const key = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	parsed, err := callback.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var web, topic heard
	var mu sync.Mutex
	down := true
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		if _, err := callback.Verify(r.Header.Get, body, time.Now(), time.Minute, parsed); err != nil {
			t.Errorf("not ours: %v", err)
		}
		if down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var events []json.RawMessage
		if err := json.Unmarshal(body, &events); err != nil {
			t.Errorf("body %s: %v", body, err)
		}
		for _, e := range events {
			web.add(t, e)
		}
	}))
	t.Cleanup(receiver.Close)
	nsqd, err := broker.New(broker.Options{})
	if err == nil {
		err = nsqd.Listen("127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nsqd.Close() })
	config := nsq.NewConfig()
	config.MaxInFlight = 1
	consumer, err := nsq.NewConsumer("life", "them", config)
	if err != nil {
		t.Fatal(err)
	}
	consumer.SetLoggerLevel(nsq.LogLevelMax)
	consumer.AddHandler(nsq.HandlerFunc(func(m *nsq.Message) error { topic.add(t, m.Body); return nil }))
	if err := consumer.ConnectToNSQD(nsqd.Addr()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { consumer.Stop(); <-consumer.StopChan })

	h := up(t, "HOLDFAST_NSQD_ADDR="+nsqd.Addr())
	add := exec.Command(binary, "feed", "add", "web", "--to", receiver.URL+"/secret-path", "--from", "start", "--signing-key-file", "-", "--dir", h.dir)
	add.Env, add.Stdin = h.environment(), strings.NewReader(key+"\n")
	if r := h.finish(add); r.code != 0 || strings.Contains(r.stdout, key) {
		t.Fatalf("add ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	h.must(0, "feed", "add", "topic", "--to", "nsq:life", "--from", "start")
	var files []string
	for i := range 3 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.txt", i))
		if err := os.WriteFile(path, fmt.Appendf(nil, "file %d", i), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	for _, path := range files {
		if s, code := h.submit(path); code != 0 {
			t.Fatalf("submit ended with %d: %+v", code, s)
		}
	}
	h.until("the failure is known", func() bool {
		return strings.Contains(h.must(0, "queue", "status").stdout, "web failing since")
	})
	says(t, "the subscription", h.must(0, "feed", "show", "web").stdout, "failing since", "HTTP 503", "behind")
	_ = h.signal(os.Kill) // that it ended by it is no news
	h.start()
	mu.Lock()
	down = false
	mu.Unlock()
	h.must(0, "feed", "resume", "web")

	feed := func() (seqs []int64) {
		for line := range strings.Lines(h.must(0, "events", "--json", "--limit", "0").stdout) {
			var e struct{ Seq int64 }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			seqs = append(seqs, e.Seq)
		}
		return seqs
	}
	has := func(who *heard, want []int64) {
		t.Helper()
		last := want[len(want)-1]
		h.until(fmt.Sprintf("event %d is told", last), func() bool {
			seqs, _ := who.all()
			return slices.Contains(seqs, last)
		})
	}
	want := feed()
	for name, who := range map[string]*heard{"webhook": &web, "topic": &topic} {
		has(who, want)
		seqs, _ := who.all()
		var firsts []int64
		for _, seq := range seqs { // the kill may have had some repeated
			if !slices.Contains(firsts, seq) {
				firsts = append(firsts, seq)
			}
		}
		if diff := cmp.Diff(want, firsts[:min(len(want), len(firsts))]); diff != "" {
			t.Errorf("the %s was told (-want +got):\n%s", name, diff)
		}
	}
	_, events := web.all()
	completed := 0
	for _, e := range events {
		if strings.Contains(e, `"action":"ingest"`) && strings.Contains(e, `"state":"Completed"`) {
			completed++
		}
	}
	if completed < len(files) {
		t.Errorf("%d jobs were told as completed, want %d", completed, len(files))
	}

	h.until("nothing more is to be told", func() bool {
		seqs, _ := web.all()
		return strings.Contains(h.must(0, "feed", "show", "web", "--json").stdout, `"behind":0`) && seqs[len(seqs)-1] == feed()[len(feed())-1]
	})
	before, told := web.all()
	first := map[int64]string{}
	for i, seq := range before {
		first[seq] = told[i]
	}
	h.must(0, "feed", "rewind", "web", "--to", "0", "--reason", "they lost their database")
	want = feed()
	h.until("everything is told again", func() bool {
		seqs, _ := web.all()
		return slices.Equal(seqs[max(0, len(seqs)-len(want)):], want)
	})
	seqs, again := web.all()
	for i, raw := range again[len(before):] {
		if old, ok := first[seqs[len(before)+i]]; ok && !bytes.Equal([]byte(old), []byte(raw)) {
			t.Errorf("told again differently:\n%s\n%s", old, raw)
		}
	}
	if strings.Contains(h.log.String(), key) || strings.Contains(h.log.String(), "secret-path") {
		t.Error("a secret is in the log")
	}
	says(t, "the audit log", h.must(0, "audit", "list").stdout, "subscription-rewound", "subscription-set")
	h.must(0, "feed", "remove", "web")
	says(t, "the list", h.must(0, "feed", "list").stdout, "topic", "nsq:life", "everything")
	h.must(4, "feed", "show", "web")
}
