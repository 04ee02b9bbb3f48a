// Package format identifies files: the media type by the first bytes, which costs nothing, and the
// entry in PRONOM by an [Identifier], a service beside Holdfast.
//
// A file's media type depends only on its bytes, its name and this program, so a repeat gives the
// same. An Identifier never blames a depositor: "unknown" is a valid answer. The package does not
// judge whether a format is acceptable.
package format

import (
	"context"
	"errors"
	"io"
)

// Format is a file's entry in PRONOM, the registry of file formats of The National Archives.
type Format struct {
	PUID    string `json:"puid"`              // PRONOM's identifier, such as fmt/412
	Name    string `json:"name"`              // the format's name
	Version string `json:"version,omitempty"` // of the format, such as 1.4
	// Registry is the version of PRONOM used: the names of its signature files.
	Registry string `json:"registry_version"`
	// Warning says why the answer is uncertain, for instance because only the file's name suggests
	// it.
	Warning string `json:"warning,omitempty"`
}

// File is a file to identify.
type File struct {
	Name string // the depositor's name; its extension may count
	Size int64  // in bytes
	// Read calls fn with the file's content and returns fn's error. If the content cannot be read
	// or is wrong, Read returns an error of its own, and fn's conclusions must be discarded. It may
	// be called again.
	Read func(ctx context.Context, fn func(content io.Reader) error) error
}

// Answer is an Identifier's result for a file.
type Answer struct {
	Format *Format // nil: unknown
	Agent  string  // the identifier's name and version
}

// ErrTooLarge says that a file is too large for an Identifier.
var ErrTooLarge = errors.New("file is larger than the identifier takes")

// Identifier finds files' formats in PRONOM. It may be used concurrently.
type Identifier interface {
	// Identify reads a file and returns its format. It returns ErrTooLarge without reading
	// anything. All other errors are temporary system faults: the service is unavailable, too slow
	// or gives wrong answers, or the file cannot be read.
	Identify(ctx context.Context, f File) (Answer, error)
}
