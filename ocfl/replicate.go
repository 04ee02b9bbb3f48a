package ocfl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// Replicate brings the object id of this root up to version head as from has it. It returns when
// every version up to that is committed here with from's inventories, byte for byte, and what was
// missing has been copied, read back and compared with its digests. Versions that are here already
// are not read again. It may be called again, by whomever, at any point where an earlier call was
// cut off, and after it succeeded; the order of writing is that of [Root.Commit]. The replica
// shares no bytes with what it was copied from, though stores copy for themselves where they can.
//
// opts are asked for the options of each version that is to be copied, by its number and the digest
// of its inventory; nil stands for none. The errors are those of Commit, ErrNotFound when from does
// not have the version, and a *DigestError or *InventoryError when from's is damaged.
func (r *Root) Replicate(ctx context.Context, from *Root, id string, head int, opts func(version int, digest string) (CommitOptions, error)) error {
	for n := 1; n <= head; n++ {
		if err := r.replicate(ctx, from, id, n, opts); err != nil {
			return fmt.Errorf("replicate version %d of %q: %w", n, id, err)
		}
	}
	return nil
}

// replicate brings one version over, whose predecessor is here.
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
	c := &committer{root: r, copy: storage.CopyApart}
	c.version = published{
		root: r, base: base, version: versionName(n, object.padding), next: versionName(n+1, object.padding),
		algorithm: algorithm, digest: digest,
	}
	c.source = func(f ContentFile) (storage.Store, string, error) {
		return from.store, object.Key + "/" + f.Path, ctx.Err()
	}
	c.encode = func(ctx context.Context, w io.Writer) error {
		return from.copyInventory(ctx, folder+"/"+inventoryName, c.version, w)
	}
	done, err := c.version.exists(ctx)
	if err != nil {
		return err
	}
	if !done {
		if c.inv, err = from.loadInventory(ctx, folder); err != nil {
			return err
		}
		if c.inv.ID != id || c.inv.Head() != n {
			return fmt.Errorf("%w: %q is version %d of %q", ErrIDTaken, folder, c.inv.Head(), c.inv.ID)
		}
		if opts != nil {
			if c.opts, err = opts(n, digest); err != nil {
				return err
			}
		}
		if err := c.write(ctx); err != nil {
			return err
		}
	}
	_, err = c.version.finish(ctx)
	return err
}

// sealOf returns the digest that the sidecar in a version's folder promises of its inventory, and
// its algorithm.
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

// copyInventory writes the inventory at key, and says when its bytes are not the version's.
func (r *Root) copyInventory(ctx context.Context, key string, want published, w io.Writer) error {
	h := newHash(want.algorithm)
	if _, err := hashObject(ctx, r.store, key, io.MultiWriter(w, h), make([]byte, 64<<10)); err != nil {
		return err
	}
	if got := hexSum(h); got != want.digest {
		return &DigestError{Key: key, Algorithm: want.algorithm, Want: want.digest, Got: got}
	}
	return nil
}
