package ezid_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/ezid/ezidtest"
)

const ark = "ark:/99999/fk4x"

func newClient(t *testing.T, change func(o *ezid.Options)) (*ezid.Client, *ezidtest.Server) {
	t.Helper()
	server := ezidtest.New(t)
	o := ezid.Options{URL: server.URL(), Target: "https://example.org/m/{ark}?a=b%20c", Wait: time.Millisecond}
	if change != nil {
		change(&o)
	}
	c, err := ezid.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, server
}

func name() ezid.Name { return ezid.Name{ARK: ark, Item: "item-1"} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPublish_Escapes checks that values with special characters are sent and read back unchanged.
func TestPublish_Escapes(t *testing.T) {
	t.Parallel()
	c, server := newClient(t, nil)
	must(t, c.Reserve(t.Context(), name()))
	n := name()
	n.Who = []string{"Ω: é, 50% %41", "second\r\nline"}
	n.What = []string{"a\ttab\u2028and: more"}
	must(t, c.Publish(t.Context(), n))
	want := map[string]string{
		"_status": "public", "_profile": "erc", "holdfast.item": "item-1", "_target": "https://example.org/m/ark%3A%2F99999%2Ffk4x?a=b%20c",
		"erc.who": "Ω: é, 50% %41; second\r\nline", "erc.what": "a\ttab\u2028and: more", "erc.when": "(:unas)",
	}
	got := server.Name(ark)
	for label, value := range want {
		if got[label] != value {
			t.Errorf("%s is %q, want %q", label, got[label], value)
		}
	}
	must(t, c.Publish(t.Context(), n)) // reads it all back
	if diff := cmp.Diff(got, server.Name(ark)); diff != "" {
		t.Errorf("a repeat changed it (-first +second):\n%s", diff)
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()
	c, server := newClient(t, nil)
	for range 3 {
		must(t, c.Reserve(t.Context(), name()))
	}
	if diff := cmp.Diff([]string{ark + " reserved"}, server.Names()); diff != "" {
		t.Error(diff)
	}
	another := name()
	another.Item = "item-2"
	if err := c.Reserve(t.Context(), another); !ezid.Taken.Is(err) {
		t.Errorf("another item's name: %v, want taken", err)
	}
	if got := server.Name(ark)["holdfast.item"]; got != "item-1" {
		t.Errorf("it is %q's now", got)
	}
	server.Put("ark:/99999/fk4minted", map[string]string{"_owner": "somebody", "_status": "public", "erc.who": "x"})
	if err := c.Reserve(t.Context(), ezid.Name{ARK: "ark:/99999/fk4minted", Item: "item-1"}); !ezid.Taken.Is(err) {
		t.Errorf("EZID's own name: %v, want taken", err)
	}
}

// TestReserve_OfWhatIsHidden checks that a name that exists and cannot be read counts as taken.
func TestReserve_OfWhatIsHidden(t *testing.T) {
	t.Parallel()
	c, server := newClient(t, nil)
	server.Put(ark, map[string]string{"_owner": "somebody", "_status": "reserved"})
	server.Fail(func(w http.ResponseWriter, r *http.Request, _ func(http.ResponseWriter)) bool {
		if r.Method == http.MethodGet {
			http.Error(w, "error: forbidden", http.StatusForbidden)
		}
		return r.Method == http.MethodGet
	})
	if err := c.Reserve(t.Context(), name()); !ezid.Taken.Is(err) {
		t.Errorf("%v, want taken", err)
	}
}

// TestPublish_Status checks that the status is made public once and that a later change by somebody
// else is kept.
func TestPublish_Status(t *testing.T) {
	t.Parallel()
	c, server := newClient(t, nil)
	for _, tt := range []struct{ was, is string }{
		{"reserved", "public"}, {"public", "public"}, {"unavailable | withdrawn", "unavailable | withdrawn"}, {"", "public"},
	} {
		server.Remove(ark)
		if tt.was != "" {
			server.Put(ark, map[string]string{"_status": tt.was, "_owner": ezidtest.User, "holdfast.item": "item-1", "erc.what": "old", "other": "kept"})
		}
		n := name()
		n.What = []string{"new"}
		must(t, c.Publish(t.Context(), n))
		got := server.Name(ark)
		if got["_status"] != tt.is || got["erc.what"] != "new" || tt.was != "" && got["other"] != "kept" {
			t.Errorf("was %q: %v", tt.was, got)
		}
	}
	server.Put(ark, map[string]string{"_status": "public", "_owner": ezidtest.User, "holdfast.item": "another"})
	if err := c.Publish(t.Context(), name()); !ezid.Taken.Is(err) {
		t.Errorf("another's: %v, want taken", err)
	}
	if got := server.Name(ark); got["holdfast.item"] != "another" || got["erc.who"] != "" {
		t.Errorf("another's name was changed: %v", got)
	}
}

// doesIt lets the server do what it is asked, and loses the answer.
func doesIt(w http.ResponseWriter, serve func(http.ResponseWriter), status int) bool {
	serve(nowhere{http.Header{}})
	http.Error(w, "error: internal server error", status)
	return true
}

type nowhere struct{ h http.Header }

func (n nowhere) Header() http.Header         { return n.h }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}

// TestR08_EveryAnswerMayBeLost checks R8: whichever request or answer is lost, calling again ends
// with the same name, ours and public.
func TestR08_EveryAnswerMayBeLost(t *testing.T) {
	t.Parallel()
	faults := map[string]func(w http.ResponseWriter, serve func(http.ResponseWriter)) bool{
		"500 and did it": func(w http.ResponseWriter, serve func(http.ResponseWriter)) bool { return doesIt(w, serve, 500) },
		"502 and did it": func(w http.ResponseWriter, serve func(http.ResponseWriter)) bool { return doesIt(w, serve, 502) },
		"500 and did not": func(w http.ResponseWriter, _ func(http.ResponseWriter)) bool {
			http.Error(w, "error: internal server error", 500)
			return true
		},
		"cut before it did": func(http.ResponseWriter, func(http.ResponseWriter)) bool { panic(http.ErrAbortHandler) },
		"cut after it did": func(_ http.ResponseWriter, serve func(http.ResponseWriter)) bool {
			serve(nowhere{http.Header{}})
			panic(http.ErrAbortHandler)
		},
		"truncated after it did": func(w http.ResponseWriter, serve func(http.ResponseWriter)) bool {
			serve(nowhere{http.Header{}})
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "success: ark:/99")
			panic(http.ErrAbortHandler)
		},
		"proxy's page after it did": func(w http.ResponseWriter, serve func(http.ResponseWriter)) bool {
			serve(nowhere{http.Header{}})
			w.WriteHeader(503)
			_, _ = io.WriteString(w, "<html>try later</html>")
			return true
		},
	}
	for kind, fault := range faults {
		// On the nth request of all, as often as it takes.
		for at := int64(1); at <= 3; at++ {
			for _, times := range []int64{1, 4} { // 4: more often than a call tries
				t.Run(fmt.Sprintf("%s, request %d, %d times", kind, at, times), func(t *testing.T) {
					t.Parallel()
					c, server := newClient(t, nil)
					var seen atomic.Int64
					server.Fail(func(w http.ResponseWriter, _ *http.Request, serve func(http.ResponseWriter)) bool {
						n := seen.Add(1)
						return n >= at && n < at+times && fault(w, serve)
					})
					again := func(what string, call func(context.Context, ezid.Name) error) {
						for range 4 {
							err := call(t.Context(), name())
							if err == nil {
								return
							}
							if !ezid.Away.Is(err) && !ezid.Broken.Is(err) {
								t.Fatalf("%s: %v", what, err)
							}
						}
						t.Fatalf("%s does not come to an end", what)
					}
					again("reserve", c.Reserve)
					again("publish", c.Publish)
					if diff := cmp.Diff([]string{ark + " public"}, server.Names()); diff != "" {
						t.Errorf("names (-want +got):\n%s", diff)
					}
					if got := server.Name(ark)["holdfast.item"]; got != "item-1" {
						t.Errorf("it is %q's", got)
					}
				})
			}
		}
	}
}

// TestErrors checks that each answer gives the right kind of error, with what to do and without the
// password.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		header string
		body   string
		kind   ezid.Kind
		tries  int
		words  []string
	}{
		{"down for maintenance", 503, "", "", ezid.Away, 3, []string{"503"}},
		{"too many at once", 503, "", "error: concurrency limit exceeded", ezid.Away, 3, []string{"concurrency limit"}},
		{"asks to be left alone", 429, "120", "", ezid.Away, 1, []string{"429"}},
		{"bad gateway", 502, "", "<html>", ezid.Away, 3, nil},
		{"breaks", 500, "", "error: internal server error", ezid.Broken, 3, []string{"internal server error"}},
		{"breaks with a page", 500, "", "<h1>oops</h1>", ezid.Broken, 3, nil},
		{"wrong password", 401, "", "error: unauthorized", ezid.Denied, 1, []string{"unauthorized"}},
		{"not our shoulder", 403, "", "error: forbidden", ezid.Denied, 1, []string{"forbidden"}},
		{"refuses an element", 400, "", "error: bad request - element '_target': Enter a valid URL.", ezid.Refused, 1, []string{"valid URL"}},
		{"a page", 200, "", "<html>\n<body>welcome", ezid.Foreign, 1, nil},
		{"a page for a refusal", 404, "", "<html>", ezid.Foreign, 1, []string{"404"}},
		{"nothing", 200, "", "", ezid.Foreign, 1, nil},
		{"of another name", 201, "", "success: ark:/99999/fk4other", ezid.Foreign, 1, []string{"fk4other"}},
		{"a redirect", 302, "", "", ezid.Foreign, 1, []string{"302"}},
		{"success that is none", 400, "", "success: " + ark, ezid.Foreign, 1, nil},
		{"without end", 200, "", "success: " + ark + "\na: " + strings.Repeat("x", 2<<20), ezid.Foreign, 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, server := newClient(t, nil)
			server.Fail(func(w http.ResponseWriter, _ *http.Request, _ func(http.ResponseWriter)) bool {
				if tt.header != "" {
					w.Header().Set("Retry-After", tt.header)
				}
				if tt.status == 302 {
					w.Header().Set("Location", server.URL()+"/elsewhere")
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
				return true
			})
			err := c.Reserve(t.Context(), name())
			var e *ezid.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || e.Remedy() == "" {
				t.Fatalf("error %v, want %s and what to do", err, tt.kind)
			}
			if tt.header != "" && e.AsksToWait() != 2*time.Minute {
				t.Errorf("it asks to wait %v", e.AsksToWait())
			}
			for _, w := range append(tt.words, ark, "127.0.0.1") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			for _, secret := range []string{"geheim", "p:w"} {
				if strings.Contains(err.Error()+e.Remedy(), secret) {
					t.Errorf("%q tells the password", err)
				}
			}
			if got := len(server.Asked()); got != tt.tries {
				t.Errorf("%d tries, want %d", got, tt.tries)
			}
		})
	}
}

// TestAway checks that a server that refuses or never answers is reported as away, and that a
// cancelled call returns.
func TestAway(t *testing.T) {
	t.Parallel()
	c, err := ezid.New(ezid.Options{URL: "http://u:geheim@127.0.0.1:1", Wait: time.Millisecond})
	must(t, err)
	err = c.Reserve(t.Context(), name())
	if !ezid.Away.Is(err) || strings.Contains(err.Error(), "geheim") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody listens: %v", err)
	}
	c, server := newClient(t, nil)
	asked := make(chan struct{})
	var once sync.Once
	server.Fail(func(_ http.ResponseWriter, r *http.Request, _ func(http.ResponseWriter)) bool {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the client go
		once.Do(func() { close(asked) })
		<-r.Context().Done()
		return true
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if err := c.Reserve(ctx, name()); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	if got := len(server.Asked()); got != 1 {
		t.Errorf("%d requests after it was called off", got)
	}
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ url, target, word string }{
		{"", "", "https://user:password@"},
		{"ftp://u:geheim@h", "", "http"},
		{"https://h", "", "no user and password"},
		{"https://u@h", "", "no user and password"},
		{"https://:geheim@h", "", "no user and password"},
		{"https://u:geheim@h/?x=y", "", "query"},
		{"https://u:geheim%@h", "", "http"},
		{"https://u:geheim@h", "https://example.org/m/", "{ark}"},
		{"https://u:geheim@h", "merritt/{ark}", "http"},
	} {
		_, err := ezid.New(ezid.Options{URL: tt.url, Target: tt.target})
		if err == nil || !strings.Contains(err.Error(), tt.word) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q %q: %v, want a word of %q", tt.url, tt.target, err, tt.word)
		}
	}
}

// TestWithdraw checks that only a public name is withdrawn, and for good.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	c, server := newClient(t, nil)
	must(t, c.Withdraw(t.Context(), name())) // EZID knows nothing of it
	must(t, c.Reserve(t.Context(), name()))
	must(t, c.Withdraw(t.Context(), name()))
	if diff := cmp.Diff([]string{ark + " reserved"}, server.Names()); diff != "" {
		t.Error(diff)
	}
	must(t, c.Publish(t.Context(), name()))
	for range 2 {
		must(t, c.Withdraw(t.Context(), name()))
	}
	must(t, c.Publish(t.Context(), name()))
	if diff := cmp.Diff([]string{ark + " unavailable | withdrawn"}, server.Names()); diff != "" {
		t.Error(diff)
	}
	another := name()
	another.Item = "item-2"
	if err := c.Withdraw(t.Context(), another); !ezid.Taken.Is(err) {
		t.Errorf("another item's name: %v, want taken", err)
	}
}
