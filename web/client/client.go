// Package client is the client of Holdfast's HTTP API for this repository's commands. Other
// programs generate a client from docs/openapi.json.
//
// When a method returns without an error, the server has committed what was asked. Bytes are
// verified against their digests in transit. A refusal is a *Problem with the server's text;
// errors.Is and errors.As find the registry's own errors in it.
//
// The client never retries, because only its caller knows which requests may be repeated.
// FollowEvents and SendFile are exceptions: they continue where they were interrupted.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/holdfast/holdfast/web/wire"
)

// Problem is a refusal by the server: Status, Code, Detail and Faults.
type Problem = wire.Problem

// Options configure a Client. The zero value is for the command line.
type Options struct {
	HTTP      *http.Client   // nil: a client of its own
	Roots     *x509.CertPool // of HTTPS, where HTTP is nil; nil: the machine's
	UserAgent string         // "" = Holdfast
	Timeout   time.Duration  // of a request that carries no file; 0: 30 s
}

// Client calls one Holdfast server. Its methods may be called concurrently.
type Client struct {
	base    string
	token   string
	http    *http.Client
	agent   string
	timeout time.Duration
}

// New returns a Client of the Holdfast server at baseURL, such as http://127.0.0.1:8470. It does
// not connect yet, so a wrong address shows with the first request.
func New(baseURL, token string, o Options) *Client {
	c := &Client{
		base: strings.TrimSuffix(baseURL, "/"), token: token, http: o.HTTP, agent: o.UserAgent, timeout: o.Timeout,
	}
	if c.http == nil {
		c.http = &http.Client{Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			// A refusal should come before the bytes are sent in vain.
			ExpectContinueTimeout: 5 * time.Second,
			TLSHandshakeTimeout:   10 * time.Second,
			IdleConnTimeout:       90 * time.Second,
			MaxIdleConnsPerHost:   16,
			ForceAttemptHTTP2:     true,
			TLSClientConfig:       &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
			DisableCompression:    true, // bytes are counted and hashed as they are stored
		}}
	}
	if c.agent == "" {
		c.agent = "Holdfast"
	}
	if c.timeout <= 0 {
		c.timeout = 30 * time.Second
	}
	return c
}

// Timeout returns the time limit of a request without a file.
func (c *Client) Timeout() time.Duration { return c.timeout }

// Close closes idle connections. The client remains usable.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ConnectError says that the server could not be reached.
type ConnectError struct {
	URL string
	Err error
}

// Error returns the address, the cause, and what to do.
func (e *ConnectError) Error() string {
	cause := e.Err
	var dial *net.OpError
	if errors.As(cause, &dial) && dial.Op == "dial" {
		cause = dial.Err // the address is said already
		var call *os.SyscallError
		if errors.As(cause, &call) {
			cause = call.Err
		}
	}
	return fmt.Sprintf("could not connect to Holdfast at %s: %v; start `holdfast up` there, or set --dir or HOLDFAST_URL to the right address", e.URL, cause)
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// request is one HTTP request.
type request struct {
	method string
	path   string // below the API, escaped
	query  url.Values
	header http.Header
	body   io.Reader
	length int64 // of body; -1 unknown

	unbounded bool // no time limit but the context's
}

// do sends a request. It returns a 2xx answer, whose body the caller must close, or an error.
func (c *Client) do(ctx context.Context, q request) (*http.Response, error) {
	address := c.base + wire.Base + q.path
	if len(q.query) > 0 {
		address += "?" + q.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.method, address, q.body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base, err)
	}
	for name, values := range q.header {
		r.Header[name] = values
	}
	if q.body != nil && q.length != 0 {
		r.ContentLength = q.length
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("User-Agent", c.agent)
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, problemIn(answer)
}

// unreached explains why there is no answer. It omits the URL of net/http's own error, which may
// contain secrets.
func (c *Client) unreached(ctx context.Context, err error) error {
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("ask %s: %w", c.base, context.Cause(ctx))
	}
	if isConnect(err) {
		return &ConnectError{URL: c.base, Err: err}
	}
	return fmt.Errorf("ask %s: %w", c.base, err)
}

// problemIn decodes the refusal of an answer. An answer that is not Holdfast's becomes a problem
// with its status.
func problemIn(answer *http.Response) error {
	const most = 8 << 20
	if kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type")); err == nil && kind == "application/problem+json" {
		p := &Problem{}
		if err := json.NewDecoder(io.LimitReader(answer.Body, most)).Decode(p); err == nil && p.Status != 0 {
			return p
		}
	}
	return wire.NewProblem(answer.StatusCode, wire.CodeInternal, fmt.Sprintf(
		"the server at %s answered %s without a reason; check that the address is that of a Holdfast server", answer.Request.URL.Host, answer.Status))
}

// ask sends in as JSON unless it is nil, and decodes the answer into out unless that is nil.
func (c *Client) ask(ctx context.Context, q request, in, out any) error {
	if !q.unbounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer within %s: %w", c.timeout, context.DeadlineExceeded))
		defer cancel()
	}
	if in != nil {
		text, encoded := in.(json.RawMessage)
		if !encoded {
			var err error
			if text, err = wire.Encode(in); err != nil {
				return err
			}
		}
		q.body, q.length = bytes.NewReader(text), int64(len(text))
		if q.header == nil {
			q.header = http.Header{}
		}
		q.header.Set("Content-Type", "application/json")
	}
	answer, err := c.do(ctx, q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if out == nil {
		return nil
	}
	if raw, ok := out.(*json.RawMessage); ok {
		*raw, err = io.ReadAll(answer.Body)
	} else {
		err = json.NewDecoder(answer.Body).Decode(out)
	}
	if err != nil {
		return fmt.Errorf("decode answer to %s %s: %w", q.method, q.path, err)
	}
	return nil
}

// get decodes a JSON answer of type T.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	var out T
	err := c.ask(ctx, request{method: http.MethodGet, path: path, query: query}, nil, &out)
	return out, err
}

// Post sends in as JSON to a path below the API, and decodes the answer into out. A json.RawMessage
// is sent, and received, as it is. It takes at most the given time; 0 means Timeout. It is for
// web/protocol; other operations have their own methods.
func (c *Client) Post(ctx context.Context, path string, most time.Duration, in, out any) error {
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	return c.ask(ctx, request{method: http.MethodPost, path: path, unbounded: most > 0}, in, out)
}
