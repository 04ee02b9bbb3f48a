package workers

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/room"
)

// Download fetches every file of a job into staging and computes all its digests in one pass. It
// checks size and digest if the depositor stated them. It resumes inside a file where an earlier
// attempt stopped.
type Download struct {
	base.Worker
	payloads payload.Files
	volume   room.Volume
}

// downloadFolder is the folder of a job's downloaded files, or its only file.
const downloadFolder = "files"

// Stage implements base.Handler.
func (w *Download) Stage() registry.Stage { return registry.Download }

// Work implements base.Handler.
func (w *Download) Work(ctx context.Context, item *base.Item) error {
	given, err := room.Granted(item)
	if err != nil {
		return err
	}
	// The item's progress counts the written bytes; the Registry learns of them later.
	space := staging.NewRoom(given, 0, func(ctx context.Context, bytes, staged int64) error {
		return w.volume.Ask(ctx, item, registry.Reservation{Bytes: bytes, Staged: staged, Threshold: w.volume.Full}, 0)
	})
	f, err := w.payloads.Fetcher(ctx, item, downloadFolder, space)
	if err != nil {
		return err
	}
	err = f.All(ctx, func(fn func(payload.Member) error) error { return w.payloads.Each(ctx, item, fn) })
	if err != nil {
		return room.Wait(w.giveBack(ctx, item, given, err))
	}
	sum, err := w.list(ctx, item, f)
	if err != nil {
		return err
	}
	item.SetSize(sum.Bytes, sum.Files)
	item.SetDone(sum.Bytes, sum.Files)
	if err := w.correct(ctx, item, space, given, sum.Bytes); err != nil {
		return err
	}
	if err := item.SetResult(result.NameDownload, sum); err != nil {
		return err
	}
	return payload.Warn(item)
}

// giveBack deletes what a job has staged and releases its room, if keeping them could block others
// forever. That is the case:
//
//   - if the Registry asks for it, since several growing jobs could each hold a part of the volume
//     and wait for the rest;
//   - if a job of unknown size finds the disk full, or fails for lack of room.
//
// Such a job starts over when there is room. A job of unknown size that fails because of its
// content keeps its files for a requeue, and only the room that they take. giveBack returns err,
// joined with its own error.
func (w *Download) giveBack(ctx context.Context, item *base.Item, given int64, err error) error {
	full, refused := errors.AsType[*registry.NoSpaceError](err)
	unsized := item.SizeBytes < 0
	wrong := unsized && base.ContentFault(err)
	away := refused && full.Yield || unsized && (errors.Is(err, storage.ErrNoSpace) || refused && w.OutOfRoom(item, err))
	if !away && !wrong || ctx.Err() != nil {
		return err
	}
	if err := item.Writable(ctx); err != nil { // delete nothing that a successor may use
		return err
	}
	for n := range item.Lease().N {
		if wrong {
			break
		}
		key := staging.Key(registry.Lease{ItemID: item.ID, N: n + 1}, downloadFolder)
		for _, prefix := range []string{key, key + staging.Again} {
			if failed := w.payloads.Staging.DeletePrefix(ctx, prefix); failed != nil {
				return errors.Join(err, fmt.Errorf("release room: %w", failed))
			}
		}
	}
	if !wrong {
		item.SetDone(0, 0)
	}
	if failed := w.volume.Reserve(ctx, item, given, 0, w.volume.Full); failed != nil && !errors.As(failed, new(*registry.NoSpaceError)) {
		return errors.Join(err, failed)
	}
	return err
}

// list writes the list of files for Process.
func (w *Download) list(ctx context.Context, item *base.Item, f *payload.Fetcher) (result.Downloaded, error) {
	var sum result.Downloaded
	list, err := staging.CreateList[staging.File](ctx, w.payloads.Staging, staging.Key(item.Lease(), "files.jsonl"))
	if err != nil {
		return sum, err
	}
	defer list.Abort() //nolint:errcheck // an aborted list leaves nothing that matters
	progress := item.Progress("files listed", "files")
	err = w.payloads.Each(ctx, item, func(m payload.Member) error {
		file, ok, err := f.Noted(ctx, m)
		if err != nil {
			return err
		}
		if !ok {
			return payload.NoteLost(fmt.Sprintf("file %d", m.Seq))
		}
		sum.Files++
		sum.Bytes += file.SizeBytes
		if m.Wanted.Digest != nil {
			sum.Checked++
		}
		progress.Add(1)
		return list.Add(file)
	})
	if err != nil {
		return sum, err
	}
	err = list.Commit(ctx)
	sum.List = list.List()
	return sum, err
}

// correct releases the room that is not needed, now that the size is known. A container keeps its
// room for unpacking (R24).
func (w *Download) correct(ctx context.Context, item *base.Item, space *staging.Room, given, bytes int64) error {
	keep := bytes
	if payload.Unpacks(item.Spec().Type) {
		keep = max(bytes, min(space.Granted(), bytes*unpackFactor))
	}
	if keep == given && space.Granted() == given {
		return nil // as it was estimated
	}
	err := w.volume.Reserve(ctx, item, keep, 0, w.volume.Full)
	var full *registry.NoSpaceError
	if errors.As(err, &full) {
		keep = space.Granted() // the volume was filled meanwhile; the promised room remains
	} else if err != nil {
		return err
	}
	return item.SetResult(room.NameReserved, keep)
}
