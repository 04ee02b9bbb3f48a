package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/holdfast/holdfast/source"
)

// TestHTTPPerHost_Wait checks that a request waits for a slot of its server until its context ends,
// and that closing a body, read or not, once or twice, frees exactly one slot.
func TestHTTPPerHost_Wait(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) })
	h := newHTTP(t, func(o *source.HTTPOptions) { o.PerHost = 1 })
	held, err := h.Open(t.Context(), s.URL, source.Point{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error)
	go func() {
		_, err := h.Head(ctx, s.URL)
		waited <- err
	}()
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	} else {
		wantFault(t, err, source.FaultCancelled, false)
	}
	for range 2 {
		if err := held.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		if _, err := h.Head(t.Context(), s.URL); err != nil {
			t.Error(err)
		}
	}
}

// TestHTTPRedirectToBusy checks that the Retry-After of a server behind a redirect is honoured.
func TestHTTPRedirectToBusy(t *testing.T) {
	t.Parallel()
	busy := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, busy.URL, http.StatusFound) })
	h := newHTTP(t, nil)
	for range 2 {
		_, err := h.Open(t.Context(), s.URL+"/f", source.Point{})
		if e := wantFault(t, err, source.FaultBusy, false); e.RetryAfter <= 0 || e.URL != s.URL+"/f" {
			t.Errorf("retry after %s of %s, want the wish of the server behind the redirect", e.RetryAfter, e.URL)
		}
	}
}

func BenchmarkHTTPOpen(b *testing.B) {
	for _, size := range []int64{64 << 10, 256 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.ServeContent(w, r, "", modified, io.NewSectionReader(blank{}, 0, size))
			}))
			defer s.Close()
			h := source.NewHTTP(source.HTTPOptions{Guard: source.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}})
			defer h.Close()
			b.SetBytes(size)
			buf := make([]byte, 1<<20)
			for b.Loop() {
				body, err := h.Open(b.Context(), s.URL, source.Point{})
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, body, buf); err != nil || n != size {
					b.Fatal(n, err)
				}
				_ = body.Close()
			}
		})
	}
}

// blank is a file that costs nothing to read.
type blank struct{}

// ReadAt implements io.ReaderAt.
func (blank) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }
