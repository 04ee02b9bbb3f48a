package source_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast/holdfast/source"
)

// TestTLS checks that a server needs a certificate for its name by a trusted authority and TLS 1.2
// or newer, also behind a redirect. Anything else is the system's fault, since it says nothing
// about the file, and nothing is sent.
func TestTLS(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	secure := func(c *tls.Config) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.TLS = c
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	good, old := secure(nil), secure(&tls.Config{MaxVersion: tls.VersionTLS11}) //nolint:gosec // what is to be refused
	roots := x509.NewCertPool()
	roots.AddCert(good.Certificate())
	away := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, good.URL, http.StatusFound) })
	trusting := func(o *source.HTTPOptions) { o.RootCAs = roots }
	for _, tt := range []struct {
		name, url string
		change    func(*source.HTTPOptions)
	}{
		{"nobody knows who signed it", good.URL, nil},
		{"the same behind a redirect", away.URL, nil},
		{"of another name", strings.Replace(good.URL, "127.0.0.1", "other.example.", 1), func(o *source.HTTPOptions) {
			trusting(o)
			o.Resolver = fakeDNS(t, func() netip.Addr { return netip.MustParseAddr("127.0.0.1") })
		}},
		{"an old protocol", old.URL, trusting},
		{"no TLS at all", strings.Replace(away.URL, "http://", "https://", 1), trusting},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newHTTP(t, tt.change).Open(t.Context(), tt.url, source.Point{})
			wantFault(t, err, source.FaultTLS, false)
		})
	}
	if reached.Load() != 0 {
		t.Error("a request reached a server that is not to be trusted")
	}
	if _, err := newHTTP(t, trusting).Head(t.Context(), good.URL); err != nil || reached.Load() != 1 {
		t.Errorf("the trusted server: %v", err)
	}
}
