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
	// mostAnswer bounds an answer. Names carry little metadata here, but others may have given them
	// more.
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
		// Nobody else is shown the password, and a PUT that became a GET would look like success.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// operation is one request of the API.
type operation struct {
	op     string // for people
	method string
	ark    string
	body   metadata.Record
}

// do carries an operation out, several times when EZID is away or fails, and returns the elements
// of the answer.
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
			return nil, backoff.Permanent(err) // it is left alone for that long
		}
		return nil, err
	}, backoff.WithBackOff(wait), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(0))
}

// try asks once.
func (c *Client) try(ctx context.Context, o operation, body []byte) (metadata.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	where := *c.base
	where.Path += "/id/" + o.ark
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

// bare takes the address off an error of net/http: it is told already.
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

// judge reads an answer: a status line, "success: ARK" or "error: reason", then elements.
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
		if !same(line.Value, o.ark) {
			return nil, c.fault(o, Foreign, resp.StatusCode, fmt.Errorf("it speaks of %q", line.Value))
		}
		return rest, nil
	case line.Label == "error":
		e := c.fault(o, ofReason(resp.StatusCode, line.Value), resp.StatusCode, nil)
		e.Reason = line.Value
		return nil, e
	}
	return nil, c.fault(o, foreign(resp.StatusCode), resp.StatusCode, fmt.Errorf("it begins with %q", line.Label))
}

// same says whether a status line names the ARK that was asked for, in whatever of its forms.
func same(value, ark string) bool {
	got, err := noid.ParseARK(value)
	want, err2 := noid.ParseARK(ark)
	return err == nil && err2 == nil && got.Equal(want)
}

// ofStatus is what a status says by itself, whoever sent it; "" when the words have to be looked
// at.
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

// ofReason is what EZID's words say. It gives its reasons after "bad request - ", in words of which
// only the beginning has stayed over the years.
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

// foreign is what an answer in another form comes to: of a server that fails it may be anything.
func foreign(status int) Kind {
	if status >= http.StatusInternalServerError {
		return Broken
	}
	return Foreign
}

// reasonIn is EZID's reason in an answer that may be anybody's, "" when there is none.
func reasonIn(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	reason, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "error: ")
	if !ok || len(reason) > 200 {
		return ""
	}
	return reason
}

// retryAfter reads the header of that name (RFC 9110, 10.2.3), in seconds.
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.ParseInt(strings.TrimSpace(resp.Header.Get("Retry-After")), 10, 32)
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, time.Hour)
}
