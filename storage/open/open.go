// Package open opens a storage.Store by its address.
package open

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/storage/s3"
)

// Store is a store that must be closed.
type Store interface {
	storage.Store
	io.Closer
	fmt.Stringer // its address, without secrets

	// Ready checks whether the store can be used now. Remarks are warnings for operators about a
	// store that works, such as conditional writes that an S3 service ignores.
	Ready(ctx context.Context) (remarks []string, err error)
}

var (
	_ Store = (*dir.Store)(nil)
	_ Store = (*s3.Store)(nil)
)

// ErrAddress names the valid addresses. It does not quote the address, which may contain a
// password.
var ErrAddress = errors.New("storage address: want file:///DIRECTORY or s3://BUCKET/PREFIX")

// URL opens the store at an address: `file:///DIRECTORY` of an existing directory, by dir.Open, or
// `s3://BUCKET/PREFIX?endpoint=URL&region=NAME&path_style=BOOL&class=NAME`, by s3.Open. It returns
// a *dir.Store or *s3.Store itself, so that storage.Copy between two of them can avoid passing
// bytes through this process.
func URL(ctx context.Context, address string) (Store, error) {
	switch scheme, _, _ := strings.Cut(address, ":"); scheme {
	case "file":
		u, err := url.Parse(address)
		if err != nil || u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !strings.HasPrefix(u.Path, "/") {
			return nil, ErrAddress
		}
		return dir.Open(u.Path)
	case "s3":
		return s3.Open(ctx, address)
	}
	return nil, ErrAddress
}

// AsFound opens a store to inspect its contents as other programs see them, including the folders
// that a driver reserves for itself. Use it only for reading.
func AsFound(ctx context.Context, address string) (Store, error) {
	if strings.HasPrefix(address, "s3:") {
		return s3.OpenAsFound(ctx, address)
	}
	return URL(ctx, address)
}
