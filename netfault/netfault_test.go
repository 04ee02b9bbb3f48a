package netfault_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/netfault"
)

// TestWord asks real servers that fail in each way.
func TestWord(t *testing.T) {
	t.Parallel()
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	plain, secure := httptest.NewServer(ok), httptest.NewTLSServer(ok)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	rude := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(rude.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	trusting := secure.Client()
	transport := trusting.Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.ServerName = "h.test"
	named := &http.Client{Transport: transport}
	for _, tt := range []struct {
		name, address string
		client        *http.Client
		want          string
	}{
		{"refused", gone, &http.Client{}, "connection refused: no service is running at that port"},
		{"silent", silent.URL, &http.Client{Timeout: 50 * time.Millisecond}, "it took longer than allowed"},
		{"closed", rude.URL, &http.Client{}, "the connection was closed without an answer"},
		{"no TLS", strings.Replace(plain.URL, "http:", "https:", 1), trusting, "it speaks HTTP, not HTTPS"},
		{"unknown authority", secure.URL, &http.Client{}, "its certificate is not from a trusted authority"},
		{"another name", secure.URL, named, "its certificate is for another name"},
	} {
		answer, err := tt.client.Get(tt.address) //nolint:noctx // a test
		if err == nil {
			_ = answer.Body.Close()
			t.Errorf("%s: answered", tt.name)
			continue
		}
		got := netfault.Word(fmt.Errorf("head it: %w", err))
		if got.Error() != tt.want || !errors.Is(got, err) {
			t.Errorf("%s: %q, want %q and the cause", tt.name, got, tt.want)
		}
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&net.DNSError{Err: "no such host", Name: "h.invalid", Server: "10.0.0.1:53", IsNotFound: true}, `the name "h.invalid" is unknown`},
		{&net.DNSError{Err: "server misbehaving", Name: "h.invalid", Server: "10.0.0.1:53"}, `the name "h.invalid" could not be looked up`},
		{errors.New("another"), "another"},
	} {
		if got := netfault.Word(tt.err); got.Error() != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
