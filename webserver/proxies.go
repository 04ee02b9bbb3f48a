// Package webserver is how a process serves HTTP to browsers and programs outside: behind which proxies, by which
// certificates, and whether plain HTTP may be served at all.
//
// It keeps true that nothing a client says of itself in a header (its address, the host it asked, whether it came by TLS) is
// believed, unless a proxy that the operator trusts says it.
package webserver

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
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
	secure, _ := r.Context().Value(secureKey{}).(bool)
	return secure || r.TLS != nil
}

// transportSecurity keeps browsers on HTTPS for a year (RFC 6797).
const transportSecurity = "max-age=31536000"

// Handler makes next see requests as the client sent them: RemoteAddr is the client's address, Host the host that it asked, and
// [Secure] says whether it asked by HTTPS. Headers of other senders than trusted proxies are taken away. Answers over HTTPS
// carry Strict-Transport-Security.
func (p Proxies) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remote, host, secure := r.RemoteAddr, r.Host, r.TLS != nil
		if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && p.trusts(from.Addr()) {
			remote = net.JoinHostPort(p.client(from.Addr(), r.Header.Values("X-Forwarded-For")).String(), "0")
			if proto := last(r.Header.Get("X-Forwarded-Proto")); proto != "" {
				secure = strings.EqualFold(proto, "https")
			}
			host = cmp.Or(last(r.Header.Get("X-Forwarded-Host")), host)
		}
		seen := r.Clone(context.WithValue(r.Context(), secureKey{}, secure))
		seen.RemoteAddr, seen.Host = remote, host
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded"} {
			seen.Header.Del(name)
		}
		if secure {
			w.Header().Set("Strict-Transport-Security", transportSecurity)
		}
		next.ServeHTTP(w, seen)
	})
}

// client is the last address of X-Forwarded-For that is no trusted proxy's: whatever stands before it was said by somebody who
// is not trusted. It is the proxy itself when there is none.
func (p Proxies) client(proxy netip.Addr, forwarded []string) netip.Addr {
	client := proxy.Unmap()
	for _, text := range slices.Backward(strings.Split(strings.Join(forwarded, ","), ",")) {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return client
		}
		if client = a.Unmap(); !p.trusts(client) {
			return client
		}
	}
	return client
}

// last is the last of values that commas part: each proxy appends its own.
func last(values string) string {
	parts := strings.Split(values, ",")
	return strings.TrimSpace(parts[len(parts)-1])
}
