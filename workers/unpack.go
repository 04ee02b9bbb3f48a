package workers

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// unpackedFolder is where an attempt stages what comes out of a container.
const unpackedFolder = "unpacked"

// unpack takes a container apart into staged files, each digested as it comes out, and judges it as a bag when it is
// one.
func (w *Process) unpack(ctx context.Context, item *base.Item, container staging.File, c contents) (contents, error) {
	room, err := w.unpackRoom(item, container)
	if err != nil {
		return c, err
	}
	c.List = staging.Key(item.Lease(), unpackedFolder+"/list.jsonl")
	list, err := staging.CreateList[staging.File](ctx, w.payloads.staging, c.List)
	if err != nil {
		return c, err
	}
	defer list.Close() //nolint:errcheck // nothing depends on a list that is given up
	u := unpacking{
		item: item, list: list, algorithm: item.Spec().Profile.Digests(), buffers: w.payloads.buffers,
		store: room.Within(w.payloads.staging),
		files: item.Progress("files unpacked", "files"), bytes: item.Progress("bytes unpacked", "bytes"),
	}
	err = unpack.Walk(ctx, unpack.Input{
		Size: container.SizeBytes,
		Open: func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
			return w.payloads.staging.Open(ctx, container.Key, offset, length)
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
	if t := item.Spec().Type; t == registry.BagType || t == registry.AutoType && u.top.bag() {
		return w.bag(ctx, item, room, c)
	}
	return c, nil
}

// unpackRoom begins with what Download left reserved, of which the container itself has taken its part.
func (w *Process) unpackRoom(item *base.Item, container staging.File) (*staging.Room, error) {
	given, err := granted(item)
	if err != nil {
		return nil, err
	}
	size := container.SizeBytes
	return staging.NewRoom(max(given, size), size, func(ctx context.Context, bytes, staged int64) error {
		return w.volume.reserve(ctx, item, bytes, staged-size, w.volume.full)
	}), nil
}

// unpacking stages the entries of one container.
type unpacking struct {
	item         *base.Item
	store        storage.Store
	buffers      *staging.Buffers
	list         *staging.ListWriter[staging.File]
	files, bytes *base.Progress
	algorithm    string
	seq          int64
	top          topFolder
}

func (u *unpacking) take(ctx context.Context, e unpack.Entry, r io.Reader) error {
	u.seq++
	u.top.meet(e.Name)
	w, err := stage(ctx, u.store, staging.FileKey(u.item.Lease(), unpackedFolder, u.seq), u.algorithm)
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // nothing depends on a writer that is given up
	if _, err := u.buffers.Copy(w, &counted{r: r, count: u.bytes.Add}); err != nil {
		return err
	}
	f, err := w.Commit(ctx)
	if err != nil {
		return err
	}
	f.Seq, f.Name, f.Modified = u.seq, e.Name, e.Modified
	u.files.Add(1)
	return u.list.Add(f)
}

// topFolder tells whether a container is a bag: declared at its top, or in the one folder that everything lies in.
type topFolder struct {
	met, several           bool
	name                   string // the folder of all so far, "" for none
	declared, declaredDown bool
}

func (t *topFolder) meet(name string) {
	folder, rest, within := strings.Cut(name, "/")
	if !within {
		folder = ""
	}
	t.several = t.several || t.met && t.name != folder
	t.met, t.name = true, folder
	t.declared = t.declared || name == bagit.DeclarationFile
	t.declaredDown = t.declaredDown || within && rest == bagit.DeclarationFile
}

func (t *topFolder) bag() bool { return t.declared || t.declaredDown && !t.several }

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
