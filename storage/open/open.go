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
	fmt.Stringer // where it is, without secrets

	// Ready asks whether the store can be worked with now. Remarks are what an operator should know
	// of a store that works (S3: conditional writes that it does not honour); there are none
	// otherwise.
	Ready(ctx context.Context) (remarks []string, err error)
}

var (
	_ Store = (*dir.Store)(nil)
	_ Store = (*s3.Store)(nil)
)

// errAddress says what addresses there are. The address itself is not quoted: somebody may have put
// a password into it.
var errAddress = errors.New("storage address: want file:///DIRECTORY or s3://BUCKET/PREFIX")

// URL opens the store at address: `file:///DIRECTORY`, which must exist, as dir.Open does, or
// `s3://BUCKET/PREFIX?endpoint=URL&region=NAME&path_style=BOOL&class=NAME` as s3.Open does. The
// store is *dir.Store or *s3.Store itself, so that objects are copied between two of them without
// their bytes passing through.
func URL(ctx context.Context, address string) (Store, error) {
	switch scheme, _, _ := strings.Cut(address, ":"); scheme {
	case "file":
		u, err := url.Parse(address)
		if err != nil || u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !strings.HasPrefix(u.Path, "/") {
			return nil, errAddress
		}
		return dir.Open(u.Path)
	case "s3":
		return s3.Open(ctx, address)
	}
	return nil, errAddress
}

// AsFound opens a store of URL's for whoever judges what lies there, as every other program finds
// it, by names that a driver of ours may have chosen for itself, too. It is for reading only.
func AsFound(ctx context.Context, address string) (Store, error) {
	if strings.HasPrefix(address, "s3:") {
		return s3.OpenAsFound(ctx, address)
	}
	return URL(ctx, address)
}
