package workers

import (
	"context"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers/identity"
)

// lockWithFolders takes the locks of an object, and of its folders in the storages where another object could
// get them. It returns the object and its newest version. Its errors are those of registry.Locking.
func lockWithFolders(ctx context.Context, r interface {
	registry.Locking
	registry.Inventory
}, item *base.Item, id string, in ocfl.Roots,
) (head int, o registry.Object, err error) {
	if head, err = r.LockObject(ctx, item.Lease(), id); err != nil {
		return 0, o, err
	}
	if o, err = r.Object(ctx, id); err != nil {
		return 0, o, err
	}
	if folders := identity.Folders(in, in.Names(), o.Stored()); len(folders) > 0 {
		head, err = r.LockObject(ctx, item.Lease(), id, folders...)
	}
	return head, o, err
}
