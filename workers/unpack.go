package workers

import (
	"context"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
)

// unpackedFolder is where an attempt stages what comes out of a container.
const unpackedFolder = "unpacked"

// unpack takes a container apart into staged files, each digested as it comes out, and judges it as a bag when it is
// one. It goes on after the file at which an earlier attempt stopped.
func (w *Process) unpack(ctx context.Context, item *base.Item, container staging.File, c contents) (contents, error) {
	c.List = staging.Key(item.Lease(), unpackedFolder+"/list.jsonl")
	u, err := w.unpacking(ctx, item, container, c)
	if err != nil {
		return c, err
	}
	defer u.list.Close() //nolint:errcheck // what counts is committed, or was noted
	if err := u.walk(ctx); err != nil {
		return c, fmt.Errorf("unpack %s: %w", container.Name, err)
	}
	if u.seq == 0 {
		return c, base.Content(fmt.Errorf("%s holds no files", container.Name))
	}
	if err := u.list.Commit(ctx); err != nil {
		return c, err
	}
	c.Digest = u.list.Digest()
	if t := item.Spec().Type; t == registry.BagType || t == registry.AutoType && u.top.Bag() {
		return w.bag(ctx, item, u.room, container, c) // whose own manifests say what is in it
	}
	return c, w.corroborate(ctx, item, c)
}

// unpackRoom begins with what Download left reserved, of which the container, and what came out of it before, have taken
// their part.
func (w *Process) unpackRoom(item *base.Item, container staging.File, unpacked int64) (*staging.Room, error) {
	given, err := granted(item)
	if err != nil {
		return nil, err
	}
	size := container.SizeBytes
	return staging.NewRoom(max(given, size+unpacked), size+unpacked, func(ctx context.Context, bytes, staged int64) error {
		return w.volume.reserve(ctx, item, bytes, staged-size, w.volume.full)
	}), nil
}

// counted shows how far a reading comes.
type counted struct {
	r     io.Reader
	count func(n int64)
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.count(int64(n))
	return n, err
}
