package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/storage/open"
)

// openStorage opens the store at an address until the node is closed, and checks that it is ready.
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
		n.Log.WarnContext(ctx, "the storage lacks a guarantee that Holdfast relies on", "remark", remark)
	}
	n.onClose(s.Close)
	return s, nil
}

// reserve makes staging leave bytes of its volume free, for the database and logs that often share
// it. A negative number stands for a fiftieth of the volume, at least 1 GiB and at most a tenth.
// Buckets have no volume.
func reserve(staging storage.Store, bytes int64) {
	s, ok := staging.(*dir.Store)
	if !ok {
		return
	}
	s.KeepTo(dir.Room{Measured: measured, Reserve: func(total int64) int64 {
		if bytes >= 0 {
			return bytes
		}
		const least = 1 << 30
		return min(max(total/50, least), total/10)
	}})
}

// measured changes the reported room of staging's volume. Tests set it before they start a process.
var measured func(storage.Space) storage.Space

// StorageName returns the name of a storage address in inventories: without options and
// credentials.
func StorageName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.RawQuery, u.User = "", nil
	return u.String()
}

// buckets returns the buckets among the places.
func (p Places) buckets() (names []string) {
	addresses := []string{p.Staging}
	for _, s := range p.Storages {
		addresses = append(addresses, s.Address)
	}
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil && u.Scheme == source.S3Scheme {
			names = append(names, u.Host)
		}
	}
	return names
}

// Places has the addresses of staging and storage. Both must be set.
type Places struct {
	Staging  string // as open.URL takes it
	Storages []Storage
}

// Storage is a preservation storage.
type Storage struct {
	Name    string // one must be registry.DefaultStorage
	Address string // as open.URL takes it
}

var errNoDefault = fmt.Errorf("no storage is called %q or has no name", registry.DefaultStorage)

// what returns the storage's name for people.
func (s Storage) what() string {
	return fmt.Sprintf("preservation storage %q at %s", s.Name, StorageName(s.Address))
}

// settingStorage is the variable with the storage addresses.
const settingStorage = "HOLDFAST_STORAGE_URL"

const fixStore = "it must be an existing folder or bucket that this process may write to"

// needs returns the needs of staging and storages. They store the opened stores in staging and
// objects, whose roots must then be completed.
func (p Places) needs(n *Node, staging *storage.Store, reserved int64, objects *foundRoots) []need {
	needs := append(objects.find(n, p.Storages), need{
		"HOLDFAST_STAGING_URL", p.Staging, "staging at " + StorageName(p.Staging), fixStore, func(ctx context.Context) (err error) {
			s, err := n.openStorage(ctx, p.Staging)
			if err != nil {
				return err
			}
			tightenStaging(ctx, n.Log, p.Staging)
			reserve(s, reserved)
			*staging = faulty(s)
			return nil
		},
	})
	if len(p.Storages) > 0 && !slices.ContainsFunc(p.Storages, func(s Storage) bool { return s.Name == registry.DefaultStorage }) {
		needs = append(needs, need{
			settingStorage, "without a default", "the storage of collections that name none",
			"call one of them " + registry.DefaultStorage, func(context.Context) error { return errNoDefault },
		})
	}
	return needs
}

// OpenStore opens the store at a staging or storage address, without looking at what is in it. The
// caller closes it.
func OpenStore(ctx context.Context, address string) (open.Store, error) {
	address, _, err := splitLayout(address)
	if err != nil {
		return nil, err
	}
	return open.URL(ctx, address)
}
