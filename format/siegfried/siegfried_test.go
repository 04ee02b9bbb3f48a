package siegfried_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/format/siegfried"
	"github.com/holdfast/holdfast/format/siegfried/siegfriedtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, o siegfried.Options) *siegfried.Client {
	t.Helper()
	c, err := siegfried.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func file(name, content string) format.File {
	return format.File{Name: name, Size: int64(len(content)), Read: func(_ context.Context, fn func(io.Reader) error) error {
		return fn(strings.NewReader(content))
	}}
}

func TestRealServer(t *testing.T) {
	t.Parallel()
	c := client(t, siegfried.Options{URL: siegfriedtest.Start(t)})
	pdf := "%PDF-1.4\n%\xe2\xe3\n1 0 obj\n<<>>\nendobj\ntrailer<<>>\n%%EOF\n"
	for _, tt := range []struct {
		name, content string
		puid, warning string // "": none
	}{
		{"folder/a.pdf", pdf, "fmt/18", ""},
		{"no extension", pdf, "fmt/18", "extension mismatch"},
		{"wrong.txt", pdf, "fmt/18", "extension mismatch"},
		{"a \"quoted\"\n; name=x.txt", "hello", "x-fmt/111", ""},
		{"noise", "\xff\x00\x13\x99\x01", "", ""},
		{"empty.bin", "", "fmt/208", "match on extension only; empty source"},
		{"large.pdf", "%PDF-1.4\n" + strings.Repeat("x", 5<<20) + "\n%%EOF\n", "fmt/18", ""},
	} {
		got, err := c.Identify(t.Context(), file(tt.name, tt.content))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if !strings.HasPrefix(got.Agent, "siegfried 1.") {
			t.Errorf("%s: agent=%q, want its version", tt.name, got.Agent)
		}
		var f format.Format
		if got.Format != nil {
			f = *got.Format
			if !strings.Contains(f.Registry, "DROID_SignatureFile_V120.xml") || f.Name == "" {
				t.Errorf("%s: %+v, want a name and the version of the registry", tt.name, f)
			}
		}
		if f.PUID != tt.puid || !strings.Contains(f.Warning, tt.warning) || tt.warning == "" && f.Warning != "" {
			t.Errorf("%s: %q warning %q, want %q, %q", tt.name, f.PUID, f.Warning, tt.puid, tt.warning)
		}
	}
}

// TestFaultsAreTheSystems asks servers that are down, wrong or strange.
func TestFaultsAreTheSystems(t *testing.T) {
	t.Parallel()
	down, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down.Close()
	for _, tt := range []struct {
		name, says string
		answer     http.HandlerFunc // nil: none listens
	}{
		{"down", "connection refused", nil},
		{"no room on its disk", "status 500", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "SF server error; got no space left on device", http.StatusInternalServerError)
		}},
		{"not siegfried", "unexpected answer", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }},
		{"another signature file", "not PRONOM", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"siegfried":"1.11.2","identifiers":[{"name":"tika","details":"tika-mimetypes.xml"}],"files":[{"matches":[]}]}`)
		}},
		{"cut off", "closed too early", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"siegfried":`)
		}},
		{"leads elsewhere", "status 302", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := "http://" + down.Addr().String()
			if tt.answer != nil {
				s := httptest.NewServer(tt.answer)
				defer s.Close()
				url = s.URL
			}
			_, err := client(t, siegfried.Options{URL: url}).Identify(t.Context(), file("a", "hello"))
			var fault *siegfried.Error
			var content interface{ ContentFault() bool }
			if !errors.As(err, &fault) || errors.As(err, &content) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want an *Error that says %q", err, tt.says)
			}
		})
	}
}

func TestOfTwoFormatsTheFirstHolds(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"siegfried":"1.11.2","identifiers":[{"name":"pronom","details":"DROID_SignatureFile_V120.xml"}],"files":[{"errors":"",
			"matches":[{"ns":"pronom","id":"fmt/1","format":"One"},{"ns":"pronom","id":"fmt/2","format":"Two"}]}]}`)
	}))
	defer s.Close()
	got, err := client(t, siegfried.Options{URL: s.URL}).Identify(t.Context(), file("a", ""))
	want := format.Format{PUID: "fmt/1", Name: "One", Registry: "DROID_SignatureFile_V120.xml", Warning: "it may also be fmt/2"}
	if err != nil || got.Format == nil || *got.Format != want {
		t.Errorf("format %+v (%v), want %+v", got.Format, err, want)
	}
}

func TestNoMoreThanItsSlots(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	full, both := make(chan struct{}), make(chan struct{}, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		both <- struct{}{}
		<-full
		http.Error(w, "", http.StatusTeapot)
	}))
	defer s.Close()
	c := client(t, siegfried.Options{URL: s.URL, Slots: 2})
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { _, _ = c.Identify(t.Context(), file("a", "hello")) })
	}
	<-both
	<-both
	close(full)
	all.Wait()
	if most.Load() != 2 {
		t.Errorf("%d at once, want 2", most.Load())
	}
}

func TestTooLargeIsNotSent(t *testing.T) {
	t.Parallel()
	c := client(t, siegfried.Options{URL: "http://127.0.0.1:1", Largest: 4})
	f := file("a", "hello")
	f.Read = func(context.Context, func(io.Reader) error) error { t.Error("it was read"); return io.EOF }
	if _, err := c.Identify(t.Context(), f); !errors.Is(err, format.ErrTooLarge) {
		t.Errorf("error %v, want ErrTooLarge", err)
	}
}

func TestUnreadableFileIsNotTheServersFault(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer s.Close()
	broken := errors.New("disk is broken")
	f := format.File{Name: "a", Size: 1000, Read: func(_ context.Context, fn func(io.Reader) error) error {
		return fn(io.MultiReader(bytes.NewReader(make([]byte, 10)), iotest.ErrReader(broken)))
	}}
	var fault *siegfried.Error
	if _, err := client(t, siegfried.Options{URL: s.URL}).Identify(t.Context(), f); !errors.Is(err, broken) || errors.As(err, &fault) {
		t.Errorf("error %v, want the file's own", err)
	}
}
