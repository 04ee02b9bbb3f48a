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

// HTTPOptions configure NewHTTP. Zero fields take their defaults.
type HTTPOptions struct {
	// Guard checks every address that is connected to, including those of redirects.
	Guard Guard
	// Log receives the addresses that errors leave out because depositors read them. It may be nil.
	Log *slog.Logger
	// UserAgent is the User-Agent header. Default "Holdfast".
	// UserAgent names us to servers. Default "Holdfast".
	UserAgent string
	// RootCAs verify servers. Default: the system's.
	RootCAs *x509.CertPool
	// Resolver resolves names. Default: net.DefaultResolver.
	Resolver *net.Resolver
	// Redirects is the greatest number of redirects. Default 10; negative for none.
	Redirects int
	// ConnectTimeout bounds connecting, and separately the TLS handshake. Default 15 s.
	ConnectTimeout time.Duration
	// HeaderTimeout bounds the wait for an answer after the request was sent. Default 60 s.
	HeaderTimeout time.Duration
	// StallTimeout bounds the wait for the next byte of a body. It is also the period over which
	// LeastRate is measured. Default 60 s.
	StallTimeout time.Duration
	// LeastRate is the lowest average rate of a body in bytes per second; a slower body is stalled.
	// It is measured over each StallTimeout of time spent waiting for bytes. Default 1024; negative
	// for none.
	LeastRate int
	// PerHost is the greatest number of concurrent requests to one server, each until its body is
	// closed. More requests wait. Default 16. A caller that holds this many bodies open and asks
	// for another one deadlocks.
	PerHost int
	// RequestsPerSecond and BytesPerSecond limit the load on one server. Default: no limit.
	RequestsPerSecond float64
	BytesPerSecond    int
	// PatienceAfterRetryAfter is how long a request waits for a server that asked to wait. If the
	// server asks for longer, the request fails at once with FaultBusy. Default 2 s.
	PatienceAfterRetryAfter time.Duration
}

// AuthorizeFunc returns the Authorization header for a server, or "". origin is "https://host:443",
// always with a port. An error becomes a FaultCredential.
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

// HTTP is a Fetcher for http and https. It ignores proxies in the environment, because the guard
// cannot see past them. An address with a name or password is a FaultURL.
type HTTP struct {
	options     HTTPOptions
	transport   *http.Transport
	gate        *gate
	locate      LocateFunc
	condition   string // the header that makes a range request depend on the validator
	noRedirects bool
}

// Log returns the log for what errors leave out; nil: none.
func (h *HTTP) Log() *slog.Logger { return h.options.Log }

// NewHTTP returns a Fetcher for http and https. Close closes its idle connections.
func NewHTTP(o HTTPOptions) *HTTP {
	o = o.withDefaults()
	h := &HTTP{options: o, transport: newTransport(o), gate: newGate(o)}
	return h.Authorized(nil)
}

// Authorized returns a Fetcher with other credentials. It shares connections and limits with h. The
// function is asked only for the server that an address names, never for the target of a redirect.
// It may be nil.
func (h *HTTP) Authorized(authorize AuthorizeFunc) *HTTP {
	c := *h
	c.condition, c.noRedirects = "If-Range", false
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

// Location is the HTTP location of a file.
type Location struct {
	Asked  *url.URL // the address for people
	Target *url.URL // http or https
	// Sign adds credentials to a request. The request has the context of the caller. An error
	// becomes a FaultCredential. It may be nil.
	Sign func(r *http.Request) error
}

// LocateFunc finds the location of an address. An *Error needs only Kind and Err; any other error
// becomes a FaultCredential.
type LocateFunc func(ctx context.Context, rawURL string) (Location, error)

// Located returns a Fetcher for addresses of another scheme, fetched over HTTP from an object store
// that supports If-Match. It shares connections, limits and the guard with h. It does not follow
// redirects.
func (h *HTTP) Located(locate LocateFunc) *HTTP {
	c := *h
	c.locate, c.condition, c.noRedirects = locate, "If-Match", true
	return &c
}

// Close closes idle connections. The Fetcher remains usable.
func (h *HTTP) Close() { h.transport.CloseIdleConnections() }

// newTransport suits thousands of small files, by keeping as many connections as may be used at a
// time, and large files, whose reads bypass the buffer.
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

// Head implements Fetcher. If the server refuses HEAD or says that the file is missing, Head
// requests the first byte instead: addresses signed for GET, and servers that know only GET, answer
// HEAD with 400, 403, 404, 405 or 501.
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
