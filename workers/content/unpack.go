package content

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/room"
)

// unpackedFolder is where an attempt stages what comes out of a container.
const unpackedFolder = "unpacked"

// unpack takes a container apart into staged files, each digested as it comes out, and judges it as
// a bag when it is one. It goes on after the file at which an earlier attempt stopped.
func (w *Opener) unpack(ctx context.Context, item *base.Item, container staging.File, c result.Contents) (result.Contents, error) {
	c.List = staging.Key(item.Lease(), unpackedFolder+"/list.jsonl")
	u, err := w.unpacking(ctx, item, container, c)
	if err != nil {
		return c, err
	}
	defer u.list.Close() //nolint:errcheck // what counts is committed, or was noted
	leave, err := w.admitted(ctx, item, u)
	if err != nil {
		return c, err
	}
	err = func() error {
		defer leave() // however it ends: a panic fails this step alone, and the process goes on
		return u.walk(ctx)
	}()
	if err != nil {
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

const (
	// unpackPatience is how long a job keeps its slot while it waits for memory, and unpackWait how
	// long it waits without one.
	unpackPatience = 3 * time.Second
	unpackWait     = time.Minute
)

var errNoMemory = errors.New("other containers are being decompressed and take it all")

// admitted waits until the process has the memory to decompress the container. A job for which that
// takes long waits without its slot. A job that has the memory never waits for another one's: for
// room in staging it waits without slot and memory.
func (w *Opener) admitted(ctx context.Context, item *base.Item, u *unpacking) (leave func(), err error) {
	head, err := u.head(ctx)
	if err != nil {
		return nil, err
	}
	window := u.limits.WindowOf(head)
	if window == 0 || w.Gate == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, unpackPatience, errNoMemory)
	defer cancel()
	leave, err = w.Gate.Unpack(ctx, gate.Work{Collection: item.Collection, Memory: window})
	if errors.Is(err, errNoMemory) || errors.Is(err, gate.ErrFull) {
		return nil, base.Snooze(unpackWait, registry.ReasonNoMemory, fmt.Sprintf("to decompress %s takes %s of memory: %v", u.container.Name, registry.SizeText(window), errNoMemory))
	}
	return leave, err
}

// unpackRoom begins with what Download left reserved, of which the container, and what came out of
// it before, have taken their part.
func (w *Opener) unpackRoom(item *base.Item, container staging.File, unpacked int64) (*staging.Room, error) {
	given, err := room.Granted(item)
	if err != nil {
		return nil, err
	}
	size := container.SizeBytes
	return staging.NewRoom(max(given, size+unpacked), size+unpacked, func(ctx context.Context, bytes, staged int64) error {
		return w.Volume.Reserve(ctx, item, bytes, staged-size, w.Volume.Full)
	}), nil
}
