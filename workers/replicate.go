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
	to, err := w.Objects.Of(name)
	if err != nil {
		return err
	}
	return (&copying{
		item: item, objectID: p.Stored(), version: p.Version, files: p.Files, bytes: p.Bytes,
		begin: func(version int, digest string) error {
			if version == p.Version && digest != p.Digest {
				return fmt.Errorf("its inventory in storage %q has the digest %s, not %s, as announced", from.Name, digest, p.Digest)
			}
			return nil
		},
	}).copy(ctx, from, to)
}

// copying copies a version, with all before it, from one storage to another.
type copying struct {
	item         *base.Item
	objectID     string // in the storages
	version      int
	files, bytes int64                                  // of the version
	begin        func(version int, digest string) error // is called before a version is written; versions that are there are not
	stored       int                                    // files stored and verified by all calls
}

// copy does it once. It continues where an earlier attempt stopped.
func (c *copying) copy(ctx context.Context, from, to ocfl.Named) (err error) {
	ctx, span := tracing.Start(ctx, "replica write")
	defer func() { span.End(err) }()
	span.Set("holdfast.storage", to.Name)
	// The number of files is unknown, since earlier versions may be missing too.
	files := c.item.Progress("files copied to "+to.Name+" and verified", "files").Kept()
	bytes := c.item.Progress("bytes copied to "+to.Name+" and verified", "bytes").Kept()
	var doneFiles, doneBytes int64 // of the earlier versions
	var last ocfl.Progress
	var stored *resume.Stored
	err = to.Replicate(ctx, from.Root, c.objectID, c.version, func(version int, digest string) (ocfl.CommitOptions, error) {
		if err := c.begin(version, digest); err != nil {
			return ocfl.CommitOptions{}, err
		}
		doneFiles, doneBytes, last = doneFiles+int64(last.Files), doneBytes+last.Bytes, ocfl.Progress{}
		var err error
		if stored, err = resume.NewStored(ctx, c.item, "stored in "+to.Name+", by path", digest, c.files, c.bytes); err != nil {
			return ocfl.CommitOptions{}, err
		}
		return ocfl.CommitOptions{
			Verified: stored.Before(),
			Stored: func(place int, size int64) error {
				c.stored++
				return errors.Join(stored.Add(ctx, place, size), c.item.Writable(ctx))
			},
			Progress: func(now ocfl.Progress) {
				last = now
				files.Set(doneFiles + int64(now.Files))
				bytes.Set(doneBytes + now.Bytes)
			},
		}, c.item.Writable(ctx)
	})
	if err != nil && ctx.Err() != nil && stored != nil {
		err = errors.Join(err, stored.Note(ctx)) // stopping: the next worker resumes here
	}
	if err == nil && c.item.Repeats() {
		err = to.DropUnfinished(ctx, c.objectID, c.version)
	}
	return err
}
