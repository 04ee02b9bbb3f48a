package staging

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Wanted is a file to be fetched, and what the depositor said of it.
type Wanted struct {
	URL        string
	SizeBytes  int64            // -1: not said
	Digest     *registry.Digest // nil: not said
	Name       string           // the depositor's, whose extension may tell formats apart; "": not said
	MIMEType   string           // "": not said; it counts only where the content says nothing
	Modified   time.Time        // when it was last changed; zero: not said, and the source is believed
	Algorithms []string         // digests to take besides
}

// checkSize compares a size with the depositor's; both are negative when they are not known.
func (w Wanted) checkSize(address string, size int64) error {
	if w.SizeBytes < 0 || size < 0 || size == w.SizeBytes {
		return nil
	}
	return &MismatchError{URL: address, What: "size", Expected: inBytes(w.SizeBytes), Found: inBytes(size)}
}

// check compares what came with what the depositor said.
func (w Wanted) check(f File) error {
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

// MismatchError says that a file is not what the depositor said it is. It is a content fault.
type MismatchError struct {
	URL      string // redacted
	What     string // "size" or the digest's algorithm
	Expected string
	Found    string
	cut      bool // there was more, which was not read
}

// ContentFault marks the deposit as at fault.
func (e *MismatchError) ContentFault() bool { return true }

// ErrorCode says in one word what differs, which failures are grouped by.
func (e *MismatchError) ErrorCode() string {
	if e.What == "size" {
		return "size-mismatch"
	}
	return "digest-mismatch"
}

// ErrorHost is the host that the file came from, "" for an upload.
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

// same says whether two fetches gave the same wrong bytes. A redirect may lead elsewhere each time.
func (e *MismatchError) same(o *MismatchError) bool { return e.What == o.What && e.Found == o.Found }

// endless says whether a file went on after the size that the depositor gave, so that the rest of
// it was not read.
func endless(err error) bool {
	wrong, ok := errors.AsType[*MismatchError](err)
	return ok && wrong.cut
}

// UnboundedError says that a file whose size nobody tells has more bytes than such a file may have.
// It is a content fault.
type UnboundedError struct {
	URL  string // redacted
	Most int64  // bytes
}

// ContentFault marks the deposit as at fault.
func (e *UnboundedError) ContentFault() bool { return true }

// ErrorCode says so in one word, which failures are grouped by.
func (e *UnboundedError) ErrorCode() string { return "size-unbounded" }

// Error names the limit and what to do.
func (e *UnboundedError) Error() string {
	return fmt.Sprintf("%s does not tell its size and sent more than %d bytes; give the file's size in a manifest, have the server tell it, "+
		"or have an operator raise HOLDFAST_UNKNOWN_SIZE_BYTES", e.URL, e.Most)
}

// UnsupportedDigest says that a digest of this algorithm cannot be checked here. It is a content
// fault.
type UnsupportedDigest struct {
	Algorithm string
	Err       error
}

// ContentFault marks the deposit as at fault.
func (e *UnsupportedDigest) ContentFault() bool { return true }

// ErrorCode says so in one word, which failures are grouped by.
func (e *UnsupportedDigest) ErrorCode() string { return "digest-unsupported" }

// Error names the algorithm and what to use instead.
func (e *UnsupportedDigest) Error() string {
	return fmt.Sprintf("digest %s cannot be checked: %v; give sha256 or sha512", e.Algorithm, e.Err)
}

// Unwrap returns the cause.
func (e *UnsupportedDigest) Unwrap() error { return e.Err }
