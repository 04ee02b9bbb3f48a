// Package webserver serves HTTP to browsers and programs outside: behind which proxies, by which
// certificates, and whether plain HTTP is allowed.
//
// It believes nothing that a client's headers say of itself (its address, the host it asked for,
// whether it came by TLS), unless a proxy that the operator trusts says so.
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

// Proxies are the networks of reverse proxies whose X-Forwarded-For, -Proto and -Host are believed.
type Proxies []netip.Prefix

// trusts says whether an address is a proxy's.
func (p Proxies) trusts(a netip.Addr) bool {
	a = a.Unmap()
	return slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(a) })
}

type secureKey struct{}

// Secure says whether a request came by HTTPS: to this process, or to a trusted proxy.
func Secure(r *http.Request) bool {
	if secure, known := r.Context().Value(secureKey{}).(bool); known {
		return secure // a trusted proxy's word may be that its client came without, although it came by TLS itself
	}
	return r.TLS != nil
}

// HSTS is how long browsers are kept on HTTPS when nothing else is asked for (RFC 6797).
const HSTS = 365 * 24 * time.Hour

// keepsHTTPS says whether browsers should keep to HTTPS at a host. They would at all ports of
// localhost, for whatever runs there, and take no such word of addresses.
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
// the host that it asked, and [Secure] says whether it asked by HTTPS. Next sees these headers of
// nobody, since all is said by then. Answers over HTTPS carry Strict-Transport-Security for hsts;
// 0: they do not.
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

// client is the last address of X-Forwarded-For that is no trusted proxy's: whatever stands before
// it was said by somebody who is not trusted. It is the proxy itself when there is none.
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

// address reads an address, with a port or without: some proxies add one.
func address(text string) (netip.Addr, error) {
	if with, err := netip.ParseAddrPort(text); err == nil {
		return with.Addr(), nil
	}
	return netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
}

// split parts the values of a header: each proxy appends its own, behind a comma or as a further
// line.
func split(lines []string) []string {
	parts := strings.Split(strings.Join(lines, ","), ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// last is the last proxy's value.
func last(lines []string) string {
	parts := split(lines)
	return parts[len(parts)-1]
}

// Only refuses whoever connects from elsewhere than this machine and the proxies: for plain HTTP
// that is there for the proxies. It stands in front of [Proxies.Handler].
func (p Proxies) Only(next http.Handler, log *slog.Logger) http.Handler {
	var said atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err == nil && (from.Addr().Unmap().IsLoopback() || p.trusts(from.Addr())) {
			next.ServeHTTP(w, r)
			return
		}
		if !said.Swap(true) {
			log.WarnContext(r.Context(), "plain HTTP is refused to all but this machine and the networks of HOLDFAST_TRUSTED_PROXIES; this is said once", "remote", r.RemoteAddr)
		}
		http.Error(w, "Plain HTTP is served to the reverse proxy only: use its https address. If the network is private and plain HTTP is meant for others, too, set HOLDFAST_PLAIN_HTTP=yes.",
			http.StatusForbidden)
	})
}
