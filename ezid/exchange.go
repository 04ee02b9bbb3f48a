package ezid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/holdfast/holdfast/metadata"
	"github.com/holdfast/holdfast/noid"
)

const (
	tries       = 3
	tryTimeout  = 20 * time.Second // shorter than a lease
	dialTime    = 5 * time.Second
	longestWait = 10 * time.Second // between two tries
	// mostAnswer bounds an answer in bytes. Holdfast gives names little metadata, but others may
	// have added more.
	mostAnswer = 1 << 20
)

func newHTTP() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dialTime}).DialContext,
			TLSHandshakeTimeout: dialTime,
			IdleConnTimeout:     time.Minute,
			MaxIdleConnsPerHost: 4,
			DisableCompression:  true,
			ForceAttemptHTTP2:   true,
		},
		// A redirect would send the password elsewhere, and a PUT that became a GET would look like
		// success.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// operation is one request of the API.
type operation struct {
	op     string // for people
	method string
	ark    string // "": the operation is about the account
	body   metadata.Record
}

// path returns the operation's path below the service's address.
func (o operation) path() string {
	if o.ark == "" {
		return "/login"
	}
	return "/id/" + o.ark
}

// do performs an operation and returns the elements of the answer. It retries while EZID is away or
// fails.
func (c *Client) do(ctx context.Context, o operation) (metadata.Record, error) {
	var body bytes.Buffer
	if len(o.body) > 0 {
		if err := metadata.WriteANVL(&body, metadata.Space, o.body); err != nil {
			return nil, c.fault(o, Refused, 0, err)
		}
	}
	wait := &backoff.ExponentialBackOff{InitialInterval: c.wait, RandomizationFactor: 0.2, Multiplier: 2, MaxInterval: longestWait}
	return backoff.Retry(ctx, func() (metadata.Record, error) {
		answer, err := c.try(ctx, o, body.Bytes())
		var e *Error
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil || !errors.As(err, &e) || e.Kind != Away && e.Kind != Broken:
			return nil, backoff.Permanent(err)
		case e.RetryAfter > 0:
			return nil, backoff.Permanent(err) // the worker waits that long
		}
		return nil, err
	}, backoff.WithBackOff(wait), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(0))
}

// try sends one request.
func (c *Client) try(ctx context.Context, o operation, body []byte) (metadata.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	where := *c.base
	where.Path += o.path()
	req, err := http.NewRequestWithContext(ctx, o.method, where.String(), bytes.NewReader(body))
	if err != nil {
		return nil, c.fault(o, Refused, 0, err)
	}
	req.SetBasicAuth(c.user, c.password)
	req.Header.Set("Accept", "text/plain")
	req.Header.Set("Accept-Encoding", "identity")
	if c.agent != "" {
		req.Header.Set("User-Agent", c.agent)
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "text/plain; charset=UTF-8")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.fault(o, Away, 0, bare(err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	if err != nil {
		return nil, c.fault(o, Away, resp.StatusCode, fmt.Errorf("its answer broke off: %w", err))
	}
	return c.judge(o, resp, text)
}

// bare removes the address from an error of net/http, because Error shows it already.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func (c *Client) fault(o operation, k Kind, status int, err error) *Error {
	return &Error{Op: o.op, ARK: o.ark, Host: c.base.Host, Kind: k, Status: status, Err: err}
}

// judge parses an answer: a status line, "success: ARK" or "error: reason", then elements.
func (c *Client) judge(o operation, resp *http.Response, text []byte) (metadata.Record, error) {
	if len(text) > mostAnswer {
		return nil, c.fault(o, Foreign, resp.StatusCode, fmt.Errorf("it is longer than %d bytes", mostAnswer))
	}
	if kind := ofStatus(resp.StatusCode); kind == Away || kind == Denied {
		e := c.fault(o, kind, resp.StatusCode, nil)
		e.Reason, e.RetryAfter = reasonIn(text), retryAfter(resp)
		return nil, e
	}
	records, err := metadata.ReadANVL(bytes.NewReader(text))
	if err != nil || len(records) != 1 || len(records[0]) == 0 {
		return nil, c.fault(o, foreign(resp.StatusCode), resp.StatusCode, errors.Join(errors.New("it is not in EZID's form"), err))
	}
	line, rest := records[0][0], records[0][1:]
	switch {
	case line.Label == "success" && resp.StatusCode/100 == 2:
		if o.ark != "" && !same(line.Value, o.ark) {
			return nil, c.fault(o, Foreign, resp.StatusCode, fmt.Errorf("it is about %q", line.Value))
		}
		return rest, nil
	case line.Label == "error":
		e := c.fault(o, ofReason(resp.StatusCode, line.Value), resp.StatusCode, nil)
		e.Reason = line.Value
		return nil, e
	}
	return nil, c.fault(o, foreign(resp.StatusCode), resp.StatusCode, fmt.Errorf("it begins with %q", line.Label))
}

// same reports whether a status line names the requested ARK in any of its forms.
func same(value, ark string) bool {
	got, err := noid.ParseARK(value)
	want, err2 := noid.ParseARK(ark)
	return err == nil && err2 == nil && got.Equal(want)
}

// ofStatus returns the kind that a status alone implies, or "" if the text of the answer decides.
func ofStatus(status int) Kind {
	switch status {
	case http.StatusTooManyRequests, http.StatusRequestTimeout,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Away
	case http.StatusUnauthorized, http.StatusForbidden:
		return Denied
	}
	return ""
}

// ofReason returns the kind that EZID's text implies. Reasons follow "bad request - "; only their
// beginnings have been stable over the years.
func ofReason(status int, reason string) Kind {
	const badRequest = "bad request - "
	words, bad := strings.CutPrefix(strings.ToLower(reason), badRequest)
	switch {
	case bad && strings.HasPrefix(words, "identifier already exists"):
		return Exists
	case bad && strings.HasPrefix(words, "no such identifier"):
		return Missing
	case strings.HasPrefix(reason, "unauthorized") || strings.HasPrefix(reason, "forbidden"):
		return Denied
	case strings.HasPrefix(reason, "concurrency limit exceeded"):
		return Away
	case status >= http.StatusInternalServerError:
		return Broken
	}
	return Refused
}

// foreign returns the kind of an answer in another format. A failing server may send anything.
func foreign(status int) Kind {
	if status >= http.StatusInternalServerError {
		return Broken
	}
	return Foreign
}

// reasonIn returns EZID's reason if the answer has one, or "".
func reasonIn(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	reason, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "error: ")
	if !ok || len(reason) > 200 {
		return ""
	}
	return reason
}

// retryAfter reads the Retry-After header in seconds (RFC 9110, 10.2.3).
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.ParseInt(strings.TrimSpace(resp.Header.Get("Retry-After")), 10, 32)
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, time.Hour)
}
