package node

import (
	"context"
	"errors"
	"net/url"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/open"
)

// openStorage opens the store that an address names, until the node is closed, and asks whether it can be worked with.
func (n *Node) openStorage(ctx context.Context, address string) (storage.Store, error) {
	s, err := open.URL(ctx, address)
	if err != nil {
		return nil, err
	}
	remarks, err := s.Ready(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, remark := range remarks {
		n.Log.WarnContext(ctx, "storage promises less than it should", "remark", remark)
	}
	n.onClose(s.Close)
	return s, nil
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

// buckets are those among addresses.
func buckets(addresses ...string) (names []string) {
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil && u.Scheme == source.S3Scheme {
			names = append(names, u.Host)
		}
	}
	return names
}

// Places says where bytes are kept. Both must be set.
type Places struct {
	Staging, Storage string // as open.URL takes them
}

// needs are the stores; they are put where they are wanted once they are open.
func (p Places) needs(n *Node, staging *storage.Store, objects **ocfl.Root) []need {
	const fix = "it must be a folder, or a bucket, that is there and that this process may write to"
	return []need{
		{"HOLDFAST_STAGING_URL", p.Staging, "staging at " + storageName(p.Staging), fix, func(ctx context.Context) (err error) {
			s, err := n.openStorage(ctx, p.Staging)
			if err != nil {
				return err
			}
			*staging = faulty(s)
			return nil
		}},
		{"HOLDFAST_STORAGE_URL", p.Storage, "preservation storage at " + storageName(p.Storage), fix, func(ctx context.Context) (err error) {
			*objects, err = n.openRoot(ctx, p.Storage)
			return err
		}},
	}
}
