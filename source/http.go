package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"
)

// HTTPOptions sets up NewHTTP. The zero value is usable; a zero field takes its default.
type HTTPOptions struct {
	// Guard judges every address that is connected to, also those that redirects lead to.
	Guard Guard
	// Authorize returns the value of the Authorization header for a server ("https://host:443", the port
	// always given), or "". It is asked only for the server that was named, never for one that a redirect leads to.
	// Credentials within an address go before it. Nil means none.
	Authorize func(origin string) string
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
	// StallTimeout bounds the wait for the next byte of a body. Default 60 s.
	StallTimeout time.Duration
	// PerHost is how many requests to one server are under way at a time, until their bodies are closed; more wait.
	// Default 16. Whoever keeps that many bodies open and asks for another one waits for himself.
	PerHost int
	// RequestsPerSecond and BytesPerSecond limit what one server is asked for. Default: no limit.
	RequestsPerSecond float64
	BytesPerSecond    int
	// PatienceAfterRetryAfter is how long a request waits where a server has asked to be left alone. Where that would
	// take longer it fails with FaultBusy at once, and the server is not asked. Default 2 s.
	PatienceAfterRetryAfter time.Duration
}

// The defaults of HTTPOptions.
const (
	defaultUserAgent = "Holdfast"
	defaultRedirects = 10
	defaultConnect   = 15 * time.Second
	defaultHeader    = 60 * time.Second
	defaultStall     = 60 * time.Second
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
	if o.PerHost <= 0 {
		o.PerHost = defaultPerHost
	}
	if o.PatienceAfterRetryAfter <= 0 {
		o.PatienceAfterRetryAfter = defaultPatience
	}
	if o.Authorize == nil {
		o.Authorize = func(string) string { return "" }
	}
	return o
}

// HTTP is a Fetcher for http and https. Proxies named in the environment are not used, since the guard could not see
// past them.
type HTTP struct {
	options   HTTPOptions
	transport *http.Transport
	gate      *gate
}

// NewHTTP returns a Fetcher for http and https. Close lets go of its idle connections.
func NewHTTP(o HTTPOptions) *HTTP {
	o = o.withDefaults()
	return &HTTP{options: o, transport: newTransport(o), gate: newGate(o)}
}

// Authorized returns a Fetcher that differs in its credentials only: connections and limits are shared.
func (h *HTTP) Authorized(authorize func(origin string) string) *HTTP {
	c := *h
	c.options.Authorize = authorize
	c.options = c.options.withDefaults()
	return &c
}

// Close closes idle connections. The Fetcher can still be used.
func (h *HTTP) Close() { h.transport.CloseIdleConnections() }

// newTransport tunes connections for both ends of the scale: thousands of small files, for which as many connections are
// kept as are used at a time, and large ones, whose reads go past the buffer.
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

// Head implements Fetcher. Where a server refuses HEAD, or answers that there is nothing, the first byte is asked for
// instead: addresses signed for GET, and servers that know only GET, answer HEAD with 400, 403, 404, 405 or 501.
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
