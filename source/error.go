package source

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Fault is the kind of an Error.
type Fault string

// The faults. The first four are content faults (see Error.ContentFault). All others are system
// faults, which includes the network and the other server.
const (
	FaultURL       Fault = "url"       // not an address
	FaultScheme    Fault = "scheme"    // an unsupported kind of address
	FaultForbidden Fault = "forbidden" // refused by the guard
	FaultMissing   Fault = "missing"   // 404, 410

	FaultDenied     Fault = "denied"     // 401, 403, or a bucket without a credential of the collection
	FaultCredential Fault = "credential" // the collection's credential cannot be used
	FaultBusy       Fault = "busy"       // 429, 503, or the Retry-After of such an answer has not passed
	FaultStatus     Fault = "status"     // any other status
	FaultDNS        Fault = "dns"        // the name does not resolve
	FaultTLS        Fault = "tls"        // no trustworthy connection
	FaultTimeout    Fault = "timeout"    // no connection or no answer in time
	FaultStalled    Fault = "stalled"    // the body stopped, or came too slowly
	FaultConnection Fault = "connection" // refused, reset, unreachable
	FaultShort      Fault = "short"      // the body ended too early
	FaultRedirect   Fault = "redirect"   // too many, without target, or from https to http
	FaultEncoding   Fault = "encoding"   // compressed for transport, against our request
	FaultProtocol   Fault = "protocol"   // an answer that contradicts itself or the request
	FaultUpload     Fault = "upload"     // an upload that cannot be read
	FaultCancelled  Fault = "cancelled"  // the caller's context ended
)

// Error is the error type of all Fetchers.
type Error struct {
	Op         string        // head, open or read
	URL        string        // the address, redacted
	Status     int           // of HTTP, or 0
	Kind       Fault         // what went wrong
	RetryAfter time.Duration // how long the source asks to wait, at most an hour, or 0
	Err        error         // the cause, or nil
}

// Error implements error. It says what was done to what, what happened, and what to do.
func (e *Error) Error() string {
	what, advice := e.Kind.describe()
	if e.Status != 0 {
		what = strings.TrimSpace(fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", e.doing(), e.URL, what)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, " (asks to wait %s)", e.RetryAfter.Round(time.Second))
	}
	if advice != "" {
		fmt.Fprintf(&b, "; %s", advice)
	}
	return b.String()
}

// doing says for people what failed.
func (e *Error) doing() string {
	if e.Op == "head" {
		return "could not ask about"
	}
	return "could not fetch"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ContentFault reports whether the deposit is at fault, so that only its producer can help. All
// other faults are the system's and may pass (I8).
func (e *Error) ContentFault() bool {
	switch e.Kind {
	case FaultURL, FaultScheme, FaultForbidden, FaultMissing:
		return true
	default:
		return false
	}
}

// Remedy returns what to do about the error, or "" if only waiting helps.
func (e *Error) Remedy() string {
	if e.Kind == FaultCredential {
		return "ask an admin to correct the collection's credential (holdfast collection credential set), or the key that encrypts it"
	}
	_, advice := e.Kind.describe()
	return advice
}

// ErrorCode returns the error in one word, such as http-503. Failures are grouped by it.
func (e *Error) ErrorCode() string {
	switch {
	case e.Status != 0:
		return fmt.Sprintf("http-%d", e.Status)
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return "connection-refused"
	}
	return string(e.Kind)
}

// ErrorHost returns the host that was asked, or "" for an upload or an invalid address.
func (e *Error) ErrorHost() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// AsksToWait returns how long the source asks to wait, or 0. The worker then waits that long.
func (e *Error) AsksToWait() time.Duration { return e.RetryAfter }

// describe returns what happened and what to do about it.
func (f Fault) describe() (what, advice string) {
	switch f {
	case FaultURL:
		return "this is not a usable address", "correct it"
	case FaultScheme:
		return "addresses of this kind are not supported", "give another address of the file, or upload it"
	case FaultForbidden:
		return "the address is not allowed", "use a public address; an operator can allow this one with HOLDFAST_NET_ALLOW"
	case FaultMissing:
		return "the file is missing", "put the file there, or correct the address"
	case FaultDenied:
		return "access was denied", "grant access to it, renew the signed address, or ask an admin to set the collection's credential for it (holdfast collection credential set)"
	case FaultCredential:
		return "the collection's credential cannot be used", ""
	case FaultBusy:
		return "the server asked to wait", ""
	case FaultStatus:
		return "the server answered in an unexpected way", ""
	case FaultDNS:
		return "the host's name could not be resolved", "check the name, and this machine's resolver"
	case FaultTLS:
		return "the connection is not trustworthy", "check the server's certificate"
	case FaultTimeout:
		return "the server did not answer", "check that the server is up and can be reached from here"
	case FaultStalled:
		return "the data stopped coming", ""
	case FaultConnection:
		return "the connection failed", "check that the server is up and can be reached from here"
	case FaultShort:
		return "the data ended too early", ""
	case FaultRedirect:
		return "the redirect was not followed", "correct the server's redirects; for a bucket, correct the region or endpoint of its credential"
	case FaultEncoding:
		return "the server sends the file compressed against our request", "make the server send the file unchanged"
	case FaultProtocol:
		return "the server's answer contradicts itself", ""
	case FaultUpload:
		return "the upload could not be read", ""
	case FaultCancelled:
		return "cancelled", ""
	default:
		return string(f), ""
	}
}
