// Package source fetches what depositors name: files on web servers and uploads.
//
// Bytes come as they lie at the source, never compressed on the way. Resuming inside a file never
// mixes two states of it (R5). No request reaches an address inside the operator's network unless
// it was allowed. A secret in an address reaches only its own server. Every error tells a content
// fault from a system fault.
//
// The package never retries: its caller decides, by Error.ContentFault and Error.RetryAfter.
package source

import (
	"context"
	"io"
	"time"
)

// Fetcher reads from one kind of source. All methods may be called concurrently. Every error is an
// *Error; one that came of the end of ctx is ctx's error, too.
type Fetcher interface {
	// Head describes what is at rawURL without fetching it.
	Head(ctx context.Context, rawURL string) (Info, error)

	// Open reads what is at rawURL, from a point within it where that is safe, otherwise from the
	// beginning: Body.Offset says which. ctx bounds the reading of the body, too.
	Open(ctx context.Context, rawURL string, from Point) (*Body, error)
}

// Info is what a source says about a file. It is a promise, to be checked against the bytes.
type Info struct {
	// URL is the address that answered in the end, without its secrets, fit for a log.
	URL string
	// Size is the file's size in bytes, -1 when the source does not tell.
	Size int64
	// Validator changes whenever the bytes do: a strong ETag as it was sent, quotes included; ""
	// when there is none.
	Validator string
	// Modified is the time of the last change, or the zero time.
	Modified time.Time
	// Ranges says that the source claims to read from the middle.
	Ranges bool
	// ContentType is the media type as the source states it, or "".
	ContentType string
	// Filename is the name that the source gives the file, else the last part of the address, or
	// "". It has no folders.
	Filename string
}

// Point is where to go on in a file, with what is known about the bytes before. The zero Point is
// the beginning.
//
// Safety rule R5: the bytes after Offset are taken only from a source that shows the same strong
// Validator; or, when there is none, only when Digest is set and the answer agrees in start, size
// and time. In all other cases reading begins at 0.
type Point struct {
	// Offset is the number of bytes that the caller has.
	Offset int64
	// Validator is the Info.Validator of the answer that they came from.
	Validator string
	// Size and Modified are that Info's, too. They count only when Validator is "".
	Size     int64
	Modified time.Time
	// Digest says that the depositor gave a digest, which would show a mixture of two states of the
	// file.
	Digest bool
}

// Body is a file on its way. It belongs to one goroutine, but Close may be called from another to
// end a Read. It must be closed; closing it twice does nothing. Reading ends with io.EOF only after
// as many bytes as were promised.
type Body struct {
	io.ReadCloser
	// Info describes the whole file.
	Info Info
	// Offset is where the first byte to be read lies: Point.Offset, or 0 when the source could not
	// resume or has changed, and what was fetched before must be thrown away.
	Offset int64
}
