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

// unpackedFolder is the folder of an attempt's unpacked files.
const unpackedFolder = "unpacked"

// unpack unpacks a container into staged files, digests each on the way, and judges the result as a
// bag if it is one. It continues after the file at which an earlier attempt stopped.
func (w *Opener) unpack(ctx context.Context, item *base.Item, container staging.File, c result.Contents) (result.Contents, error) {
	c.List = staging.List{Key: staging.Key(item.Lease(), unpackedFolder+"/list.jsonl")}
	u, err := w.unpacking(ctx, item, container, c)
	if err != nil {
		return c, err
	}
	defer u.list.Close() //nolint:errcheck // everything that counts is committed or noted
	leave, err := w.waitForMemory(ctx, item, u)
	if err != nil {
		return c, err
	}
	err = func() error {
		defer leave() // also after a panic, which fails only this step
		return u.walk(ctx)
	}()
	if err != nil {
		return c, fmt.Errorf("unpack %s: %w", container.Name, err)
	}
	if u.seq == 0 {
		return c, base.Content(fmt.Errorf("%s contains no files", container.Name))
	}
	if err := u.list.Commit(ctx); err != nil {
		return c, err
	}
	c.List = u.list.List()
	if t := item.Spec().Type; t == registry.BagType || t == registry.AutoType && u.top.Bag() {
		return w.bag(ctx, item, u.room, container, c) // a bag's own manifests describe its files
	}
	return c, w.corroborate(ctx, item, c)
}

const (
	// unpackPatience is how long a job keeps its slot while it waits for memory. unpackWait is how
	// long it then waits without a slot.
	unpackPatience = 3 * time.Second
	unpackWait     = time.Minute
)

var errNoMemory = errors.New("other containers use all of it")

// waitForMemory waits until the process has the memory to decompress the container. If that takes
// long, the job waits without its slot. A job that has the memory never waits for another job's
// memory; for room in staging it waits without slot and memory.
func (w *Opener) waitForMemory(ctx context.Context, item *base.Item, u *unpacking) (leave func(), err error) {
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
		return nil, base.Snooze(unpackWait, registry.ReasonNoMemory, fmt.Sprintf("decompressing %s needs %s of memory: %v", u.container.Name, registry.SizeText(window), errNoMemory))
	}
	return leave, err
}

// unpackRoom returns the room that Download left reserved. The container and its unpacked files
// already occupy a part of it.
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
