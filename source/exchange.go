package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// exchange is one request that was answered, redirects behind it.
type exchange struct {
	http     *HTTP
	op       string
	asked    *url.URL // the address that was given
	shown    *url.URL // that of what answers, as messages tell it
	target   *url.URL // where the request goes
	origin   string   // of the first target, whose credentials sign adds
	sign     func(*http.Request) error
	resp     *http.Response
	ended    func() error // why the exchange was called off, or nil
	cancel   context.CancelCauseFunc
	release  func()
	throttle func(n int) error // waits as the limit on bytes asks for
	once     sync.Once
}

// exchange sends a request and follows redirects. The answer may have any other status. It must be
// closed.
func (h *HTTP) exchange(ctx context.Context, op, method, rawURL string, header http.Header) (*exchange, error) {
	at, err := h.locate(ctx, rawURL)
	if err != nil {
		return nil, unlocated(ctx, op, rawURL, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	x := &exchange{
		http: h, op: op, asked: at.Asked, shown: at.Asked, target: at.Target, origin: originOf(at.Target), sign: at.Sign, cancel: cancel,
	}
	x.ended = func() error { return contextError(ctx) }
	for hop := 0; ; hop++ {
		if err := x.send(ctx, method, header); err != nil {
			cancel(nil)
			return nil, err
		}
		if h.stays || !isRedirect(x.resp.StatusCode) {
			return x, nil
		}
		next, err := x.next(hop)
		_ = x.resp.Body.Close() // nothing in it is wanted
		x.release()
		if err != nil {
			cancel(nil)
			return nil, err
		}
		x.target, x.shown = next, next
	}
}

// unlocated gives the error of a locate its meaning.
func unlocated(ctx context.Context, op, rawURL string, err error) error {
	if ended := contextError(ctx); ended != nil {
		return &Error{Op: op, URL: Redact(rawURL), Kind: FaultCancelled, Err: ended}
	}
	if known, ok := errors.AsType[*Error](err); ok {
		e := *known
		e.Op, e.URL = op, Redact(rawURL)
		return &e
	}
	return &Error{Op: op, URL: Redact(rawURL), Kind: FaultCredential, Err: err}
}

// send makes one request to x.target. After success a slot of the server is taken.
func (x *exchange) send(ctx context.Context, method string, header http.Header) error {
	slot, err := x.http.gate.enter(ctx, originOf(x.target))
	if err != nil {
		return x.fault(err)
	}
	resp, err := x.roundTrip(ctx, method, header) //nolint:bodyclose // closed by exchange.close
	if err != nil {
		slot.leave()
		return err
	}
	x.resp, x.release = resp, slot.leave
	x.throttle = func(n int) error { return slot.spend(ctx, n) }
	if after := RetryAfter(resp); after > 0 {
		slot.block(after)
	}
	return nil
}

func (x *exchange) roundTrip(ctx context.Context, method string, header http.Header) (*http.Response, error) {
	bare := *x.target
	bare.User, bare.Fragment, bare.RawFragment = nil, "", ""
	req, err := http.NewRequestWithContext(ctx, method, bare.String(), nil)
	if err != nil {
		return nil, &Error{Op: x.op, URL: redactURL(x.shown), Kind: FaultURL, Err: errors.New("no request can be made of it")}
	}
	// Credentials are for the server that was named, and for no other: not another host, not
	// another port, not the same one without TLS. A signature covers what is there already, and
	// what follows may be changed on its way.
	if x.sign != nil && originOf(x.target) == x.origin {
		if err := x.sign(req); err != nil {
			if x.ended() != nil {
				return nil, x.fault(err)
			}
			return nil, &Error{Op: x.op, URL: redactURL(x.asked), Kind: FaultCredential, Err: err}
		}
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "*/*")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", x.http.options.UserAgent)
	resp, err := x.http.transport.RoundTrip(req)
	if err != nil {
		return nil, x.fault(err)
	}
	return resp, nil
}

// next judges where a redirect leads. The address itself is judged by the guard, as any other.
func (x *exchange) next(hop int) (*url.URL, error) {
	refuse := func(kind Fault, err error) error {
		return &Error{Op: x.op, URL: redactURL(x.asked), Status: x.resp.StatusCode, Kind: kind, Err: err}
	}
	location := x.resp.Header.Get("Location")
	if location == "" {
		return nil, refuse(FaultRedirect, errors.New("the redirect names no address"))
	}
	if hop >= x.http.options.Redirects {
		return nil, refuse(FaultRedirect, fmt.Errorf("more than %d redirects, as of a server that leads in a circle; the last to %s",
			max(x.http.options.Redirects, 0), Redact(location)))
	}
	next, err := x.target.Parse(location)
	if err != nil {
		return nil, refuse(FaultRedirect, fmt.Errorf("the redirect leads to no address: %s", Redact(location)))
	}
	next.Scheme = strings.ToLower(next.Scheme)
	switch {
	case next.Scheme != "http" && next.Scheme != "https":
		return nil, refuse(FaultScheme, fmt.Errorf("the redirect leads to %s", redactURL(next)))
	case next.Hostname() == "":
		return nil, refuse(FaultRedirect, fmt.Errorf("the redirect names no host: %s", Redact(location)))
	case next.Scheme == "http" && x.target.Scheme == "https":
		return nil, refuse(FaultRedirect, fmt.Errorf("the redirect leads from https to %s", redactURL(next)))
	}
	next.User = nil // a server that redirects has no credentials to give
	return next, nil
}

// close ends the exchange, whatever is left of it. It may be called twice and from any goroutine.
func (x *exchange) close() {
	x.once.Do(func() {
		_ = x.resp.Body.Close() // it was only read from
		x.cancel(nil)
		x.release()
	})
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	default:
		return false
	}
}

// parseURL accepts absolute http and https addresses. Its errors hold nothing of the address, which
// may be secret.
func parseURL(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("it cannot be parsed")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it does not begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.User != nil:
		return nil, errUserinfo
	}
	return u, nil
}

// errUserinfo refuses a name or a password in an address: whatever keeps or shows the address would
// keep or show them.
var errUserinfo = errors.New("there are credentials in it; take them out and have an admin store them for the collection")

// originOf names a server: scheme, host and port, in one form.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
