package staging

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// MismatchError says that a file is not what the depositor said it is. It is a content fault.
type MismatchError struct {
	URL      string // redacted
	What     string // "size" or the digest's algorithm
	Expected string
	Found    string
}

// ContentFault marks the deposit as at fault.
func (e *MismatchError) ContentFault() bool { return true }

// Error names both values and what to do.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s has %s %s, but the submission says %s; correct the manifest or the file and submit again",
		e.URL, e.What, e.Found, e.Expected)
}

// UnsupportedDigest says that a digest of this algorithm cannot be checked here. It is a content fault.
type UnsupportedDigest struct {
	Algorithm string
	Err       error
}

// ContentFault marks the deposit as at fault.
func (e *UnsupportedDigest) ContentFault() bool { return true }

// Error names the algorithm and what to use instead.
func (e *UnsupportedDigest) Error() string {
	return fmt.Sprintf("digest %s cannot be checked: %v; give sha256 or sha512", e.Algorithm, e.Err)
}

// Unwrap returns the cause.
func (e *UnsupportedDigest) Unwrap() error { return e.Err }

// check compares what came with what the depositor said.
func check(w Wanted, f File) error {
	if w.SizeBytes >= 0 && f.SizeBytes != w.SizeBytes {
		return &MismatchError{URL: f.Source, What: "size", Expected: bytes(w.SizeBytes), Found: bytes(f.SizeBytes)}
	}
	if w.Digest != nil && f.Digests[w.Digest.Algorithm] != w.Digest.Value {
		return &MismatchError{
			URL: f.Source, What: w.Digest.Algorithm, Expected: w.Digest.Value, Found: f.Digests[w.Digest.Algorithm],
		}
	}
	return nil
}

func bytes(n int64) string { return fmt.Sprintf("%d bytes", n) }

// Wanted is a file to be fetched, and what the depositor said of it.
type Wanted struct {
	URL        string
	SizeBytes  int64            // -1: not said
	Digest     *registry.Digest // nil: not said
	Algorithms []string         // digests to take besides
}
