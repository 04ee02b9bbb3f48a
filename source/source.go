// Package source fetches the files that depositors name, from web servers and from uploads.
//
// It makes these promises:
//   - Bytes come as they are at the source, never compressed for transport.
//   - Resuming never mixes two states of a file (R5).
//   - No request reaches an address inside the operator's network unless it was allowed.
//   - Secrets in an address go only to the server that the address names.
//   - Every error is either a content fault or a system fault.
//
// The package never retries. Its caller decides by Error.ContentFault and Error.RetryAfter.
package source

import (
	"context"
	"io"
	"time"
)

// Fetcher reads from one kind of source. All methods may be called concurrently. Every error is an
// *Error. If ctx ended, the error wraps ctx's error.
type Fetcher interface {
	// Head describes the file at rawURL without fetching it.
	Head(ctx context.Context, rawURL string) (Info, error)

	// Open reads the file at rawURL, from the given point if that is safe, otherwise from the
	// beginning. Body.Offset says which. ctx also bounds the reading of the body.
	Open(ctx context.Context, rawURL string, from Point) (*Body, error)
}

// Info is what a source says about a file. Check it against the bytes.
type Info struct {
	// URL is the address that finally answered, without secrets.
	URL string
	// Size is the file's size in bytes, or -1 if unknown.
	Size int64
	// Validator changes whenever the bytes change: a strong ETag as it was sent, with its quotes,
	// or "".
	Validator string
	// Modified is the time of the last change, or the zero time.
	Modified time.Time
	// Ranges says that the source claims to support reading from an offset.
	Ranges bool
	// ContentType is the media type as the source states it, or "".
	ContentType string
	// Filename is the source's name for the file, else the last part of the address, or "". It
	// contains no folders.
	Filename string
}

// Point is a position in a file from which to resume, with what is known about the bytes before it.
// The zero Point is the beginning.
//
// Safety rule R5: bytes after Offset are accepted only if the source shows the same strong
// Validator. Without a Validator they are accepted only if Digest is set and the answer matches in
// start, size and time. Otherwise reading begins at 0.
type Point struct {
	// Offset is the number of bytes that the caller already has.
	Offset int64
	// Validator is the Info.Validator that came with these bytes.
	Validator string
	// Size and Modified are from the same Info. They count only if Validator is "".
	Size     int64
	Modified time.Time
	// Digest says that the depositor gave a digest, which would reveal a mixture of two states.
	Digest bool
}

// Body is a file being fetched. One goroutine reads it; another may call Close to end a Read. It
// must be closed; a second Close does nothing. Reading ends with io.EOF only after all promised
// bytes.
type Body struct {
	io.ReadCloser
	// Info describes the whole file.
	Info Info
	// Offset is the position of the first byte: Point.Offset, or 0 if the source cannot resume or
	// the file has changed. The caller must then discard the bytes it has.
	Offset int64
}
