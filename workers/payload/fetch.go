package payload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// filesAtOnce is how many files of a job are fetched at a time.
const filesAtOnce = 8

// Fetcher brings numbered files of one item into staging, and goes on where an earlier attempt
// stopped: after a file, or inside of it.
type Fetcher struct {
	Files
	source               source.Fetcher // the item's
	item                 *base.Item
	folder               string // the set that the numbers are of
	room                 *staging.Room
	store                storage.Store // staging, within room
	Algorithms           []string
	BytesDone, FilesDone *base.Progress
	reread               *base.Progress
	anew                 bool // no earlier attempt left anything
}

// Fetcher returns a Fetcher of a folder of the item's in staging, whose numbers are of one set of
// files. What it writes takes from room.
func (p Files) Fetcher(ctx context.Context, item *base.Item, folder string, room *staging.Room) (*Fetcher, error) {
	f := &Fetcher{
		Files: p, source: p.Sources(item.Collection), item: item, folder: folder, room: room, store: room.Within(p.Staging),
		Algorithms: []string{item.Spec().Profile.Digests()},
		reread:     item.Progress("bytes read back", "bytes"),
	}
	f.BytesDone, f.FilesDone = item.Transfer()
	// Most jobs run once, and need not ask for each file.
	found := errors.New("found")
	err := base.Each(ctx, item, folder+"/", func(string, any) error { return found })
	if err != nil && !errors.Is(err, found) {
		return nil, err
	}
	f.anew = err == nil
	return f, nil
}

// All fetches what each names, several files at a time. Its error tells of all files that cannot be
// had.
func (f *Fetcher) All(ctx context.Context, each func(fn func(Member) error) error) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(filesAtOnce)
	var bad troubles
	err := each(func(m Member) error {
		group.Go(func() error {
			err := f.fetch(gctx, m)
			if err == nil {
				f.FilesDone.Add(1)
				return nil
			}
			return bad.keep(fmt.Errorf("file %d, %s: %w", m.Seq, m.Name, err))
		})
		return gctx.Err()
	})
	if stop := group.Wait(); stop != nil {
		return bad.err(stop)
	}
	return bad.err(err)
}

// fetch brings one file in, unless it is there.
func (f *Fetcher) fetch(ctx context.Context, m Member) error {
	m.Wanted.Name, m.Wanted.Algorithms = m.Name, append(m.Wanted.Algorithms, f.Algorithms...)
	run := staging.Fetch{
		Source: f.source, Store: f.store, Buffers: f.Buffers, Key: staging.FileKey(f.item.Lease(), f.folder, m.Seq),
		Wanted: m.Wanted, Most: f.UnknownSize, Moved: f.BytesDone.Add, Read: f.reread.Add,
		Save: func(ctx context.Context, c staging.Checkpoint) error {
			return base.Put(ctx, f.item, f.partNote(m.Seq), partly{c, m.asked()})
		},
	}
	if !f.anew {
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
	file, err := run.Run(ctx)
	if err != nil {
		return err
	}
	file.Seq, file.Name = m.Seq, m.Name
	return base.Put(ctx, f.item, f.fileNote(m.Seq), fetched{file, m.asked()})
}

// fetched and partly are what is noted of a file that was staged, and of one that is on its way,
// with what was asked for: a note of the same number that answers another question is none.
type fetched struct {
	staging.File
	Asked string `json:"asked"`
}

type partly struct {
	staging.Checkpoint
	Asked string `json:"asked"`
}

// asked is the digest of what the depositor says of a file, the address included.
func (m Member) asked() string {
	var algorithm, digest string
	if d := m.Wanted.Digest; d != nil {
		algorithm, digest = d.Algorithm, d.Value
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q %q", m.Name, m.Wanted.URL, m.Wanted.SizeBytes, algorithm, digest))
	return hex.EncodeToString(sum[:])
}

// have returns a file that an earlier attempt staged, if it is there.
func (f *Fetcher) have(ctx context.Context, m Member) (staging.File, bool, error) {
	file, ok, err := f.Noted(ctx, m)
	if err != nil || !ok {
		return file, false, err
	}
	info, err := f.Staging.Stat(ctx, file.Key)
	if errors.Is(err, storage.ErrNotFound) || err == nil && info.Size != file.SizeBytes {
		return file, false, nil
	}
	return file, err == nil, err
}

// Noted returns a file as it was staged; ok is false when no note of it is there.
func (f *Fetcher) Noted(ctx context.Context, m Member) (file staging.File, ok bool, err error) {
	n, ok, err := base.Get[fetched](ctx, f.item, f.fileNote(m.Seq))
	return n.File, ok && n.Asked == m.asked() && staging.Owned(f.item.ID, n.Key), err
}

// part returns where an earlier attempt stood inside a file.
func (f *Fetcher) part(ctx context.Context, m Member) (*staging.Checkpoint, error) {
	c, ok, err := base.Get[partly](ctx, f.item, f.partNote(m.Seq))
	if err != nil || !ok || c.Asked != m.asked() {
		return nil, err
	}
	if !staging.Owned(f.item.ID, c.Key) {
		c.Key = "" // nothing of another item is ever removed by a note (R26)
	}
	return &c.Checkpoint, nil
}

func (f *Fetcher) fileNote(seq int64) string { return f.folder + "/file/" + strconv.FormatInt(seq, 10) }

func (f *Fetcher) partNote(seq int64) string { return f.folder + "/part/" + strconv.FormatInt(seq, 10) }

// NoteLost returns the verdict on a step whose interim data went while it ran: what they told of is
// fetched again, which costs time and no try (I1).
func NoteLost(what string) error {
	return base.Snooze(time.Second, registry.ReasonNotDue, "the note of "+what+" was lost; it is fetched again")
}
