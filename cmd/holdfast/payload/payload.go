// Package payload examines what a user submits: an address, a file, or a folder, which is sent as a
// tar file made while it is sent.
//
// The same folder gives the same tar file, byte for byte, wherever it lies and whoever owns it.
// Opening a payload sends nothing and reads no content.
//
// The package knows neither the service nor the rules for content: packages deposit and check do.
package payload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
)

// Payload is one thing to submit: a URL, or bytes to send.
type Payload struct {
	Name   string               // for people, and the upload's file name
	Type   registry.PayloadType // as given, or found from a folder's content
	URL    string               // the address that the service fetches; "" if bytes are sent
	Folder bool
	Size   int64 // bytes to send
	// Modified is when a file was last changed; nil for folders and addresses.
	Modified *time.Time
	// Fingerprint distinguishes the payload from others of its name and size, as far as possible
	// without reading it.
	Fingerprint string
	Open        func(ctx context.Context, offset int64) (io.ReadCloser, error)
	// Release closes what the payload has open. It is never nil.
	Release func() error
}

func nothing() error { return nil }

// Of opens an address, a file or a folder as a payload. It sends nothing. Call Release when done.
func Of(arg string, typ registry.PayloadType) (*Payload, error) {
	if isAddress(arg) {
		return &Payload{Name: Shown(arg), Type: typ, URL: arg, Release: nothing}, nil
	}
	info, err := os.Stat(arg)
	if err != nil {
		return nil, fmt.Errorf("submit %s: %w", arg, exit.Cause(err))
	}
	switch {
	case info.IsDir():
		return folderPayload(arg, typ)
	case info.Mode().IsRegular():
		return filePayload(arg, typ, info)
	}
	return nil, exit.Fix(fmt.Errorf("submit %s: %w", arg, ErrNotAFile), "copy its content into a file and submit that")
}

// Shown returns a payload's name for messages: as it was given, without the password of an address.
func Shown(arg string) string {
	if u, err := url.Parse(arg); isAddress(arg) && (err != nil || u.User != nil) {
		return source.Redact(arg)
	}
	return arg
}

// isAddress reports whether arg is an address and not a path. The service decides whether it can be
// fetched.
func isAddress(arg string) bool {
	scheme, _, found := strings.Cut(arg, "://")
	return found && scheme != "" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+.-") == ""
}

func filePayload(path string, typ registry.PayloadType, info fs.FileInfo) (*Payload, error) {
	// Open it now, so that an unreadable file is refused before anything is sent.
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("submit %s: %w", path, exit.Cause(err))
	}
	print, err := fingerprint(path, func(add func(string, int64, time.Time)) { add("", info.Size(), info.ModTime()) })
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	modified := info.ModTime()
	return &Payload{
		Name: filepath.Base(path), Type: typ, Size: info.Size(), Modified: &modified, Fingerprint: print, Release: file.Close,
		Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(file, offset, math.MaxInt64-offset)), nil
		},
	}, nil
}

// fingerprint returns a digest of a payload's place, and of the names, sizes and times in it.
func fingerprint(path string, each func(add func(name string, size int64, modified time.Time))) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("submit %s: %w", path, err)
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read this machine's name: %w", err)
	}
	h := sha256.New()
	h.Write(fmt.Appendf(nil, "%q %q\n", host, full))
	each(func(name string, size int64, modified time.Time) {
		h.Write(fmt.Appendf(nil, "%q %d %d\n", name, size, modified.UnixNano()))
	})
	return hex.EncodeToString(h.Sum(nil)), nil
}

func folderPayload(path string, typ registry.PayloadType) (*Payload, error) {
	if err := CheckFolderType(typ); err != nil {
		return nil, fmt.Errorf("submit %s: %w", path, err)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("submit %s: %w", path, err)
	}
	folder, err := OpenFolder(path)
	if err != nil {
		return nil, fmt.Errorf("submit %w", err)
	}
	if typ == registry.AutoType {
		typ = registry.ContainerType
		if folder.bag() {
			typ = registry.BagType
		}
	}
	name := filepath.Base(full)
	if name == string(filepath.Separator) {
		name = "root"
	}
	print, err := fingerprint(path, func(add func(string, int64, time.Time)) {
		for _, e := range folder.entries {
			add(e.name, e.size, e.modified)
		}
	})
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return &Payload{
		Name: name + ".tar", Type: typ, Folder: true, Size: folder.size, Fingerprint: print, Release: folder.Close,
		Open: func(ctx context.Context, offset int64) (io.ReadCloser, error) { return folder.readerAt(ctx, offset) },
	}, nil
}

// ParseDigest parses ALG:HEX. It returns nil for "".
func ParseDigest(text string) (*registry.Digest, error) {
	if text == "" {
		return nil, nil
	}
	algorithm, value, found := strings.Cut(text, ":")
	algorithm = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(algorithm)), "-", "")
	value = strings.ToLower(strings.TrimSpace(value))
	if !found || algorithm == "" || value == "" || strings.Trim(value, "0123456789abcdef") != "" {
		return nil, exit.Usagef("--digest %q: it must be ALG:HEX, such as md5:0cc175b9c0f1b6a831c399e269772661", text)
	}
	return &registry.Digest{Algorithm: algorithm, Value: value}, nil
}

// ParseType parses a payload type.
func ParseType(text string) (registry.PayloadType, error) {
	t, err := intake.ParseType(text)
	if err != nil {
		return t, exit.Usagef("--type %s: %w", text, err)
	}
	return t, nil
}

// CheckFolderType returns an error for types that a folder cannot have.
func CheckFolderType(t registry.PayloadType) error {
	if slices.Contains([]registry.PayloadType{registry.AutoType, registry.ContainerType, registry.BagType}, t) {
		return nil
	}
	return exit.Fix(exit.Usagef("a folder cannot be of type %s", t), "use --type container or bag, or name the file itself")
}
