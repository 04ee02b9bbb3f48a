package workers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/tracing"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/resume"
	"github.com/holdfast/holdfast/workers/room"
)

// Replicate copies the version that Process stored to all other storages of the collection
// concurrently, with every earlier version that a storage lacks. Each copied byte is read back. A
// durable result records each complete storage, so that a retry repeats only what failed. The item
// continues when all storages have the version.
type Replicate struct {
	base.Worker
	Objects ocfl.Roots
}

// Stage implements base.Handler.
func (w *Replicate) Stage() registry.Stage { return registry.Replicate }

// Work implements base.Handler.
func (w *Replicate) Work(ctx context.Context, item *base.Item) error {
	p, err := result.PlanOf(item)
	if err != nil {
		return err
	}
	from, err := w.Objects.Of(item.Storages[0])
	if err != nil {
		return err
	}
	others := item.Storages[1:]
	errs := make([]error, len(others))
	var copying sync.WaitGroup
	for i, name := range others {
		copying.Go(func() {
			err := item.Once(ctx, registry.ResultReplica(name), nil, func(ctx context.Context) (any, error) {
				if err := w.copy(ctx, item, p, from, name); err != nil {
					return nil, err
				}
				return result.Replica{VerifiedAt: item.Now()}, nil
			})
			if err != nil {
				errs[i] = fmt.Errorf("copy version %d of %s to storage %q: %w", p.Version, p.ObjectID, name, err)
			}
		})
	}
	copying.Wait()
	return room.Wait(errors.Join(errs...))
}

// copy copies the version and missing earlier versions to a storage.
func (w *Replicate) copy(ctx context.Context, item *base.Item, p result.Plan, from ocfl.Named, name string) (err error) {
	ctx, span := tracing.Start(ctx, "replica write")
	defer func() { span.End(err) }()
	span.Set("holdfast.storage", name)
	to, err := w.Objects.Of(name)
	if err != nil {
		return err
	}
	// The number of files is unknown, since earlier versions may be missing too.
	files := item.Progress("files copied to "+name+" and verified", "files").Kept()
	bytes := item.Progress("bytes copied to "+name+" and verified", "bytes").Kept()
	var doneFiles, doneBytes int64 // of the earlier versions
	var last ocfl.Progress
	var stored *resume.Stored
	err = to.Replicate(ctx, from.Root, p.Stored(), p.Version, func(version int, digest string) (ocfl.CommitOptions, error) {
		if version == p.Version && digest != p.Digest {
			return ocfl.CommitOptions{}, fmt.Errorf("its inventory in storage %q has the digest %s, not %s, as announced", from.Name, digest, p.Digest)
		}
		doneFiles, doneBytes, last = doneFiles+int64(last.Files), doneBytes+last.Bytes, ocfl.Progress{}
		var err error
		if stored, err = resume.NewStored(ctx, item, "stored in "+name+", by path", digest, p.Files, p.Bytes); err != nil {
			return ocfl.CommitOptions{}, err
		}
		return ocfl.CommitOptions{
			Verified: stored.Before(),
			Stored: func(place int, size int64) error {
				return errors.Join(stored.Add(ctx, place, size), item.Writable(ctx))
			},
			Progress: func(now ocfl.Progress) {
				last = now
				files.Set(doneFiles + int64(now.Files))
				bytes.Set(doneBytes + now.Bytes)
			},
		}, item.Writable(ctx)
	})
	if err != nil && ctx.Err() != nil && stored != nil {
		err = errors.Join(err, stored.Note(ctx)) // stopping: the next worker resumes here
	}
	if err == nil && item.Repeats() {
		err = to.DropUnfinished(ctx, p.Stored(), p.Version)
	}
	return err
}
