package source_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/source"
)

const content = "0123456789abcdefghij"

var modified = time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)

func TestHTTPHead(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding=%q, want identity", got)
		}
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Type", "image/tiff")
		http.ServeContent(w, r, "", modified, strings.NewReader(content))
	})
	info, err := newHTTP(t, nil).Head(t.Context(), s.URL+"/folder/File%20%C3%A9.tif?id=7")
	if err != nil {
		t.Fatal(err)
	}
	want := source.Info{
		URL: s.URL + "/folder/File%20%C3%A9.tif?id=7", Size: 20, Validator: `"v1"`, Modified: modified, Ranges: true,
		ContentType: "image/tiff", Filename: "File é.tif",
	}
	if diff := cmp.Diff(want, info); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
}

func TestHTTPHead_Refused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 403, 404, 405, 501} {
		for _, ranges := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d ranges=%t", status, ranges), func(t *testing.T) {
				t.Parallel()
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodHead {
						w.WriteHeader(status)
						return
					}
					if !ranges {
						w.Header().Set("Content-Length", "20")
						_, _ = io.WriteString(w, content)
						return
					}
					if got := r.Header.Get("Range"); got != "bytes=0-0" {
						t.Errorf("Range=%q", got)
					}
					http.ServeContent(w, r, "", modified, strings.NewReader(content))
				})
				info, err := newHTTP(t, nil).Head(t.Context(), s.URL+"/f")
				if err != nil || info.Size != 20 || info.Ranges != ranges {
					t.Errorf("size=%d ranges=%t err=%v, want 20 %t nil", info.Size, info.Ranges, err, ranges)
				}
			})
		}
	}
}

func TestHTTPHead_RefusedAndEmpty(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Range", "bytes */0")
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
	})
	info, err := newHTTP(t, nil).Head(t.Context(), s.URL+"/f")
	if err != nil || info.Size != 0 {
		t.Errorf("size=%d err=%v, want 0 nil", info.Size, err)
	}
}

func TestHTTPHead_UnknownSize(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Transfer-Encoding", "chunked")
		w.Header().Set("Content-Disposition", `attachment; filename="../../etc/report.pdf"`)
	})
	info, err := newHTTP(t, nil).Head(t.Context(), s.URL+"/f")
	if err != nil || info.Size != -1 || info.Filename != "report.pdf" {
		t.Errorf("size=%d filename=%q err=%v, want -1 report.pdf nil", info.Size, info.Filename, err)
	}
}

func TestHTTPStatus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status  int
		kind    source.Fault
		content bool
	}{
		{404, source.FaultMissing, true},
		{410, source.FaultMissing, true},
		{401, source.FaultDenied, false},
		{403, source.FaultDenied, false},
		{429, source.FaultBusy, false},
		{503, source.FaultBusy, false},
		{400, source.FaultStatus, false},
		{416, source.FaultStatus, false},
		{500, source.FaultStatus, false},
		{502, source.FaultStatus, false},
		{204, source.FaultStatus, false},
		{206, source.FaultProtocol, false}, // nobody asked for a part
	}
	for _, tt := range tests {
		t.Run(http.StatusText(tt.status), func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tt.status) })
			_, err := newHTTP(t, nil).Open(t.Context(), s.URL+"/x", source.Point{})
			e := wantFault(t, err, tt.kind, tt.content)
			if e.Status != tt.status || !strings.Contains(err.Error(), fmt.Sprint(tt.status)) || !strings.Contains(err.Error(), s.URL+"/x") {
				t.Errorf("status=%d error=%q, want %d and the address", e.Status, err, tt.status)
			}
		})
	}
}

func TestHTTPRetryAfter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, header string
		want         time.Duration
	}{
		{"seconds", "90", 90 * time.Second},
		{"date", "Mon, 03 Feb 2020 04:07:06 GMT", 2 * time.Minute},
		{"far off", "99999999999", time.Hour},
		{"past", "Mon, 03 Feb 2019 04:07:06 GMT", 0},
		{"nonsense", "soon", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.Header().Set("Date", modified.Format(http.TimeFormat))
				w.Header().Set("Retry-After", tt.header)
				w.WriteHeader(http.StatusTooManyRequests)
			})
			h := newHTTP(t, nil)
			_, err := h.Head(t.Context(), s.URL)
			if e := wantFault(t, err, source.FaultBusy, false); e.RetryAfter != tt.want {
				t.Errorf("retry after %s, want %s", e.RetryAfter, tt.want)
			}
			_, err = h.Head(t.Context(), s.URL)
			e := wantFault(t, err, source.FaultBusy, false)
			if tt.want > 0 && (asked.Load() != 1 || e.RetryAfter <= 0) {
				t.Errorf("asked %d times, retry after %s: the server was not left alone", asked.Load(), e.RetryAfter)
			}
		})
	}
}

func TestHTTPEncoding(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		if r.Method == http.MethodHead {
			return
		}
		gz := gzip.NewWriter(w)
		_, _ = io.WriteString(gz, content)
		_ = gz.Close()
	})
	h := newHTTP(t, nil)
	_, err := h.Open(t.Context(), s.URL+"/page.html", source.Point{})
	wantFault(t, err, source.FaultEncoding, false)
	_, err = h.Head(t.Context(), s.URL+"/page.html")
	wantFault(t, err, source.FaultEncoding, false)

	body, err := h.Open(t.Context(), s.URL+"/bag.tar.gz", source.Point{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := readAll(t, body)
	if err != nil || !strings.HasPrefix(data, "\x1f\x8b") {
		t.Errorf("data=%q err=%v, want the file as it is, compressed", data, err)
	}
}

func TestHTTPBroken(t *testing.T) {
	t.Parallel()
	hijack := func(w http.ResponseWriter, answer string) net.Conn {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return nil
		}
		_, _ = io.WriteString(conn, answer)
		return conn
	}
	reset := func(conn net.Conn) {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		kinds   []source.Fault
	}{
		{"length is a lie", func(w http.ResponseWriter, _ *http.Request) {
			_ = hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"+content).Close()
		}, []source.Fault{source.FaultShort}},
		{"chunks break off", func(w http.ResponseWriter, _ *http.Request) {
			_ = hijack(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n"+content).Close()
		}, []source.Fault{source.FaultShort}},
		{"reset", func(w http.ResponseWriter, _ *http.Request) {
			reset(hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"+content))
		}, []source.Fault{source.FaultConnection, source.FaultShort}},
		{"no answer", func(w http.ResponseWriter, _ *http.Request) {
			reset(hijack(w, ""))
		}, []source.Fault{source.FaultConnection}},
		{"nonsense", func(w http.ResponseWriter, _ *http.Request) {
			_ = hijack(w, "SSH-2.0-OpenSSH\r\n").Close()
		}, []source.Fault{source.FaultConnection}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.handler)
			body, err := newHTTP(t, nil).Open(t.Context(), s.URL, source.Point{})
			if err == nil {
				_, err = readAll(t, body)
			}
			var e *source.Error
			if !errors.As(err, &e) || e.ContentFault() {
				t.Fatalf("error %v, want a fault of the system", err)
			}
			if !strings.Contains(fmt.Sprint(tt.kinds), string(e.Kind)) {
				t.Errorf("kind=%s, want one of %v (%v)", e.Kind, tt.kinds, err)
			}
		})
	}
}

func TestHTTPStall(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, content)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	h := newHTTP(t, func(o *source.HTTPOptions) { o.StallTimeout = 100 * time.Millisecond })
	body, err := h.Open(t.Context(), s.URL, source.Point{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := readAll(t, body)
	wantFault(t, err, source.FaultStalled, false)
	if data != content || errors.Is(err, context.Canceled) {
		t.Errorf("data=%q err=%v, want what had come, and no talk of cancelling", data, err)
	}
}

// TestHTTPDrip checks that a source that keeps sending a few bytes in time, too slowly to ever
// finish, counts as stalled.
func TestHTTPDrip(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, "x"); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(5 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	})
	h := newHTTP(t, func(o *source.HTTPOptions) { o.StallTimeout, o.LeastRate = 200*time.Millisecond, 10_000 })
	body, err := h.Open(t.Context(), s.URL, source.Point{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := readAll(t, body)
	wantFault(t, err, source.FaultStalled, false)
	if data == "" || !strings.Contains(err.Error(), "less than 10000 bytes a second") {
		t.Errorf("data=%q err=%v, want what had come, and the rate", data, err)
	}
}

// TestHTTPSlowReader checks that only the time waiting for the source counts, not a slow reader
// here.
func TestHTTPSlowReader(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) })
	h := newHTTP(t, func(o *source.HTTPOptions) { o.StallTimeout, o.LeastRate = 50*time.Millisecond, 100<<10 })
	body, err := h.Open(t.Context(), s.URL, source.Point{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	total := 0
	for buf := make([]byte, 8<<10); total < size; {
		time.Sleep(60 * time.Millisecond) // all of it has come long since
		n, err := body.Read(buf)
		if total += n; err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("after %d bytes: %v", total, err)
		}
	}
}

func TestHTTPHeaderTimeout(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	h := newHTTP(t, func(o *source.HTTPOptions) { o.HeaderTimeout = 50 * time.Millisecond })
	_, err := h.Head(t.Context(), s.URL)
	wantFault(t, err, source.FaultTimeout, false)
}

func TestHTTPCancel(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, content)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	body, err := newHTTP(t, nil).Open(ctx, s.URL, source.Point{})
	if err != nil {
		t.Fatal(err)
	}
	stopping := errors.New("stopping")
	cancel(stopping)
	_, err = readAll(t, body)
	wantFault(t, err, source.FaultCancelled, false)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, stopping) {
		t.Errorf("error %v, want context.Canceled and its cause", err)
	}
}

func TestHTTPUnreachable(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, err := newHTTP(t, nil).Head(t.Context(), s.URL)
	wantFault(t, err, source.FaultConnection, false)

	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	_, err = newHTTP(t, nil).Head(t.Context(), secure.URL)
	wantFault(t, err, source.FaultTLS, false)
}

func TestHTTPPerHost(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for n := now.Add(1); ; {
			if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		_, _ = io.WriteString(w, content)
		now.Add(-1)
	})
	h := newHTTP(t, func(o *source.HTTPOptions) { o.PerHost = 2; o.RequestsPerSecond = 1000; o.BytesPerSecond = 1 << 20 })
	failed := make(chan error)
	const files = 20
	for range files {
		go func() {
			body, err := h.Open(t.Context(), s.URL, source.Point{})
			if err == nil {
				_, err = io.Copy(io.Discard, body)
				_ = body.Close()
			}
			failed <- err
		}()
	}
	for range files {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > 2 {
		t.Errorf("%d requests at a time, want at most 2", most.Load())
	}
}

func TestHTTPBadURL(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "http://", "http:///file", "https://user:s3cr3t@host:notaport/", "http:user:s3cr3t@host", "http://h/%zz?token=s3cr3t", "http://h\n/", "ftp://h/f",
		"https://user:s3cr3t@host/", "https://s3cr3t@host/", "http://good.example@127.0.0.1/", "http://@h/",
	} {
		_, err := newHTTP(t, nil).Head(t.Context(), raw)
		wantFault(t, err, source.FaultURL, true)
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: the error tells the secret: %v", raw, err)
		}
	}
}
