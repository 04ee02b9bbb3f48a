package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/webserver"
)

// An open page is kept up to date by a stream (server-sent events, HTML 9.2) of its live parts: the
// elements with the attribute data-live, which must have an id. The stream renders the page again
// when something has changed, and sends the parts that differ from what it sent before. A part whose
// text differs in its times only does not differ: the page's script ages them.
//
// So no event can be missed: what is sent is the present state. A reader that was cut off, or whose
// server was restarted, gets all that it lacks with its first message.
//
// The id of a message is a digest of all live parts. A page begins its stream with the digest of what
// it shows.
//
// Readers of one page share its renderings: those of one viewer, and, if the page says that it shows
// all of a role the same (Page.Alike), all readers of a role that sees every collection.

// Changes tells when something has changed. Its methods are as in registry.Feeds.
type Changes interface {
	FeedEnd(ctx context.Context) (int64, error)
	AwaitFeed(ctx context.Context, after int64) error
	// Good returns an error if the viewer's session or token has ended.
	Good(ctx context.Context) error
	// Done is closed when the server begins to stop.
	Done() <-chan struct{}
}

// Times of streams.
const (
	liveAtMost  = time.Second      // between two messages
	liveAtLeast = 5 * time.Second  // between two looks, since progress inside a step is no event
	liveCheck   = 15 * time.Second // of the session
	liveWrite   = 30 * time.Second // for a reader to receive a message
	liveRetry   = time.Second      // after which a reader should reconnect
	mostPause   = 2 * time.Second
)

// mostLive is how many streams one person may have open.
const mostLive = 300

// liveShare is how much of one processor all streams together take, as a divisor: rendering pauses
// for 19 times as long as it took. Ingest comes first.
const liveShare = 20

// live is the streams' shared state.
type live struct {
	mu      sync.Mutex
	streams map[string]int // by the viewer's name
	pages   map[liveKey]*rendered
	end     int64         // of the feed, as far as a rendering has seen it
	turn    chan struct{} // has room for the one who renders a page
}

// liveKey tells what may share a rendering: the same page of the same viewer, or of the same role.
type liveKey struct {
	viewKey
	viewer string // "": everybody of the role
	role   registry.Role
	page   string
}

// rendered is the last rendering of a page.
type rendered struct {
	readers int
	begun   time.Time
	end     int64 // of the feed, before it began
	parts   []part
	digest  string
	over    bool // the page does not change any more
	alike   bool // all of the role see the same
}

// part is a live part of a page.
type part struct {
	id   string
	text string
	key  [sha256.Size]byte // of the text without its times
}

func digestOf(parts []part) string {
	sum := sha256.New()
	for _, p := range parts {
		_, _ = io.WriteString(sum, p.id+"\x00") // a hash does not fail
		_, _ = sum.Write(p.key[:])
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// liveMark is in the context of a request that renders a page for its streams: a *rendered.
type liveMark struct{}

// Streaming reports whether a page is rendered for its streams, which use its live parts only. What
// stands elsewhere on the page then need not be asked for.
func Streaming(r *http.Request) bool { return r.Context().Value(liveMark{}) != nil }

// stream answers GET /live?page=ADDRESS&seen=DIGEST.
func (s *Site) stream(w http.ResponseWriter, r *http.Request) {
	ctx, name := r.Context(), s.Caller(r.Context()).Name
	address, err := url.Parse(Local(r.URL.Query().Get("page")))
	if err != nil || address.Path == "/live" {
		s.Fail(w, r, Invalid("the address names no page"))
		return
	}
	if !s.live.enter(name) {
		http.Error(w, "too many open pages", http.StatusTooManyRequests)
		return
	}
	defer s.live.leave(name)
	v := s.viewOf(r)
	reader := &liveReader{
		site: s, request: r, page: address, out: w, control: http.NewResponseController(w), sent: map[string][sha256.Size]byte{},
		seen: r.URL.Query().Get("seen"),
	}
	caller := s.Caller(ctx)
	own := liveKey{viewKey{v.texts.Tag, v.zone.String()}, name + "\x00" + caller.ID, caller.Role, address.String()}
	reader.keys = []liveKey{own}
	if (registry.Token{Role: caller.Role}).Within() == nil {
		shared := own
		shared.viewer = ""
		reader.keys = append(reader.keys, shared)
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		reader.seen = last
	}
	defer s.live.forget(reader.keys)
	s.live.keep(reader.keys)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")                   // for nginx as a proxy
	defer reader.control.SetWriteDeadline(time.Time{}) //nolint:errcheck // the connection is reused, or closed
	if err := reader.run(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errLiveOver) {
		s.Log.InfoContext(ctx, "stream of a page ended", "page", address.Path, "actor", name, "err", err)
	}
}

// liveShared is a comment that says that all of the viewer's role are sent the same.
const liveShared = ": for all of the role\n\n"

// errLiveOver ends a stream without a fault.
var errLiveOver = errors.New("the stream is over")

// liveReader is one open page.
type liveReader struct {
	site    *Site
	request *http.Request
	page    *url.URL
	keys    []liveKey // of the renderings that are for it: its viewer's, and its role's
	out     io.Writer
	control *http.ResponseController
	seen    string                       // digest of what the page shows
	sent    map[string][sha256.Size]byte // what was sent, by id
}

func (l *liveReader) run(ctx context.Context) error {
	if err := l.send(fmt.Sprintf("retry: %d\n\n", liveRetry.Milliseconds())); err != nil {
		return err
	}
	checked, told := time.Now(), false
	for {
		now, err := l.site.rendering(ctx, l.keys, l.request, l.page)
		if err != nil {
			return err
		}
		if now.alike && !told {
			told = true
			if err := l.send(liveShared); err != nil {
				return err
			}
		}
		if err := l.patch(now); err != nil {
			return err
		}
		if now.over {
			return l.send("event: over\ndata:\n\n")
		}
		if time.Since(checked) > liveCheck {
			checked = time.Now()
			if err := l.site.Changes.Good(ctx); err != nil {
				return err
			}
			if err := l.send(": keep-alive\n\n"); err != nil {
				return err
			}
		}
		if err := l.await(ctx, now.end); err != nil {
			return err
		}
	}
}

// await returns when it is time to look again.
func (l *liveReader) await(ctx context.Context, after int64) error {
	if !l.site.live.goneOn(after) {
		if err := l.awaitFeed(ctx, after); err != nil {
			return err
		}
	}
	pause := time.NewTimer(liveAtMost)
	defer pause.Stop()
	select {
	case <-l.site.Changes.Done():
		return errLiveOver
	case <-ctx.Done():
		return errLiveOver
	case <-pause.C:
		return nil
	}
}

// awaitFeed returns when something has changed, or after some time.
func (l *liveReader) awaitFeed(ctx context.Context, after int64) error {
	waiting, cancel := context.WithTimeout(ctx, liveAtLeast)
	defer cancel()
	go func() {
		select {
		case <-l.site.Changes.Done():
			cancel()
		case <-waiting.Done():
		}
	}()
	if err := l.site.Changes.AwaitFeed(waiting, after); err != nil && waiting.Err() == nil {
		return err
	}
	return nil
}

// patch sends the parts that differ from what the page shows.
func (l *liveReader) patch(now *rendered) error {
	if now.digest == l.seen {
		for _, p := range now.parts {
			l.sent[p.id] = p.key
		}
		return nil
	}
	var b strings.Builder
	for _, p := range now.parts {
		if l.sent[p.id] != p.key {
			// A template of its own for each: behind a div, a parser drops the tags of a row.
			b.WriteString("data: <template>" + strings.ReplaceAll(p.text, "\n", "\ndata: ") + "</template>\n")
			l.sent[p.id] = p.key
		}
	}
	l.seen = now.digest
	if b.Len() == 0 { // a row has gone
		return nil
	}
	return l.send("id: " + now.digest + "\nevent: patch\n" + b.String() + "\n")
}

func (l *liveReader) send(text string) error {
	_ = l.control.SetWriteDeadline(time.Now().Add(liveWrite)) // if this fails, the server's own deadline holds
	if _, err := io.WriteString(l.out, text); err != nil {
		return fmt.Errorf("send changes: %w", err)
	}
	if err := l.control.Flush(); err != nil {
		return fmt.Errorf("send changes: %w", err)
	}
	return nil
}

// rendering returns a rendering of a page that begins after the call, or one that another reader has
// begun since for one of the keys. A rendering that fails is nobody else's: its reader may have gone.
func (s *Site) rendering(ctx context.Context, keys []liveKey, r *http.Request, page *url.URL) (*rendered, error) {
	asked := time.Now()
	select {
	case s.live.turn <- struct{}{}:
		defer func() { <-s.live.turn }()
	case <-ctx.Done():
		return nil, errLiveOver
	}
	for _, key := range keys {
		if last := s.live.last(key); last.begun.After(asked) {
			return last, nil
		}
	}
	begun := time.Now()
	now, err := s.render(ctx, r, page)
	if err == nil {
		key := keys[0]
		if now.alike {
			key = keys[len(keys)-1]
		}
		s.live.set(key, now)
	}
	pause := time.NewTimer(min(mostPause, (liveShare-1)*time.Since(begun)))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-s.Changes.Done():
	}
	return now, err
}

// render renders a page's live parts for its streams.
func (s *Site) render(ctx context.Context, r *http.Request, page *url.URL) (*rendered, error) {
	end, err := s.Changes.FeedEnd(ctx)
	if err != nil {
		return nil, err
	}
	now := &rendered{begun: time.Now(), end: end}
	request, err := http.NewRequestWithContext(context.WithValue(ctx, liveMark{}, now), http.MethodGet, page.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("render page: %w", err)
	}
	request.Header["Cookie"] = r.Header["Cookie"]
	request.Header["Accept-Language"] = r.Header["Accept-Language"]
	request.RequestURI = page.RequestURI()
	answer := webserver.NewRecording()
	now.over = true
	s.mux.ServeHTTP(answer, request)
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("page %s answers %d", page.Path, answer.Status)
	}
	now.parts = liveParts(answer.Body.Bytes())
	now.digest = digestOf(now.parts)
	return now, nil
}

func newLive() live {
	return live{streams: map[string]int{}, pages: map[liveKey]*rendered{}, turn: make(chan struct{}, 1)}
}

func (l *live) enter(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[name] >= mostLive {
		return false
	}
	l.streams[name]++
	return true
}

func (l *live) leave(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[name]--; l.streams[name] == 0 {
		delete(l.streams, name)
	}
}

// keep adds a reader of a page; forget removes it.
func (l *live) keep(keys []liveKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if l.pages[key] == nil {
			l.pages[key] = &rendered{}
		}
		l.pages[key].readers++
	}
}

func (l *live) forget(keys []liveKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if l.pages[key].readers--; l.pages[key].readers == 0 {
			delete(l.pages, key)
		}
	}
}

func (l *live) last(key liveKey) *rendered {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pages[key]
}

func (l *live) set(key liveKey, now *rendered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now.readers = l.pages[key].readers
	l.pages[key] = now
	l.end = max(l.end, now.end)
}

// goneOn reports whether a rendering has seen the feed go on behind a cursor.
func (l *live) goneOn(after int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end > after
}
