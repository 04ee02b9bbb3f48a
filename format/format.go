// Package format identifies files: the media type by the first bytes, which costs nothing, and the
// entry in PRONOM by an [Identifier], a service beside Holdfast.
//
// A file's media type depends only on its bytes, its name and this program, so a repeat gives the
// same. An Identifier never blames a depositor: "unknown" is an answer.
package format

import (
	"context"
	"errors"
	"io"
)

// Format is a file's entry in PRONOM, the registry of file formats of The National Archives.
type Format struct {
	PUID    string `json:"puid"`              // PRONOM's identifier, such as fmt/412
	Name    string `json:"name"`              // the format's
	Version string `json:"version,omitempty"` // of the format, such as 1.4
	// Registry is the version of the registry that it was found in: the names of its signature
	// files.
	Registry string `json:"registry_version"`
	// Warning is why the answer should not be relied on, such as that the file's name alone speaks
	// for it.
	Warning string `json:"warning,omitempty"`
}

// File is a file to be identified.
type File struct {
	Name string // the depositor's; its extension may count
	Size int64  // in bytes
	// Read calls fn with the file's content and returns fn's error. When the content cannot be
	// read, or is not what it should be, it returns an error of its own, and what fn made of it
	// does not count. It may be called again.
	Read func(ctx context.Context, fn func(content io.Reader) error) error
}

// Answer is what an Identifier says of a file.
type Answer struct {
	Format *Format // nil: it knows none that fits
	Agent  string  // the identifier's name and version
}

// ErrTooLarge says that a file is larger than an Identifier takes.
var ErrTooLarge = errors.New("file is larger than the identifier takes")

// Identifier finds files in PRONOM. It may be used concurrently.
type Identifier interface {
	// Identify reads a file and says what it is; ErrTooLarge without reading any of it. All other
	// errors are the system's, and pass: the service is down, too slow, or does not speak as it
	// should, or the file could not be read.
	Identify(ctx context.Context, f File) (Answer, error)
}
