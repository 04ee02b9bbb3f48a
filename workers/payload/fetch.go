package payload

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/tracing"
	"github.com/holdfast/holdfast/workers/result"
)

// filesAtOnce is how many files of a job are fetched concurrently.
const filesAtOnce = 8

// mostSpans is how many files of a fetch have spans of their own.
const mostSpans = 100

// Fetcher fetches numbered files of one item into staging. It continues where an earlier attempt
// stopped: after a file, or inside it.
type Fetcher struct {
	Files
	source               source.Fetcher // of the item's collection
	item                 *base.Item
	folder               string // the folder of the numbered files
	room                 *staging.Room
	store                storage.Store // staging, within room
	Algorithms           []string
	BytesDone, FilesDone *base.Progress
	reread               *base.Progress
	notes                *notes
	fresh                bool // no earlier attempt left anything
	spans                atomic.Int64
}

// Fetcher returns a Fetcher for a folder of the item's staged files. Each set of numbered files has
// its own folder. Its writes take from room.
func (p Files) Fetcher(ctx context.Context, item *base.Item, folder string, room *staging.Room) (*Fetcher, error) {
	f := &Fetcher{
		Files: p, source: p.Sources(item.Collection), item: item, folder: folder, room: room, store: room.Within(p.Staging),
		Algorithms: []string{item.Spec().Profile.Digests()},
		reread:     item.Progress("bytes read back", "bytes"),
	}
	f.BytesDone, f.FilesDone = item.Transfer()
	var err error
	f.notes, err = newNotes(ctx, item, folder)
	f.fresh = err == nil && f.notes.fresh
	return f, err
}

// All fetches the files that each passes on, several concurrently, and notes them for a successor. A
// job's only file is not noted if it is small: it will soon be listed. The error names all files
// that cannot be fetched.
func (f *Fetcher) All(ctx context.Context, each func(fn func(Member) error) error) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(filesAtOnce)
	var bad fileFaults
	only := false
	err := each(func(m Member) error {
		only = m.Only
		group.Go(func() error {
			err := f.fetch(gctx, m)
			if err == nil {
				f.FilesDone.Add(1)
				return nil
			}
			return bad.add(fmt.Errorf("file %d, %s: %w", m.Seq, m.Name, err))
		})
		return gctx.Err()
	})
	if stop := group.Wait(); stop != nil {
		err = stop
	}
	err = bad.result(err)
	if err == nil && only {
		return nil
	}
	if failed := f.notes.store(ctx); err == nil {
		return failed
	}
	return err
}

// fetch fetches one file, unless it is already staged.
func (f *Fetcher) fetch(ctx context.Context, m Member) error {
	m.Wanted.Name, m.Wanted.Algorithms = m.Name, append(m.Wanted.Algorithms, f.Algorithms...)
	run := staging.Fetch{
		Source: f.source, Store: f.store, Buffers: f.Buffers, Key: f.key(m),
		InPlace: m.InPlace, Wanted: m.Wanted, Most: f.UnknownSize, Moved: f.BytesDone.Add, Read: f.reread.Add,
		Save: func(ctx context.Context, c staging.Checkpoint) error {
			return base.Put(ctx, f.item, f.notes.part(m.Seq), partialFetch{c, m.requestDigest()})
		},
	}
	if m.InPlace {
		run.Key, run.Store = result.UploadKey(f.item), f.Staging // it takes no room
	}
	if !f.fresh {
		have, ok, err := f.have(ctx, m)
		if err != nil {
			return err
		}
		if ok {
			f.BytesDone.Add(have.SizeBytes)
			return f.room.Take(ctx, have.SizeBytes)
		}
		if run.From, err = f.part(ctx, m); err != nil {
			return err
		}
	}
	var span *tracing.Span
	if f.spans.Add(1) <= mostSpans {
		ctx, span = tracing.Call(ctx, "file")
	}
	file, err := run.Run(ctx)
	span.Count("holdfast.file", m.Seq)
	span.Count("holdfast.bytes", file.SizeBytes)
	span.End(err)
	if err != nil {
		return err
	}
	file.Seq, file.Name = m.Seq, m.Name
	return f.notes.add(ctx, m, file)
}

// key returns where a file is staged. The only file of a job takes the name of the folder.
func (f *Fetcher) key(m Member) string {
	if m.Only {
		return staging.Key(f.item.Lease(), f.folder)
	}
	return staging.FileKey(f.item.Lease(), f.folder, m.Seq)
}

// have returns a file that an earlier attempt staged, if it exists. An upload is read again: a later
// step may have found it damaged.
func (f *Fetcher) have(ctx context.Context, m Member) (staging.File, bool, error) {
	file, ok, err := f.Noted(ctx, m)
	if err != nil || !ok || m.InPlace {
		return file, false, err
	}
	info, err := f.Staging.Stat(ctx, file.Key)
	if errors.Is(err, storage.ErrNotFound) || err == nil && info.Size != file.SizeBytes {
		return file, false, nil
	}
	return file, err == nil, err
}

// Noted returns the description of a staged file. ok is false if there is no note of it.
func (f *Fetcher) Noted(ctx context.Context, m Member) (file staging.File, ok bool, err error) {
	file, ok, err = f.notes.get(ctx, m)
	own := staging.Owned(f.item.ID, file.Key) || m.InPlace && file.Key == result.UploadKey(f.item)
	return file, ok && own, err
}

// part returns the checkpoint of an earlier attempt inside a file.
func (f *Fetcher) part(ctx context.Context, m Member) (*staging.Checkpoint, error) {
	c, ok, err := base.Get[partialFetch](ctx, f.item, f.notes.part(m.Seq))
	if err != nil || !ok || c.Asked != m.requestDigest() {
		return nil, err
	}
	if !staging.Owned(f.item.ID, c.Key) {
		c.Key = "" // an entry never leads to removing data of another item (R26)
	}
	return &c.Checkpoint, nil
}

// NoteLost returns the verdict on a step whose interim data disappeared while it ran: the files are
// fetched again, which costs time but no try (I1).
func NoteLost(what string) error {
	return base.Snooze(time.Second, registry.ReasonNotDue, "the record of "+what+" was lost; it will be fetched again")
}
