package staging

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Wanted describes a file to fetch, as the depositor stated it.
type Wanted struct {
	URL        string
	SizeBytes  int64            // -1: not stated
	Digest     *registry.Digest // nil: not stated
	Received   *registry.Digest // what the file had when it came into our hands; nil: it is not yet there
	Name       string           // the depositor's file name; its extension may identify the format; "": not stated
	MIMEType   string           // "": not stated; used only if the content is not conclusive
	Modified   time.Time        // time of the last change; zero: not stated, use the source's
	Algorithms []string         // further digests to compute
}

// checkSize compares a size with the depositor's. A negative size is unknown.
func (w Wanted) checkSize(address string, size int64) error {
	if w.SizeBytes < 0 || size < 0 || size == w.SizeBytes {
		return nil
	}
	return &MismatchError{URL: address, What: "size", Expected: inBytes(w.SizeBytes), Found: inBytes(size)}
}

// check compares the fetched file with the depositor's statement. If the file has changed since it
// came into our hands, the error wraps ErrDamaged: the depositor is not to blame.
func (w Wanted) check(f File) error {
	if d := w.Received; d != nil && f.Digests[d.Algorithm] != d.Value {
		return fmt.Errorf("%s: %w: its %s was %s when it arrived and is %s now", f.Source, ErrDamaged, d.Algorithm, d.Value, f.Digests[d.Algorithm])
	}
	if err := w.checkSize(f.Source, f.SizeBytes); err != nil {
		return err
	}
	if w.Digest == nil || strings.EqualFold(f.Digests[w.Digest.Algorithm], w.Digest.Value) {
		return nil
	}
	return &MismatchError{
		URL: f.Source, What: w.Digest.Algorithm, Expected: w.Digest.Value, Found: f.Digests[w.Digest.Algorithm],
	}
}

func inBytes(n int64) string { return fmt.Sprintf("%d bytes", n) }

// MismatchError says that a file differs from the depositor's statement. It is a content fault.
type MismatchError struct {
	URL      string // redacted
	What     string // "size" or the digest's algorithm
	Expected string
	Found    string
	cut      bool // the file was longer, and the rest was not read
}

// ContentFault blames the deposit.
func (e *MismatchError) ContentFault() bool { return true }

// ErrorCode returns the code by which failures are grouped.
func (e *MismatchError) ErrorCode() string {
	if e.What == "size" {
		return "size-mismatch"
	}
	return "digest-mismatch"
}

// ErrorHost returns the host that the file came from; "" for an upload.
func (e *MismatchError) ErrorHost() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Error names both values and what to do.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s has %s %s, but the submission says %s; correct the manifest or the file",
		e.URL, e.What, e.Found, e.Expected)
}

// same reports whether two fetches gave the same wrong bytes. It ignores the URL: redirects may
// differ.
func (e *MismatchError) same(o *MismatchError) bool { return e.What == o.What && e.Found == o.Found }

// isTooLong reports whether a file was longer than stated, so that the rest was not read.
func isTooLong(err error) bool {
	wrong, ok := errors.AsType[*MismatchError](err)
	return ok && wrong.cut
}

// UnboundedError says that a file of unknown size has more bytes than such a file may have. It is a
// content fault.
type UnboundedError struct {
	URL  string // redacted
	Most int64  // bytes
}

// ContentFault blames the deposit.
func (e *UnboundedError) ContentFault() bool { return true }

// ErrorCode returns the code by which failures are grouped.
func (e *UnboundedError) ErrorCode() string { return "size-unbounded" }

// Error names the limit and what to do.
func (e *UnboundedError) Error() string {
	return fmt.Sprintf("%s does not state its size and sent more than %d bytes; state the file's size in a manifest, make the server send it, "+
		"or ask an operator to raise HOLDFAST_UNKNOWN_SIZE_BYTES", e.URL, e.Most)
}

// UnsupportedDigest says that digests of this algorithm are not supported. It is a content fault.
type UnsupportedDigest struct {
	Algorithm string
	Err       error
}

// ContentFault blames the deposit.
func (e *UnsupportedDigest) ContentFault() bool { return true }

// ErrorCode returns the code by which failures are grouped.
func (e *UnsupportedDigest) ErrorCode() string { return "digest-unsupported" }

// Error names the algorithm and what to use instead.
func (e *UnsupportedDigest) Error() string {
	return fmt.Sprintf("digest %s cannot be checked: %v; give sha256 or sha512", e.Algorithm, e.Err)
}

// Unwrap returns the cause.
func (e *UnsupportedDigest) Unwrap() error { return e.Err }
