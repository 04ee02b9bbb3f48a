// Package webserver serves HTTP to browsers and programs outside: behind proxies, with
// certificates, and with plain HTTP only where that is allowed.
//
// It ignores what a client's headers say about the client's address, the requested host and TLS,
// unless a trusted proxy sent them.
package webserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Proxies are the networks of trusted reverse proxies. Their X-Forwarded-For, -Proto and -Host
// headers count.
type Proxies []netip.Prefix

// trusts reports whether an address belongs to a trusted proxy.
func (p Proxies) trusts(a netip.Addr) bool {
	a = a.Unmap()
	return slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(a) })
}

type secureKey struct{}

// Secure reports whether a request came by HTTPS: to this process, or to a trusted proxy.
func Secure(r *http.Request) bool {
	if secure, known := r.Context().Value(secureKey{}).(bool); known {
		return secure // a trusted proxy that uses TLS may have a client that does not
	}
	return r.TLS != nil
}

// HSTS is the default time for which browsers must use HTTPS (RFC 6797).
const HSTS = 365 * 24 * time.Hour

// keepsHTTPS reports whether browsers should be bound to HTTPS at a host. On localhost that would
// affect other servers on other ports, and for addresses browsers ignore it.
func keepsHTTPS(host string) bool {
	name := host
	if split, _, err := net.SplitHostPort(host); err == nil {
		name = split
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err != nil && name != "localhost" && !strings.HasSuffix(name, ".localhost")
}

// Handler makes next see requests as the client sent them: RemoteAddr is the client's address, Host
// is the requested host, and [Secure] reports whether the client used HTTPS. It removes the
// proxies' headers. Answers over HTTPS have Strict-Transport-Security for hsts, unless hsts is 0.
func (p Proxies) Handler(next http.Handler, hsts time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remote, host, secure := r.RemoteAddr, r.Host, r.TLS != nil
		if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && p.trusts(from.Addr()) {
			remote = net.JoinHostPort(p.client(from.Addr(), r.Header.Values("X-Forwarded-For")).String(), "0")
			if proto := last(r.Header.Values("X-Forwarded-Proto")); proto != "" {
				secure = strings.EqualFold(proto, "https")
			}
			host = cmp.Or(last(r.Header.Values("X-Forwarded-Host")), host)
		}
		seen := r.Clone(context.WithValue(r.Context(), secureKey{}, secure))
		seen.RemoteAddr, seen.Host = remote, host
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded"} {
			seen.Header.Del(name)
		}
		if hsts > 0 && Secure(seen) && keepsHTTPS(host) {
			w.Header().Set("Strict-Transport-Security", fmt.Sprintf("max-age=%d", int64(hsts.Seconds())))
		}
		next.ServeHTTP(w, seen)
	})
}

// client returns the last address in X-Forwarded-For that is not a trusted proxy's. Earlier
// addresses come from untrusted senders. If there is none, it returns the proxy's own.
func (p Proxies) client(proxy netip.Addr, forwarded []string) netip.Addr {
	client := proxy.Unmap()
	for _, text := range slices.Backward(split(forwarded)) {
		a, err := address(text)
		if err != nil {
			return client
		}
		if client = a.Unmap(); !p.trusts(client) {
			return client
		}
	}
	return client
}

// address parses an address with or without a port: some proxies add one.
func address(text string) (netip.Addr, error) {
	if with, err := netip.ParseAddrPort(text); err == nil {
		return with.Addr(), nil
	}
	return netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
}

// split splits the values of a header. Each proxy appends its value after a comma or as a further
// line.
func split(lines []string) []string {
	parts := strings.Split(strings.Join(lines, ","), ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// last returns the last proxy's value.
func last(lines []string) string {
	parts := split(lines)
	return parts[len(parts)-1]
}

// Only refuses connections from other machines than this one and the proxies. It is for plain HTTP
// that serves the proxies, and stands in front of [Proxies.Handler].
func (p Proxies) Only(next http.Handler, log *slog.Logger) http.Handler {
	var said atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err == nil && (from.Addr().Unmap().IsLoopback() || p.trusts(from.Addr())) {
			next.ServeHTTP(w, r)
			return
		}
		if !said.Swap(true) {
			log.WarnContext(r.Context(), "refused plain HTTP from outside this machine and HOLDFAST_TRUSTED_PROXIES; logged once", "remote", r.RemoteAddr)
		}
		http.Error(w, "Plain HTTP is only for the reverse proxy: use its https address. To allow plain HTTP for others on a private network, set HOLDFAST_PLAIN_HTTP=yes.",
			http.StatusForbidden)
	})
}
