package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the longest that a source's wish to be left alone is taken for.
const maxRetryAfter = time.Hour

// fault gives an error met before there was an answer its meaning.
func (x *exchange) fault(err error) error {
	address := redactURL(x.asked)
	if x.shown != x.asked {
		err = fmt.Errorf("redirected to %s: %w", redactURL(x.shown), err)
	}
	if ended := x.ended(); ended != nil {
		return &Error{Op: x.op, URL: address, Kind: FaultCancelled, Err: ended}
	}
	var busy *busyError
	if errors.As(err, &busy) {
		return &Error{Op: x.op, URL: address, Kind: FaultBusy, RetryAfter: busy.wait}
	}
	return &Error{Op: x.op, URL: address, Kind: FaultOf(err), Err: x.http.told(err)}
}

// unsaid is an error as depositors may read it: without the addresses that names were resolved to,
// and without our resolver's. These tell of the network that the service stands in. errors.As finds
// what it was.
type unsaid struct {
	text string
	err  error
}

func (e *unsaid) Error() string { return e.text }

// Unwrap returns the error as it was.
func (e *unsaid) Unwrap() error { return e.err }

// Where the texts of package net have addresses: "dial tcp 10.0.0.1:80: ...", "read tcp
// 10.0.0.2:4000->10.0.0.1:80: ...", "lookup a.test on 10.0.0.53:53: ...".
var (
	netAddress = regexp.MustCompile(`\b(?:dial|read|write) (?:tcp|udp)[46]? [^ ]+: `)
	dnsServer  = regexp.MustCompile(`(\blookup [^ ]+) on [^ ]+:`)
)

// told is an error as depositors may read it. What it leaves out is logged, for operators.
func (h *HTTP) told(err error) error {
	text := err.Error()
	if forbidden, ok := errors.AsType[*ForbiddenError](err); ok {
		text = strings.ReplaceAll(text, forbidden.Error(), "it leads to an address that is refused")
	}
	text = dnsServer.ReplaceAllString(netAddress.ReplaceAllString(text, ""), "$1:")
	if text == err.Error() {
		return err
	}
	if h.options.Log != nil {
		h.options.Log.Info("a source cannot be reached", "told", text, "err", err)
	}
	return &unsaid{text, err}
}

// statusFault gives an answer that is not the file its meaning (I8).
func (x *exchange) statusFault() error {
	e := &Error{
		Op:         x.op,
		URL:        redactURL(x.asked),
		Status:     x.resp.StatusCode,
		Kind:       FaultStatus,
		RetryAfter: RetryAfter(x.resp),
	}
	if code := x.errorCode(); code != "" {
		e.Err = errors.New(code)
	}
	switch x.resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		e.Kind = FaultMissing
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Kind = FaultDenied
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		e.Kind = FaultBusy
	case http.StatusPartialContent:
		e.Kind = FaultProtocol
	}
	switch {
	case isRedirect(x.resp.StatusCode):
		e.Kind = FaultRedirect
	case e.Kind == FaultMissing && x.http.stays && e.Err != nil && !strings.HasPrefix(e.Err.Error(), "NoSuch"):
		e.Kind = FaultStatus // of a store, a 404 may also say that it does not know who asks
	}
	if x.shown != x.asked {
		to := fmt.Errorf("redirected to %s", redactURL(x.shown))
		if e.Err != nil {
			to = fmt.Errorf("%w: %w", to, e.Err)
		}
		e.Err = to
	}
	return e
}

// codeInXML is the service's own word for an error, as S3 and its kin answer it.
var codeInXML = regexp.MustCompile(`<Code>([A-Za-z]{1,64})</Code>`)

// errorCode returns that word, which tells an expired signature from a key that was not let in; ""
// when there is none.
func (x *exchange) errorCode() string {
	const enough = 4 << 10
	if kind, _, _ := mime.ParseMediaType(x.resp.Header.Get("Content-Type")); !strings.HasSuffix(kind, "/xml") {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(x.body(0, -1), enough)) // what came of it will do
	if found := codeInXML.FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return ""
}

// FaultOf tells faults of the network apart by type: what it was that kept an answer from coming.
// Where an error has more than one, the more telling comes first.
func FaultOf(err error) Fault {
	if _, ok := errors.AsType[*ForbiddenError](err); ok {
		return FaultForbidden
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return FaultDNS
	}
	if isTLS(err) {
		return FaultTLS
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) {
		return FaultTimeout
	}
	return FaultConnection
}

func isTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		alert        tls.AlertError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		told         *net.OpError // what one end of a TLS connection tells the other has no type of its own
	)
	if errors.As(err, &told) && (told.Op == "remote error" || told.Op == "local error") {
		return true
	}
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &invalid)
}

// contextError returns why ctx ended, together with the context's own error; nil while it has not.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// RetryAfter is how long an answer asks to be left alone (RFC 9110, 10.2.3), an hour at most; 0
// when it does not, or is no 429 or 503.
func RetryAfter(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	value := strings.TrimSpace(resp.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(resp.Header.Get("Date")) // by the server's clock, which the header is by
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
