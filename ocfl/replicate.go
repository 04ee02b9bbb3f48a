package ocfl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// Replicate copies the object id from another root, up to version head. It returns when all these
// versions are committed here with the same inventories, byte for byte, and all copied files were
// read back and compared with their digests. Versions that are already here are not read again. It
// may be called again by any process, after a failure at any point and after success. It writes in
// the order of [Root.Commit]. The replica shares no bytes with the original, even where stores copy
// internally.
//
// opts returns the options for copying a version, given its number and the digest of its inventory;
// it may be nil. Errors are those of Commit, ErrNotFound if from lacks the version, and a
// *DigestError or *InventoryError if from is damaged.
func (r *Root) Replicate(ctx context.Context, from *Root, id string, head int, opts func(version int, digest string) (CommitOptions, error)) error {
	for n := 1; n <= head; n++ {
		if err := r.replicate(ctx, from, id, n, opts); err != nil {
			return fmt.Errorf("replicate version %d of %q: %w", n, id, err)
		}
	}
	return nil
}

// replicate copies one version. The version before it is here.
func (r *Root) replicate(ctx context.Context, from *Root, id string, n int, opts func(int, string) (CommitOptions, error)) error {
	object, err := from.Head(ctx, id)
	if err != nil {
		return err
	}
	folder := object.Key + "/" + versionName(n, object.padding)
	digest, algorithm, err := from.sealOf(ctx, folder)
	if err != nil {
		return err
	}
	base, err := r.ObjectKey(id)
	if err != nil {
		return err
	}
	c := &committer{root: r, apart: true}
	c.version = published{
		root: r, base: base, version: versionName(n, object.padding), next: versionName(n+1, object.padding),
		algorithm: algorithm, digest: digest,
	}
	c.source = func(f ContentFile) (storage.Store, string, error) {
		return from.store, object.Key + "/" + f.Path, ctx.Err()
	}
	done, err := c.version.exists(ctx)
	if err != nil {
		return err
	}
	if !done {
		space := r.Spill()
		defer space.Close() //nolint:errcheck // only read from
		if c.addition, err = ReadAddition(ctx, from.store, folder+"/"+inventoryName, n, algorithm, digest, space); err != nil {
			return err
		}
		if c.addition.object.ID != id {
			return fmt.Errorf("%w: %q is of %q", ErrIDTaken, folder, c.addition.object.ID)
		}
		if opts != nil {
			if c.opts, err = opts(n, digest); err != nil {
				return err
			}
		}
		return c.write(ctx)
	}
	_, err = c.version.finish(ctx)
	return err
}

// sealOf returns the digest of a version's inventory according to its sidecar, and the algorithm.
func (r *Root) sealOf(ctx context.Context, folder string) (digest, algorithm string, err error) {
	for _, algorithm := range []string{SHA512, SHA256} {
		key := folder + "/" + inventoryName + "." + algorithm
		text, err := storage.ReadAll(ctx, r.store, key, maxSmall)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		} else if err != nil {
			return "", "", err
		}
		digest, ok := parseSidecar(string(text))
		if !ok {
			return "", "", fmt.Errorf("sidecar %q is damaged", key)
		}
		return strings.ToLower(digest), algorithm, nil
	}
	return "", "", fmt.Errorf("%w: %q has no inventory of its own with a sidecar", ErrNotFound, folder)
}
