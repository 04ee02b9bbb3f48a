package workers

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// unpack takes a container apart into staged files, each digested as it comes out, and judges it as a bag when it is
// one. Before the container is blamed for damage, its own digest is known to be right: Download checked it.
func (w *Process) unpack(ctx context.Context, item *base.Item, got downloaded) (contents, error) {
	var container staging.File
	for f, err := range staging.ReadList[staging.File](ctx, w.Staging, got.List) {
		if err != nil {
			return contents{}, err
		}
		container = f
	}
	c := contents{kind: registry.ContainerType, list: staging.Key(item.Lease(), "unpacked.jsonl")}
	list, err := staging.CreateList[staging.File](ctx, w.Staging, c.list)
	if err != nil {
		return c, err
	}
	defer list.Close() //nolint:errcheck // nothing depends on a list that is given up
	u := unpacking{
		item: item, list: list, algorithm: item.Spec().Profile.Digests(),
		store: w.unpackRoom(item, container).Within(w.Staging), done: item.Progress("files unpacked", "files"),
	}
	err = unpack.Walk(ctx, unpack.Input{
		Size: container.SizeBytes,
		Open: func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
			return w.Staging.Open(ctx, container.Key, offset, length)
		},
	}, unpack.Limits{}, func(e unpack.Entry, r io.Reader) error { return u.take(ctx, e, r) })
	if err != nil {
		return c, fmt.Errorf("unpack %s: %w", container.Name, err)
	}
	if u.seq == 0 {
		return c, base.Content(fmt.Errorf("%s holds no files", container.Name))
	}
	if err := list.Commit(ctx); err != nil {
		return c, err
	}
	if t := item.Spec().Type; t == registry.BagType || t == registry.AutoType && u.bag {
		c.kind = registry.BagType
		return c, w.judgeBag(ctx, item, c)
	}
	return c, nil
}

// unpackRoom begins with what Provision reserved, of which the container itself has taken its part.
func (w *Process) unpackRoom(item *base.Item, container staging.File) *staging.Room {
	var granted int64
	if _, err := item.Result(resultReserved, &granted); err != nil {
		granted = 0 // then the first byte asks for room
	}
	return staging.NewRoom(max(granted, container.SizeBytes), container.SizeBytes, func(ctx context.Context, bytes int64) error {
		return w.volume.reserve(ctx, item, bytes, w.volume.full)
	})
}

// unpacking stages the entries of one container.
type unpacking struct {
	item      *base.Item
	store     storage.Store
	list      *staging.ListWriter[staging.File]
	done      *base.Progress
	algorithm string
	seq       int64
	bag       bool // a bag's declaration was seen
}

func (u *unpacking) take(ctx context.Context, e unpack.Entry, r io.Reader) error {
	u.seq++
	u.bag = u.bag || path.Base(e.Name) == bagit.DeclarationFile && strings.Count(e.Name, "/") <= 1
	f := staging.File{
		Seq: u.seq, Name: e.Name, Key: staging.FileKey(u.item.Lease(), "unpacked", u.seq), Modified: e.Modified,
	}
	w, err := newDigested(ctx, u.store, f.Key, u.algorithm)
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // nothing depends on a writer that is given up
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	written, err := w.Commit(ctx)
	if err != nil {
		return err
	}
	f.SizeBytes, f.Digests = written.SizeBytes, written.Digests
	u.done.Add(1)
	return u.list.Add(f)
}
