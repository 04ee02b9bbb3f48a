package webserver_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/web/webserver"
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
		{
			"each proxy a line of its own", "10.1.2.3:99", false,
			map[string]string{"X-Forwarded-For": "192.0.2.1\n198.51.100.1", "X-Forwarded-Proto": "https\nhttp", "X-Forwarded-Host": "bank.test\nout.test"},
			"198.51.100.1:0 out.test false",
		},
		{"with a port", "10.1.2.3:99", false, map[string]string{"X-Forwarded-For": "198.51.100.1:4711, 10.9.9.9:1"}, "198.51.100.1:0 here.test false"},
		{"of IPv6, with a port", "10.1.2.3:99", false, map[string]string{"X-Forwarded-For": "[2001:db9::1]:4711, [2001:db8::9]"}, "[2001:db9::1]:0 here.test false"},
		{"TLS from a proxy, whose client came without", "10.1.2.3:99", true, map[string]string{"X-Forwarded-Proto": "http"}, "10.1.2.3:0 here.test false"},
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
			}), webserver.HSTS)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://here.test/", http.NoBody)
			r.RemoteAddr = c.remote
			if c.tls {
				r.TLS = &tls.ConnectionState{}
			}
			for name, value := range c.header {
				r.Header[name] = strings.Split(value, "\n")
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

// TestProxies_HSTS checks that browsers must use HTTPS for the given time, but not on localhost or
// for addresses.
func TestProxies_HSTS(t *testing.T) {
	for _, c := range []struct {
		host string
		keep time.Duration
		want string
	}{
		{"holdfast.test", webserver.HSTS, "max-age=31536000"},
		{"holdfast.test:8443", time.Hour, "max-age=3600"},
		{"holdfast.test", 0, ""},
		{"localhost:8443", webserver.HSTS, ""},
		{"a.localhost", webserver.HSTS, ""},
		{"127.0.0.1:8443", webserver.HSTS, ""},
		{"[::1]", webserver.HSTS, ""},
		{"[::1]:8443", webserver.HSTS, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+c.host+"/", http.NoBody)
		w := httptest.NewRecorder()
		webserver.Proxies{}.Handler(http.NotFoundHandler(), c.keep).ServeHTTP(w, r)
		if got := w.Header().Get("Strict-Transport-Security"); got != c.want {
			t.Errorf("%s for %s: %q, want %q", c.host, c.keep, got, c.want)
		}
	}
}

func TestProxies_Only(t *testing.T) {
	var log bytes.Buffer
	only := webserver.Proxies{netip.MustParsePrefix("10.0.0.0/8")}.Only(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), slog.New(slog.NewTextHandler(&log, nil)))
	for remote, want := range map[string]int{
		"127.0.0.1:1": http.StatusOK, "127.8.8.8:1": http.StatusOK, "[::1]:1": http.StatusOK, "[::ffff:127.0.0.1]:1": http.StatusOK,
		"10.1.2.3:1": http.StatusOK, "[::ffff:10.1.2.3]:1": http.StatusOK,
		"11.1.2.3:1": http.StatusForbidden, "[2001:db8::1]:1": http.StatusForbidden, "pipe": http.StatusForbidden,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = remote
		r.Header.Set("X-Forwarded-For", "127.0.0.1")
		w := httptest.NewRecorder()
		only.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", remote, w.Code, want)
		}
	}
	if got := strings.Count(log.String(), "refused plain HTTP"); got != 1 {
		t.Errorf("logged %d times, want once:\n%s", got, &log)
	}
}

// TestProxies_DocumentedNginx checks that the nginx headers of docs/security.md give client, HTTPS
// and host with port, and that headers of the client are replaced.
func TestProxies_DocumentedNginx(t *testing.T) {
	docs, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`proxy_set_header (\S+) (\S+);`).FindAllStringSubmatch(string(docs), -1)
	if len(said) == 0 {
		t.Fatal("docs/security.md has no set-up for nginx")
	}
	// http://nginx.org/en/docs/http/ngx_http_core_module.html#variables; $host has no port
	is := strings.NewReplacer("$http_host", "holdfast.example.org:8443", "$host", "holdfast.example.org", "$remote_addr", "203.0.113.9", "$scheme", "https")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:8080/login", http.NoBody)
	r.RemoteAddr = "127.0.0.1:4711"
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	for _, header := range said {
		if header[1] == "Host" {
			r.Host = is.Replace(header[2])
		} else {
			r.Header.Set(header[1], is.Replace(header[2]))
		}
	}
	webserver.Proxies{netip.MustParsePrefix("127.0.0.1/32")}.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got := fmt.Sprintf("%s %s %t", r.RemoteAddr, r.Host, webserver.Secure(r)); got != "203.0.113.9:0 holdfast.example.org:8443 true" {
			t.Errorf("nginx as documented tells %s", got)
		}
	}), webserver.HSTS).ServeHTTP(httptest.NewRecorder(), r)
}
