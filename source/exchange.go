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

// exchange is one request with its answer, after redirects.
type exchange struct {
	http     *HTTP
	op       string
	asked    *url.URL // the address that the caller gave
	shown    *url.URL // the address that answered, for messages
	target   *url.URL // the address of the current request
	origin   string   // of the first target; only it gets credentials
	sign     func(*http.Request) error
	resp     *http.Response
	ended    func() error // why the exchange was cancelled, or nil
	cancel   context.CancelCauseFunc
	release  func()
	throttle func(n int) error // waits for the limit on bytes
	once     sync.Once
}

// exchange sends a request and follows redirects. The answer may have any other status. The caller
// must close the exchange.
func (h *HTTP) exchange(ctx context.Context, op, method, rawURL string, header http.Header) (*exchange, error) {
	at, err := h.locate(ctx, rawURL)
	if err != nil {
		return nil, locateFault(ctx, op, rawURL, err)
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
		if h.noRedirects || !isRedirect(x.resp.StatusCode) {
			return x, nil
		}
		next, err := x.next(hop)
		_ = x.resp.Body.Close() // its content is not needed
		x.release()
		if err != nil {
			cancel(nil)
			return nil, err
		}
		x.target, x.shown = next, next
	}
}

// locateFault classifies an error of locate.
func locateFault(ctx context.Context, op, rawURL string, err error) error {
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

// send sends one request to x.target. After success it holds a slot of the server.
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
		return nil, &Error{Op: x.op, URL: redactURL(x.shown), Kind: FaultURL, Err: errors.New("it cannot be requested")}
	}
	// Send credentials only to the server that was named: not to another host, another port, or the
	// same one without TLS. Sign before the other headers are set, because proxies may change
	// those.
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

// next returns the target of a redirect. The guard checks its address when it connects.
func (x *exchange) next(hop int) (*url.URL, error) {
	refuse := func(kind Fault, err error) error {
		return &Error{Op: x.op, URL: redactURL(x.asked), Status: x.resp.StatusCode, Kind: kind, Err: err}
	}
	location := x.resp.Header.Get("Location")
	if location == "" {
		return nil, refuse(FaultRedirect, errors.New("the redirect names no address"))
	}
	if hop >= x.http.options.Redirects {
		return nil, refuse(FaultRedirect, fmt.Errorf("more than %d redirects; the last one leads to %s",
			max(x.http.options.Redirects, 0), Redact(location)))
	}
	next, err := x.target.Parse(location)
	if err != nil {
		return nil, refuse(FaultRedirect, fmt.Errorf("the redirect leads to an invalid address: %s", Redact(location)))
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
	next.User = nil // never use credentials from a redirect
	return next, nil
}

// close ends the exchange and its body. It may be called twice and from any goroutine.
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

// parseURL accepts absolute http and https addresses. Its errors contain no part of the address,
// which may be secret.
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

// errUserinfo refuses an address with a name or password, because addresses are stored and shown.
var errUserinfo = errors.New("there are credentials in it; remove them and ask an admin to store them for the collection")

// originOf returns scheme, host and port of a server in a canonical form.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
