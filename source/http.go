package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"
)

// HTTPOptions sets up NewHTTP. The zero value is usable; a zero field takes its default.
type HTTPOptions struct {
	// Guard judges every address that is connected to, also those that redirects lead to.
	Guard Guard
	// Authorize returns the value of the Authorization header for a server, or "". It is asked only
	// for the server that was named, never for one that a redirect leads to. Nil means none.
	Authorize AuthorizeFunc
	// Log is told of addresses that errors leave out since depositors read them. Nil: nobody is.
	Log *slog.Logger
	// UserAgent names us to servers. Default "Holdfast".
	UserAgent string
	// RootCAs verify servers. Default: the system's.
	RootCAs *x509.CertPool
	// Resolver resolves names. Default: net.DefaultResolver.
	Resolver *net.Resolver
	// Redirects is how many are followed. Default 10, negative none.
	Redirects int
	// ConnectTimeout bounds connecting and, apart from that, the TLS handshake. Default 15 s.
	ConnectTimeout time.Duration
	// HeaderTimeout bounds the wait for an answer once the request is sent. Default 60 s.
	HeaderTimeout time.Duration
	// StallTimeout bounds the wait for the next byte of a body, and is the span that LeastRate is
	// an average of. Default 60 s.
	StallTimeout time.Duration
	// LeastRate is the average, in bytes a second, below which a body counts as stalled. Each
	// StallTimeout that is spent waiting for bytes is judged by itself. Default 1024, negative
	// none.
	LeastRate int
	// PerHost is how many requests to one server are under way at a time, until their bodies are
	// closed; more wait. Default 16. Whoever keeps that many bodies open and asks for another one
	// waits for himself.
	PerHost int
	// RequestsPerSecond and BytesPerSecond limit what one server is asked for. Default: no limit.
	RequestsPerSecond float64
	BytesPerSecond    int
	// PatienceAfterRetryAfter is how long a request waits where a server has asked to be left
	// alone. Where that would take longer it fails with FaultBusy at once, and the server is not
	// asked. Default 2 s.
	PatienceAfterRetryAfter time.Duration
}

// AuthorizeFunc returns the value of the Authorization header for a server ("https://host:443", the
// port always given), or "". Its error is a FaultCredential.
type AuthorizeFunc func(ctx context.Context, origin string) (string, error)

// The defaults of HTTPOptions.
const (
	defaultUserAgent = "Holdfast"
	defaultRedirects = 10
	defaultConnect   = 15 * time.Second
	defaultHeader    = 60 * time.Second
	defaultStall     = 60 * time.Second
	defaultLeast     = 1024
	defaultPerHost   = 16
	defaultPatience  = 2 * time.Second
)

func (o HTTPOptions) withDefaults() HTTPOptions {
	if o.UserAgent == "" {
		o.UserAgent = defaultUserAgent
	}
	if o.Redirects == 0 {
		o.Redirects = defaultRedirects
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = defaultConnect
	}
	if o.HeaderTimeout <= 0 {
		o.HeaderTimeout = defaultHeader
	}
	if o.StallTimeout <= 0 {
		o.StallTimeout = defaultStall
	}
	if o.LeastRate == 0 {
		o.LeastRate = defaultLeast
	}
	if o.PerHost <= 0 {
		o.PerHost = defaultPerHost
	}
	if o.PatienceAfterRetryAfter <= 0 {
		o.PatienceAfterRetryAfter = defaultPatience
	}
	return o
}

// HTTP is a Fetcher for http and https. Proxies named in the environment are not used, since the
// guard could not see past them. Addresses with a name or a password in them are a FaultURL.
type HTTP struct {
	options   HTTPOptions
	transport *http.Transport
	gate      *gate
	locate    LocateFunc
	condition string // the header that asks for a part of this very state of a file
	stays     bool   // redirects are not followed
}

// NewHTTP returns a Fetcher for http and https. Close lets go of its idle connections.
func NewHTTP(o HTTPOptions) *HTTP {
	o = o.withDefaults()
	h := &HTTP{options: o, transport: newTransport(o), gate: newGate(o)}
	return h.Authorized(o.Authorize)
}

// Authorized returns a Fetcher that differs in its credentials only: connections and limits are
// shared.
func (h *HTTP) Authorized(authorize AuthorizeFunc) *HTTP {
	c := *h
	c.condition, c.stays = "If-Range", false
	c.locate = func(_ context.Context, rawURL string) (Location, error) {
		u, err := parseURL(rawURL)
		if err != nil {
			return Location{}, &Error{Kind: FaultURL, Err: err}
		}
		at := Location{Asked: u, Target: u}
		if authorize != nil {
			at.Sign = func(r *http.Request) error {
				value, err := authorize(r.Context(), originOf(u))
				if value != "" {
					r.Header.Set("Authorization", value)
				}
				return err
			}
		}
		return at, nil
	}
	return &c
}

// Location is where what an address names is, and how it is asked for over HTTP.
type Location struct {
	Asked  *url.URL // the address as people know it
	Target *url.URL // http or https
	// Sign adds to a request what shows whose it is. The request's context is that of the caller;
	// an error is a FaultCredential. Nil adds nothing.
	Sign func(r *http.Request) error
}

// LocateFunc finds the location of what an address names. An *Error needs its Kind and Err only;
// any other one is a FaultCredential.
type LocateFunc func(ctx context.Context, rawURL string) (Location, error)

// Located returns a Fetcher for addresses of another scheme that are fetched over HTTP from a store
// of objects: one that goes by If-Match. Connections, limits and the guard are shared with h.
// Redirects are not followed.
func (h *HTTP) Located(locate LocateFunc) *HTTP {
	c := *h
	c.locate, c.condition, c.stays = locate, "If-Match", true
	return &c
}

// Close closes idle connections. The Fetcher can still be used.
func (h *HTTP) Close() { h.transport.CloseIdleConnections() }

// newTransport tunes connections for both ends of the scale: thousands of small files, for which as
// many connections are kept as are used at a time, and large ones, whose reads go past the buffer.
func newTransport(o HTTPOptions) *http.Transport {
	const (
		keepAlive   = 30 * time.Second
		idleTimeout = 60 * time.Second
		idleInAll   = 512
		readBuffer  = 32 << 10
		maxHeader   = 1 << 20
	)
	dialer := &net.Dialer{
		Timeout:   o.ConnectTimeout,
		KeepAlive: keepAlive,
		Resolver:  o.Resolver,
		Control:   o.Guard.Control,
	}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    o.ConnectTimeout,
		ResponseHeaderTimeout:  o.HeaderTimeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: keepAlive, PingTimeout: o.ConnectTimeout},
		DisableCompression:     true,
		MaxIdleConns:           idleInAll,
		MaxIdleConnsPerHost:    o.PerHost,
		IdleConnTimeout:        idleTimeout,
		ReadBufferSize:         readBuffer,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// Head implements Fetcher. Where a server refuses HEAD, or answers that there is nothing, the first
// byte is asked for instead: addresses signed for GET, and servers that know only GET, answer HEAD
// with 400, 403, 404, 405 or 501.
func (h *HTTP) Head(ctx context.Context, rawURL string) (Info, error) {
	const op = "head"
	x, err := h.exchange(ctx, op, http.MethodHead, rawURL, nil)
	if err != nil {
		return Info{}, err
	}
	defer x.close()
	switch x.resp.StatusCode {
	case http.StatusOK:
		return x.describe()
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		x.close()
		return h.headByGet(ctx, op, rawURL)
	default:
		return Info{}, x.statusFault()
	}
}

func (h *HTTP) headByGet(ctx context.Context, op, rawURL string) (Info, error) {
	x, err := h.exchange(ctx, op, http.MethodGet, rawURL, http.Header{"Range": {"bytes=0-0"}})
	if err != nil {
		return Info{}, err
	}
	defer x.close()
	switch x.resp.StatusCode {
	case http.StatusOK:
		return x.describe()
	case http.StatusPartialContent:
		info, err := x.describe()
		if err != nil {
			return Info{}, err
		}
		info.Ranges = true
		info.Size = -1
		if r, ok := x.contentRange(); ok {
			info.Size = r.total
		}
		x.drain()
		return info, nil
	case http.StatusRequestedRangeNotSatisfiable:
		if r, ok := x.contentRange(); ok && r.total == 0 { // an empty file has no first byte
			info, err := x.describe()
			info.Size, info.Ranges = 0, true
			return info, err
		}
		return Info{}, x.statusFault()
	default:
		return Info{}, x.statusFault()
	}
}
