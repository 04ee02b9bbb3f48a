package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// opened starts a stream and returns its lines.
func (b *bench) opened(t *testing.T, query string, header ...string) (lines *bufio.Scanner, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+"/api/v1/events"+query, http.NoBody)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+tokenText(registry.RoleViewer))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := b.server.Client().Do(r)
	must(t, err)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("stream: %d %v", answer.StatusCode, answer.Header)
	}
	stop = func() {
		cancel()
		_ = answer.Body.Close()
	}
	t.Cleanup(stop)
	return bufio.NewScanner(answer.Body), stop
}

// message reads the next message of a stream.
func message(t *testing.T, lines *bufio.Scanner) (text string) {
	t.Helper()
	for lines.Scan() {
		if lines.Text() == "" {
			return text
		}
		text += lines.Text() + "\n"
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return ""
}

func TestEvents_Stream(t *testing.T) {
	b := newBench(t)
	first, _ := b.batchOf(t, "first")
	end, err := b.store.FeedEnd(t.Context())
	must(t, err)
	lines, stop := b.opened(t, "")
	if got, want := message(t, lines), fmt.Sprintf("retry: 1000\nid: %d\n", end); got != want {
		t.Errorf("first message %q, want %q: it begins now", got, want)
	}
	r, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/2"}, "")
	must(t, err)
	got := message(t, lines)
	for _, want := range []string{fmt.Sprintf("id: %d\n", end+1), "event: submit\n", `data: {"id":"`, fmt.Sprintf(`"seq":%d`, end+1), `"item_id":"` + r.BatchID + `"`, `"collection":"default"`, `"actor":"the depositor"`} {
		if !strings.Contains(got, want) {
			t.Errorf("message %q, want %q in it", got, want)
		}
	}
	stop()
	for name, c := range map[string]struct{ query, last, want string }{
		"after":                    {"?after=0", "", "id: 1\n"},
		"Last-Event-ID goes first": {"?after=0", "3", "id: 4\n"},
		"types":                    {"?after=0&types=claim,submit", "", "event: submit\n"},
		"item":                     {"?after=0&item=" + r.BatchID, "", `"item_id":"` + r.BatchID + `"`},
	} {
		lines, stop := b.opened(t, c.query, "Last-Event-ID", c.last)
		message(t, lines)
		if got := message(t, lines); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", name, got, c.want)
		}
		stop()
	}
	for query, location := range map[string]string{
		"?after=x": "query.after", "?after=-1": "query.after", "?after=99999": "query.after", "?other=1": "query.other",
	} {
		answer, text := b.send(t, http.MethodGet, "/api/v1/events"+query, "")
		if p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid); p.Faults[0].Location != location {
			t.Errorf("%s: %+v, want a fault at %s", query, p.Faults, location)
		}
	}
	answer, text := b.send(t, http.MethodGet, "/api/v1/events?item=none", "")
	wantProblem(t, answer, text, http.StatusNotFound, wire.CodeNotFound)
	_ = first
}

// TestEvents_EndsWithTheServer checks that a stream ends when the server begins to stop, and is
// refused once its token has ended.
func TestEvents_EndsWithTheServer(t *testing.T) {
	done := make(chan struct{})
	b := newBench(t, func(_ *bench, o *api.Options) { o.Done = done })
	lines, _ := b.opened(t, "")
	message(t, lines)
	close(done)
	for lines.Scan() { // to its clean end
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream was broken off: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := b.server.Config.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// TestEvents_UntilTheTokenEnds checks that keep-alive messages move the cursor past unselected
// events, until the token ends.
func TestEvents_UntilTheTokenEnds(t *testing.T) {
	b := newBench(t, func(_ *bench, o *api.Options) { o.KeepAlive = 10 * time.Millisecond })
	lines, _ := b.opened(t, "?types=none")
	message(t, lines)
	b.batchOf(t, "x")
	end, err := b.store.FeedEnd(t.Context())
	must(t, err)
	for want := fmt.Sprintf(": keep-alive\nid: %d\n", end); ; {
		if got := message(t, lines); got == want {
			break
		} else if !strings.HasPrefix(got, ": keep-alive\nid: ") {
			t.Fatalf("message %q, want a sign of life", got)
		}
	}
	must(t, b.store.RevokeToken(t.Context(), string(registry.RoleViewer), "test"))
	for lines.Scan() { // to its end
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream was broken off: %v", err)
	}
	err = b.as(t, registry.RoleViewer).FollowEvents(t.Context(), registry.FeedQuery{}, func(registry.Event) error { return nil })
	problemOf(t, err, http.StatusUnauthorized, wire.CodeUnauthenticated)
}

// TestEvents_SlowReader checks that a reader that reads nothing delays neither other readers nor
// writers.
func TestEvents_SlowReader(t *testing.T) {
	b := newBench(t)
	lines, _ := b.opened(t, "?after=0") // and reads no more
	message(t, lines)
	long := strings.Repeat("x", 1900)
	var wg sync.WaitGroup
	const writers, each = 20, 60 // 11 MB, more than any buffer on the way
	for range writers {
		wg.Go(func() {
			for range each {
				must(t, b.store.Refused(t.Context(), registry.Refusal{Code: "test", Detail: long, Operation: long, Remote: long, RequestID: long, Actor: long}))
			}
		})
	}
	wg.Wait()
	enough := errors.New("enough")
	n := 0
	err := b.as(t, registry.RoleViewer).FollowEvents(t.Context(), registry.FeedQuery{Types: []string{"refused"}}, func(registry.Event) error {
		if n++; n == writers*each {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("the other reader saw %d: %v", n, err)
	}
}

// restarting is a server that is killed and started again at one address, over one database.
type restarting struct {
	t       *testing.T
	url     string
	address string
	store   atomic.Pointer[sqlstore.Store]
	server  *http.Server
	done    sync.WaitGroup
	base    *bench
}

func (r *restarting) start() {
	r.t.Helper()
	store, err := sqlstore.Open(context.WithoutCancel(r.t.Context()), sqlstore.Options{URL: r.url})
	must(r.t, err)
	handler, err := api.New(api.Options{
		Registry: store, Staging: r.base.staging, Objects: roots(r.base.objects), Log: slog.New(slog.DiscardHandler),
	})
	must(r.t, err)
	l, err := (&net.ListenConfig{}).Listen(r.t.Context(), "tcp", r.address)
	must(r.t, err)
	r.address = l.Addr().String()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	r.store.Store(store)
	r.server = server
	r.done.Go(func() { _ = server.Serve(l) })
}

// kill breaks every connection off, wherever in a message it is, and closes the database.
func (r *restarting) kill() {
	r.t.Helper()
	must(r.t, r.server.Close())
	r.done.Wait()
	must(r.t, r.store.Load().Close())
}

// TestEvents_AcrossRestarts checks that readers that reconnect after a kill of the server miss
// nothing and see nothing twice (R17).
func TestEvents_AcrossRestarts(t *testing.T) {
	r := &restarting{t: t, url: sqlstoretest.SQLite(t), address: "127.0.0.1:0", base: newBench(t)}
	r.start()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, r.store.Load().AddToken(ctx, registry.Token{ID: "v", Hash: signin.Hash("v"), Name: "v", Role: registry.RoleViewer}))
	begin, err := r.store.Load().FeedEnd(ctx)
	must(t, err)
	const restarts, readers = 3, 3
	var writing, reading sync.WaitGroup
	var wrote atomic.Int64
	stop := make(chan struct{})
	for range 4 {
		writing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// A write that comes while the database is closed is not one.
				if r.store.Load().Refused(ctx, registry.Refusal{Code: "test", Detail: strings.Repeat("y", 500)}) == nil {
					wrote.Add(1)
				}
			}
		})
	}
	ended := errors.New("ended")
	last := make(chan int64, readers)
	var followed [readers]atomic.Int64
	for i := range readers {
		reading.Go(func() {
			c := client.New("http://"+r.address, "v", client.Options{})
			defer c.Close()
			seen, want := begin, int64(0)
			err := c.FollowEvents(ctx, registry.FeedQuery{After: begin}, func(e registry.Event) error {
				if e.Seq != seen+1 {
					t.Errorf("reader %d: event %d after %d", i, e.Seq, seen)
				}
				seen = e.Seq
				followed[i].Store(seen)
				if want == 0 {
					select {
					case want = <-last:
					default:
					}
				}
				if want != 0 && seen >= want {
					return ended
				}
				return nil
			})
			if !errors.Is(err, ended) {
				t.Errorf("reader %d ended at %d: %v", i, seen, err)
			}
		})
	}
	for range restarts {
		// Each life serves every reader something before it is killed.
		for i := range readers {
			for at := followed[i].Load(); followed[i].Load() < at+60 && ctx.Err() == nil; {
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
				}
			}
		}
		r.kill()
		r.start()
	}
	close(stop)
	writing.Wait()
	end, err := r.store.Load().FeedEnd(ctx)
	must(t, err)
	if end-begin != wrote.Load() {
		t.Errorf("%d events of %d writes", end-begin, wrote.Load())
	}
	for range readers {
		last <- end + 1
	}
	must(t, r.store.Load().Refused(ctx, registry.Refusal{Code: "last"}))
	reading.Wait()
	r.kill()
}

func TestFollowEvents_Refused(t *testing.T) {
	b := newBench(t)
	never := func(registry.Event) error { return io.EOF }
	err := b.as(t, registry.RoleWorker).FollowEvents(t.Context(), registry.FeedQuery{}, never)
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
	err = b.as(t, registry.RoleViewer).FollowEvents(t.Context(), registry.FeedQuery{After: 1 << 40}, never)
	problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeInvalid)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.as(t, registry.RoleViewer).FollowEvents(ctx, registry.FeedQuery{After: client.FromNow}, never); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("from now: %v, want it to wait until its context ends", err)
	}
}

func TestFeed_WaitsAndPages(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleViewer)
	first, err := c.FeedPage(t.Context(), 0, 0)
	must(t, err)
	end := first.End
	waiting := make(chan error, 1)
	go func() {
		f, err := c.FeedPage(t.Context(), end, 15)
		if err == nil && f.End <= end {
			err = errors.New("no event came")
		}
		waiting <- err
	}()
	b.batchOf(t, "x")
	must(t, <-waiting)
	all, err := b.store.Feed(t.Context(), registry.FeedQuery{Limit: 500})
	must(t, err)
	got, err := c.Feed(t.Context(), registry.FeedQuery{Limit: 500})
	must(t, err)
	if len(got) != len(all) || len(got) < 8 {
		t.Errorf("%d events by way of the API, want %d", len(got), len(all))
	}
	got, err = c.Feed(t.Context(), registry.FeedQuery{After: end, Types: []string{"submit", "claim"}, Within: []string{"default"}, Limit: 2})
	must(t, err)
	if len(got) != 2 || got[0].Type != "submit" || got[1].Type != "claim" {
		t.Errorf("events %+v, want submit and claim", got)
	}
	answer, text := b.send(t, http.MethodGet, "/api/v1/feed?limit=501", "")
	wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
	if _, text := b.send(t, http.MethodGet, fmt.Sprintf("/api/v1/feed?types=none&after=%d", end), ""); !strings.Contains(text, fmt.Sprintf(`"next":%d`, all[len(all)-1].Seq)) {
		t.Errorf("feed %s, want to go on behind what was not asked for", text)
	}
}
