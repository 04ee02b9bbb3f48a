package source_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newHTTP returns a Fetcher that may reach 127.0.0.1 and nothing else of this network.
func newHTTP(t *testing.T, change func(*source.HTTPOptions)) *source.HTTP {
	t.Helper()
	o := source.HTTPOptions{
		Guard:          source.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		ConnectTimeout: 10 * time.Second,
		HeaderTimeout:  10 * time.Second,
		StallTimeout:   10 * time.Second,
	}
	if change != nil {
		change(&o)
	}
	h := source.NewHTTP(o)
	t.Cleanup(h.Close)
	return h
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// readAll reads and closes a body.
func readAll(t *testing.T, b *source.Body) (string, error) {
	t.Helper()
	data, err := io.ReadAll(b)
	if closeErr := b.Close(); closeErr != nil {
		t.Errorf("close body: %v", closeErr)
	}
	return string(data), err
}

// wantFault checks an error's kind and class.
func wantFault(t *testing.T, err error, kind source.Fault, content bool) *source.Error {
	t.Helper()
	var e *source.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want a *source.Error of kind %s", err, err, kind)
	}
	if e.Kind != kind || e.ContentFault() != content {
		t.Errorf("kind=%s content=%t, want %s %t (%v)", e.Kind, e.ContentFault(), kind, content, err)
	}
	return e
}
