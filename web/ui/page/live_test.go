package page

import (
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/webserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLiveParts(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string // id=text
	}{
		"none":                    {`<p id="a">x</p><p data-live>no id</p>`, nil},
		"in order":                {`<p id="b" data-live>1</p>between<p data-live id="a">2</p>`, []string{`b=<p id="b" data-live>1</p>`, `a=<p data-live id="a">2</p>`}},
		"elements of its name":    {`<div id="a" data-live><div>1</div><div></div></div><div>2</div>`, []string{`a=<div id="a" data-live><div>1</div><div></div></div>`}},
		"a part within a part":    {`<ul id="a" data-live><li id="b" data-live>1</li></ul>`, []string{`a=<ul id="a" data-live><li id="b" data-live>1</li></ul>`}},
		"rows":                    {`<table><tr id="r1" data-live><td>1</td></tr><tr id="r2" data-live><td><table><tr></tr></table></td></tr></table>`, []string{`r1=<tr id="r1" data-live><td>1</td></tr>`, `r2=<tr id="r2" data-live><td><table><tr></tr></table></td></tr>`}},
		"an element without end":  {`<img id="a" data-live src="x"><p id="b" data-live>1</p>`, []string{`a=<img id="a" data-live src="x">`, `b=<p id="b" data-live>1</p>`}},
		"void elements within":    {`<p id="a" data-live>1<br>2<img></p>`, []string{`a=<p id="a" data-live>1<br>2<img></p>`}},
		"closed at once, in SVG":  {`<svg><g id="a" data-live/><g id="b" data-live><path/></g></svg>`, []string{`a=<g id="a" data-live/>`, `b=<g id="b" data-live><path/></g>`}},
		"upper case":              {`<P ID="a" DATA-LIVE>1</P>`, []string{`a=<P ID="a" DATA-LIVE>1</P>`}},
		"tags in texts":           {`<p id="a" data-live>&lt;/p&gt; <!-- </p> --><textarea></p></textarea></p>`, []string{`a=<p id="a" data-live>&lt;/p&gt; <!-- </p> --><textarea></p></textarea></p>`}},
		"in a script":             {`<script>"<p id='a' data-live></p>"</script>`, nil},
		"an id with a reference":  {`<p id="a&amp;b" data-live></p>`, []string{`a&b=<p id="a&amp;b" data-live></p>`}},
		"cut off":                 {`<p id="a" data-live>1</p><p id="b" data-live>2`, []string{`a=<p id="a" data-live>1</p>`}},
		"an end without a begin":  {`</p><p id="a" data-live></p></p>`, []string{`a=<p id="a" data-live></p>`}},
		"empty":                   {``, nil},
		"an attribute's own tags": {`<p id="a" data-live title="</p>">1</p>`, []string{`a=<p id="a" data-live title="</p>">1</p>`}},
	} {
		var got []string
		for _, p := range liveParts([]byte(tt.text)) {
			got = append(got, p.id+"="+p.text)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Parts that differ in the texts of their times only do not differ; any other difference counts.
func TestDigest(t *testing.T) {
	digest := func(text string) string { return digestOf(liveParts([]byte(text))) }
	base := digest(`<p id="a" data-live>done <time datetime="1">2 s ago</time> by x</p>`)
	if base != digest(`<p id="a" data-live>done <time datetime="1">3 s ago</time> by x</p>`) {
		t.Error("an older time makes another digest")
	}
	for _, other := range []string{
		`<p id="a" data-live>done <time datetime="2">2 s ago</time> by x</p>`,
		`<p id="a" data-live>done <time datetime="1">2 s ago</time> by y</p>`,
		`<p id="a" data-live>Done <time datetime="1">2 s ago</time> by x</p>`,
		`<p id="b" data-live>done <time datetime="1">2 s ago</time> by x</p>`,
		`<p id="a" data-live class="x">done <time datetime="1">2 s ago</time> by x</p>`,
		``,
	} {
		if digest(other) == base {
			t.Errorf("%s has the same digest", other)
		}
	}
}

// feed is the Changes of a test.
type feed struct {
	mu    sync.Mutex
	end   int64
	moved chan struct{}
	bad   error // of the session
	done  chan struct{}
}

func newFeed() *feed { return &feed{moved: make(chan struct{}), done: make(chan struct{})} }

func (f *feed) move() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end++
	close(f.moved)
	f.moved = make(chan struct{})
}

func (f *feed) FeedEnd(context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end, nil
}

func (f *feed) AwaitFeed(ctx context.Context, after int64) error {
	f.mu.Lock()
	end, moved := f.end, f.moved
	f.mu.Unlock()
	if end > after {
		return nil
	}
	select {
	case <-moved:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// expel ends the viewer's session.
func (f *feed) expel(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bad = err
}

func (f *feed) Good(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bad
}

func (f *feed) Done() <-chan struct{} { return f.done }

// watched is a site with a page of two live parts, which set changes.
type watched struct {
	*Site
	feed    *feed
	mu      sync.Mutex // guards what follows
	a, b    string
	over    bool
	takes   time.Duration // to render it
	renders int
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{feed: newFeed(), a: "1", b: "1"}
	var err error
	w.Site, err = New(Options{
		Transport: http.DefaultTransport, May: func(context.Context, string) bool { return true },
		Caller: func(ctx context.Context) registry.Session {
			as, _ := ctx.Value(viewer{}).(registry.Session)
			return as
		},
		UploadUse: func(context.Context) ([]registry.UploadUse, error) { return nil, nil },
		Changes:   w.feed, Specification: func() ([]byte, error) { return nil, nil }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Add(fstest.MapFS{"page/test.html": {Data: []byte(`{{define "content"}}<p id="a" data-live>{{index .Content 0}} <time>{{index .Content 2}}</time></p>
<p id="b" data-live>{{index .Content 1}}</p>{{end}}`)}}, template.FuncMap{}, "test")
	show := func(*http.Request) (Page, error) {
		w.mu.Lock()
		w.renders++
		takes := w.takes
		shown := Page{Name: "test", Title: "Test", Live: !w.over, Content: []string{w.a, w.b, time.Now().String()}}
		w.mu.Unlock()
		time.Sleep(takes)
		return shown, nil
	}
	for i := range 5 {
		w.Get(fmt.Sprintf("/page%d", i), show)
	}
	return w
}

// set changes the page.
func (w *watched) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// rendered is how often the page was rendered.
func (w *watched) rendered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.renders
}

// open opens a stream of a page. The function that it returns ends it.
func (w *watched) open(t *testing.T, page, seen, last string) (*stream, func()) {
	t.Helper()
	return w.openAs(t, registry.Session{ID: "s", Name: "reader"}, page, seen, last)
}

// viewer is the key of a session in the context of a request.
type viewer struct{}

func (w *watched) openAs(t *testing.T, as registry.Session, page, seen, last string) (*stream, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), viewer{}, as))
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/live?page="+page+"&seen="+seen, http.NoBody)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	s := &stream{Recording: webserver.NewRecording(), over: make(chan struct{})}
	go func() {
		defer close(s.over)
		w.stream(s, r)
	}()
	return s, func() {
		cancel()
		<-s.over
	}
}

// stream is what a reader of a stream has received.
type stream struct {
	*webserver.Recording

	mu    sync.Mutex
	taken int
	over  chan struct{}
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Recording.Write(p)
}

func (s *stream) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Body.String()
}

func (s *stream) Flush()                           {}
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

// next is what has arrived since the last call, without comments.
func (s *stream) next() string {
	all := s.text()
	text := all[s.taken:]
	s.taken = len(all)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "retry:") && strings.TrimSpace(line) != "" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// has reports whether it is a patch of these parts, and of no other ones.
func has(text string, parts ...string) bool {
	return strings.Contains(text, "event: patch") == (len(parts) > 0) &&
		strings.Contains(text, `<p id="a"`) == slices.Contains(parts, "a") && strings.Contains(text, `<p id="b"`) == slices.Contains(parts, "b")
}

// idOf is the id of the last message.
func idOf(text string) (id string) {
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); name == "id" {
			id = value
		}
	}
	return id
}

// A stream begins with what the page lacks, then sends each part that changes, and no other one.
func TestLive_Patch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		s, end := w.open(t, "/page0", "", "")
		defer end()
		after := func(what string, parts ...string) (id string) {
			t.Helper()
			time.Sleep(liveAtLeast + 2*liveAtMost)
			synctest.Wait()
			text := s.next()
			if !has(text, parts...) {
				t.Errorf("%s: %q, want the parts %v", what, text, parts)
			}
			return idOf(text)
		}
		first := after("a reader who saw nothing", "a", "b")
		after("nothing has changed but the time")
		w.set(func() { w.a = "2" })
		w.feed.move()
		second := after("a change of a", "a")
		if first == "" || second == "" || first == second {
			t.Errorf("the ids %q and %q do not tell the states apart", first, second)
		}
		w.set(func() { w.b = "2" })
		after("a change without an event", "b") // such as progress inside a step
		w.set(func() { w.a, w.b = "3", "3" })
		w.feed.move()
		after("changes of both", "a", "b")
		w.set(func() { w.a = "4\nevent: over\n\n" })
		w.feed.move()
		time.Sleep(liveAtLeast)
		synctest.Wait()
		if text := s.next(); strings.Contains(text, "\nevent: over") || !strings.Contains(text, "data: event: over") {
			t.Errorf("content ends a message: %q", text)
		}
	})
}

// A reader who returns gets what changed meanwhile, and nothing if nothing did. What the browser says
// it received last counts more than what the page began with.
func TestLive_Resume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		first := func(seen, last string) string {
			s, end := w.open(t, "/page0", seen, last)
			defer end()
			time.Sleep(liveAtMost)
			synctest.Wait()
			return s.next()
		}
		old := idOf(first("", ""))
		if text := first(old, ""); text != "" {
			t.Errorf("a reader who has everything receives %q", text)
		}
		w.set(func() { w.b = "2" })
		text := first(old, "")
		if !has(text, "a", "b") { // it is not known which of them the page lacks
			t.Errorf("a page of before the change receives %q", text)
		}
		if again := first(old, idOf(text)); again != "" {
			t.Errorf("a reader who has received everything receives %q", again)
		}
		if again := first(idOf(text), old); !has(again, "a", "b") {
			t.Errorf("a reader who received the state before receives %q", again)
		}
		// Another server knows nothing of the streams of this one, but its state is the same.
		other := newWatched(t)
		other.b = "2"
		s, end := other.open(t, "/page0", "", idOf(text))
		defer end()
		time.Sleep(liveAtMost)
		synctest.Wait()
		if again := s.next(); again != "" {
			t.Errorf("after a restart of the server a reader receives %q", again)
		}
	})
}

// A stream ends when the page changes no more, when the session ends, and when the server stops.
// None leaves a goroutine: synctest would report it.
func TestLive_Ends(t *testing.T) {
	for name, act := range map[string]func(w *watched){
		"the page is final":     func(w *watched) { w.set(func() { w.over = true }); w.feed.move() },
		"the session has ended": func(w *watched) { w.feed.expel(registry.ErrNotFound) },
		"the server stops":      func(w *watched) { close(w.feed.done) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatched(t)
				s, end := w.open(t, "/page0", "", "")
				defer end()
				time.Sleep(liveAtMost)
				synctest.Wait()
				select {
				case <-s.over:
					t.Fatal("it ended at once")
				default:
				}
				act(w)
				begun := time.Now()
				<-s.over
				if took := time.Since(begun); took > liveCheck+liveAtLeast+2*liveAtMost {
					t.Errorf("it ended after %v", took)
				}
				if text := s.next(); strings.Contains(text, "event: over") != w.over {
					t.Errorf("it ended with %q", text)
				}
				if len(w.live.streams) != 0 || len(w.live.pages) != 0 {
					t.Errorf("%v and %d pages are left", w.live.streams, len(w.live.pages))
				}
			})
		})
	}
}

// What a reader may not see, or what is no page, has no stream.
func TestLive_Refuses(t *testing.T) {
	w := newWatched(t)
	w.Get("/forbidden", func(*http.Request) (Page, error) { return Page{}, Forbidden() })
	for _, page := range []string{"/forbidden", "/none", "/live%3Fpage%3D/page0", "//example.com/", "https://example.com/", "/page0%3Fx%3D%25zz%00"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/live?page="+page, http.NoBody)
		s := &stream{Recording: webserver.NewRecording()}
		w.stream(s, r)
		if text := s.text(); strings.Contains(text, "event: patch") {
			t.Errorf("%s has a stream: %s", page, text)
		}
	}
}

// One person has a bounded number of streams; when one ends, another may begin.
func TestLive_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		w.live.streams["reader"] = mostLive - 1
		_, endLast := w.open(t, "/page0", "", "")
		synctest.Wait()
		s, end := w.open(t, "/page1", "", "")
		end()
		if s.Status != http.StatusTooManyRequests {
			t.Errorf("stream %d is answered with %d", mostLive+1, s.Status)
		}
		endLast()
		s, end = w.open(t, "/page1", "", "")
		defer end()
		time.Sleep(liveAtMost)
		synctest.Wait()
		if s.Status != http.StatusOK || !has(s.next(), "a", "b") {
			t.Errorf("after one has ended, the next is answered with %d", s.Status)
		}
	})
}

// Readers of the same page share a rendering.
func TestLive_Shares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		w.set(func() { w.takes = 10 * time.Millisecond })
		const readers = 50
		var all []*stream
		for range readers {
			s, end := w.open(t, "/page0", "", "")
			defer end()
			all = append(all, s)
		}
		time.Sleep(liveAtMost)
		synctest.Wait()
		for _, s := range all {
			if !has(s.next(), "a", "b") {
				t.Fatal("a reader has not begun")
			}
		}
		w.set(func() { w.renders, w.a = 0, "2" })
		w.feed.move()
		time.Sleep(liveAtMost + time.Second)
		synctest.Wait()
		for i, s := range all {
			if text := s.next(); !has(text, "a") {
				t.Errorf("reader %d receives %q", i, text)
			}
		}
		const most = 5
		if w.rendered() > most {
			t.Errorf("%d readers made %d renderings, want at most %d", readers, w.rendered(), most)
		}
	})
}

// Readers of one role share a rendering if the page says that it shows them the same, but for
// depositors, who see their own collections.
func TestLive_SharesByRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		show := func(alike bool) func(*http.Request) (Page, error) {
			return func(r *http.Request) (Page, error) {
				time.Sleep(time.Millisecond)
				return Page{Name: "test", Title: "Test", Live: true, Alike: alike, Content: []string{"for " + w.Caller(r.Context()).Name, "", ""}}, nil
			}
		}
		w.Get("/alike", show(true))
		w.Get("/own", show(false))
		session := func(name string, role registry.Role) registry.Session {
			return registry.Session{ID: "of " + name, Name: name, Role: role}
		}
		readers := []registry.Session{
			session("anna", registry.RoleOperator), session("ben", registry.RoleOperator), session("vera", registry.RoleViewer),
			session("dora", registry.RoleDepositor), session("dirk", registry.RoleDepositor),
		}
		w.set(func() { w.takes = time.Millisecond })
		for path, shared := range map[string]bool{"/alike": true, "/own": false} {
			_, end := w.open(t, "/page0", "", "") // while it is rendered, all readers ask
			defer end()
			synctest.Wait()
			var all []*stream
			for _, as := range readers {
				s, end := w.openAs(t, as, path, "", "")
				defer end()
				all = append(all, s)
			}
			time.Sleep(liveAtMost)
			synctest.Wait()
			for i, s := range all {
				text := s.next()
				if !has(text, "a", "b") {
					t.Fatalf("%s at %s receives %q", readers[i].Name, path, text)
				}
				mine := strings.Contains(text, "for "+readers[i].Name)
				other := strings.Contains(text, "for anna") || strings.Contains(text, "for ben")
				if operator := readers[i].Role == registry.RoleOperator; !mine && (!shared || !operator) || other != operator {
					t.Errorf("%s at %s receives %q", readers[i].Name, path, text)
				}
				if tells := strings.Contains(s.text(), liveShared); tells != shared {
					t.Errorf("%s at %s is told %t that it is shared", readers[i].Name, path, tells)
				}
			}
			if same := all[0].text() == all[1].text(); same != shared {
				t.Errorf("two operators at %s receive the same: %t", path, same)
			}
		}
	})
}

// However many pages are open and however much changes, rendering takes a tenth of a processor.
func TestLive_Paces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		w.set(func() { w.takes = 100 * time.Millisecond })
		for i := range 5 {
			_, end := w.open(t, fmt.Sprintf("/page%d", i), "", "")
			defer end()
		}
		const span = time.Minute
		for begun := time.Now(); time.Since(begun) < span; time.Sleep(50 * time.Millisecond) {
			w.feed.move()
		}
		busy := time.Duration(w.rendered()) * w.takes
		if busy > span/liveShare+w.takes {
			t.Errorf("rendering took %v of %v", busy, span)
		}
		if busy < span/liveShare/2 {
			t.Errorf("rendering took only %v of %v", busy, span)
		}
	})
}

// TestLive_Seen: a page begins its stream with the digest of what it shows, even if a part of it looks
// like the place of the digest.
func TestLive_Seen(t *testing.T) {
	w := newWatched(t)
	w.a = "&seen=" + unseen
	page := webserver.NewRecording()
	w.ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/page0", http.NoBody))
	want := digestOf(liveParts(page.Body.Bytes()))
	if text := page.Body.String(); len(unseen) != len(want) || strings.Count(text, "seen="+want) != 1 || strings.Count(text, "seen="+unseen) != 1 {
		t.Errorf("no stream from %s:\n%s", want, text)
	}
}
