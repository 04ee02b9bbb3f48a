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

	"github.com/holdfast/holdfast/netfault"
)

// maxRetryAfter bounds the Retry-After that is honored.
const maxRetryAfter = time.Hour

// fault classifies an error that occurred before an answer came.
func (x *exchange) fault(err error) error {
	address := redactURL(x.asked)
	if ended := x.ended(); ended != nil {
		return &Error{Op: x.op, URL: address, Kind: FaultCancelled, Err: ended}
	}
	var busy *busyError
	if errors.As(err, &busy) {
		return &Error{Op: x.op, URL: address, Kind: FaultBusy, RetryAfter: busy.wait}
	}
	said := x.http.forDepositors(err)
	if x.shown != x.asked {
		said = fmt.Errorf("redirected to %s: %w", redactURL(x.shown), said)
	}
	return &Error{Op: x.op, URL: address, Kind: FaultOf(err), Err: said}
}

// redactedError is an error worded for depositors: what happened in plain words, without the resolved
// addresses and without that of our resolver, which would reveal the service's network. errors.As finds
// the original error.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *redactedError) Unwrap() error { return e.err }

// The parts of package net's messages with addresses: "dial tcp 10.0.0.1:80: ...", "read tcp
// 10.0.0.2:4000->10.0.0.1:80: ...", "lookup a.test on 10.0.0.53:53: ...".
var (
	netAddress = regexp.MustCompile(`\b(?:dial|read|write) (?:tcp|udp)[46]? [^ ]+: `)
	dnsServer  = regexp.MustCompile(`(\blookup [^ ]+) on [^ ]+:`)
)

// forDepositors returns the error worded for depositors. If that changes its text it logs the original
// for operators.
func (h *HTTP) forDepositors(err error) error {
	text := netfault.Word(err).Error()
	if forbidden, ok := errors.AsType[*ForbiddenError](err); ok {
		text = strings.ReplaceAll(text, forbidden.Error(), "it leads to an address that is refused")
	}
	text = dnsServer.ReplaceAllString(netAddress.ReplaceAllString(text, ""), "$1:")
	if text == err.Error() {
		return err
	}
	if h.options.Log != nil {
		h.options.Log.Info("a source cannot be reached", "shown", text, "err", err)
	}
	return &redactedError{text, err}
}

// statusFault classifies an answer whose status is not a success (I8).
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
	case e.Kind == FaultMissing && x.http.noRedirects && e.Err != nil && !strings.HasPrefix(e.Err.Error(), "NoSuch"):
		e.Kind = FaultStatus // a store's 404 may also mean that it does not know who asks
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

// codeInXML matches the error code in answers of S3 and compatible services.
var codeInXML = regexp.MustCompile(`<Code>([A-Za-z]{1,64})</Code>`)

// errorCode returns the error code in the answer, or "". It distinguishes an expired signature from
// a rejected key, for instance.
func (x *exchange) errorCode() string {
	const enough = 4 << 10
	if kind, _, _ := mime.ParseMediaType(x.resp.Header.Get("Content-Type")); !strings.HasSuffix(kind, "/xml") {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(x.body(0, -1), enough)) // a partial body will do
	if found := codeInXML.FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return ""
}

// FaultOf classifies errors of the network by type. If an error has several types, the most
// specific counts.
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
		alertErr     *net.OpError // a TLS alert from the other side has no type of its own
	)
	if errors.As(err, &alertErr) && (alertErr.Op == "remote error" || alertErr.Op == "local error") {
		return true
	}
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &invalid)
}

// contextError returns the error and the cause of an ended ctx, otherwise nil.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// RetryAfter returns how long an answer asks to wait (RFC 9110, 10.2.3), at most an hour. It
// returns 0 without such a header, and for other statuses than 429 and 503.
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
	now, err := http.ParseTime(resp.Header.Get("Date")) // the header goes by the server's clock
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
