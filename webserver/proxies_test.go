package webserver_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/webserver"
)

func TestProxies(t *testing.T) {
	trusted := webserver.Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	for _, c := range []struct {
		name, remote string
		tls          bool
		header       map[string]string
		want         string // remote host secure
	}{
		{"nobody forwards", "203.0.113.5:99", false, nil, "203.0.113.5:99 here.test false"},
		{"TLS here", "203.0.113.5:99", true, nil, "203.0.113.5:99 here.test true"},
		{
			"a client that pretends", "203.0.113.5:99", false,
			map[string]string{"X-Forwarded-For": "198.51.100.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "bank.test"},
			"203.0.113.5:99 here.test false",
		},
		{
			"a proxy", "10.1.2.3:99", false,
			map[string]string{"X-Forwarded-For": "198.51.100.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "out.test"},
			"198.51.100.1:0 out.test true",
		},
		{
			"a client that pretends to a proxy", "10.1.2.3:99", false,
			map[string]string{"X-Forwarded-For": "192.0.2.1, 198.51.100.1", "X-Forwarded-Proto": "https, http", "X-Forwarded-Host": "bank.test, out.test"},
			"198.51.100.1:0 out.test false",
		},
		{"two proxies", "[2001:db8::1]:99", false, map[string]string{"X-Forwarded-For": "198.51.100.1, 10.9.9.9"}, "198.51.100.1:0 here.test false"},
		{"a proxy that says nothing", "10.1.2.3:99", false, nil, "10.1.2.3:0 here.test false"},
		{"nonsense", "10.1.2.3:99", false, map[string]string{"X-Forwarded-For": "198.51.100.1, unknown"}, "10.1.2.3:0 here.test false"},
		{"mapped", "[::ffff:10.1.2.3]:99", false, map[string]string{"X-Forwarded-For": "::ffff:198.51.100.1"}, "198.51.100.1:0 here.test false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got string
			h := trusted.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = fmt.Sprintf("%s %s %t", r.RemoteAddr, r.Host, webserver.Secure(r))
				for name := range c.header {
					if r.Header.Get(name) != "" {
						t.Errorf("%s is left", name)
					}
				}
			}))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://here.test/", http.NoBody)
			r.RemoteAddr = c.remote
			if c.tls {
				r.TLS = &tls.ConnectionState{}
			}
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if hsts := w.Header().Get("Strict-Transport-Security") != ""; hsts != strings.HasSuffix(c.want, " true") {
				t.Errorf("Strict-Transport-Security: %t", hsts)
			}
		})
	}
}
