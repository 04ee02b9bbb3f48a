package node

import (
	"context"
	"fmt"
	"net/url"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
)

// openStorage opens the store that an address names, until the node is closed.
func (n *Node) openStorage(_ context.Context, address string) (storage.Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("read storage address: %w", err)
	}
	switch u.Scheme {
	case "file":
		s, err := dir.Open(u.Path)
		if err != nil {
			return nil, err
		}
		n.onClose(s.Close)
		return s, nil
	default:
		return nil, fmt.Errorf("this version keeps nothing under %s: addresses, only file:///dir", u.Scheme)
	}
}

// storageName is how inventories name the storage at an address: without its options and credentials.
func storageName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.RawQuery, u.User = "", nil
	return u.String()
}

// Places says where bytes are kept. Both must be set.
type Places struct {
	Staging, Storage string // file:///dir
}

// needs are the stores; they are put where they are wanted once they are open.
func (p Places) needs(n *Node, staging *storage.Store, objects **ocfl.Root) []need {
	const fix = "it must be a folder that is there, mounted and writable by this process"
	return []need{
		{"HOLDFAST_STAGING_URL", p.Staging, "staging at " + storageName(p.Staging), fix, func(ctx context.Context) (err error) {
			s, err := n.openStorage(ctx, p.Staging)
			if err != nil {
				return err
			}
			*staging = faulty(s)
			return nil
		}},
		{"HOLDFAST_STORAGE_URL", p.Storage, "preservation storage at " + storageName(p.Storage), fix, func(ctx context.Context) error {
			s, err := n.openStorage(ctx, p.Storage)
			if err != nil {
				return err
			}
			*objects, err = ocfl.OpenRoot(ctx, s, "", nil)
			return err
		}},
	}
}
