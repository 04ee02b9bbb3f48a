package workers

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

// fetcher brings the numbered files of one item in, and goes on where an earlier attempt stopped: after a file, or
// inside of it.
type fetcher struct {
	payloads
	source       source.Fetcher // the item's
	item         *base.Item
	folder       string // the set that the numbers are of
	room         *staging.Room
	store        storage.Store // staging, within room
	algorithms   []string
	bytes, files *base.Progress
	reread       *base.Progress
	anew         bool // no earlier attempt left anything
}

func (p payloads) fetcher(ctx context.Context, item *base.Item, folder string, room *staging.Room) (*fetcher, error) {
	f := &fetcher{
		payloads: p, source: p.sources(item.Collection), item: item, folder: folder, room: room, store: room.Within(p.staging),
		algorithms: []string{item.Spec().Profile.Digests()},
		reread:     item.Progress("bytes read back", "bytes"),
	}
	f.bytes, f.files = item.Transfer()
	// Most jobs run once, and need not ask for each file.
	found := errors.New("found")
	err := base.Each(ctx, item, folder+"/", func(string, any) error { return found })
	if err != nil && !errors.Is(err, found) {
		return nil, err
	}
	f.anew = err == nil
	return f, nil
}

// all fetches what each names, several files at a time.
func (f *fetcher) all(ctx context.Context, each func(fn func(member) error) error) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(filesAtOnce)
	var bad faults
	err := each(func(m member) error {
		group.Go(func() error {
			err := f.fetch(gctx, m)
			if err == nil {
				f.files.Add(1)
				return nil
			}
			return bad.keep(fmt.Errorf("file %d, %s: %w", m.seq, m.name, err))
		})
		return gctx.Err()
	})
	if stop := group.Wait(); stop != nil {
		return bad.err(stop)
	}
	return bad.err(err)
}

// fetch brings one file in, unless it is there.
func (f *fetcher) fetch(ctx context.Context, m member) error {
	m.wanted.Name, m.wanted.Algorithms = m.name, append(m.wanted.Algorithms, f.algorithms...)
	run := staging.Fetch{
		Source: f.source, Store: f.store, Buffers: f.buffers, Key: staging.FileKey(f.item.Lease(), f.folder, m.seq),
		Wanted: m.wanted, Most: f.unsized, Moved: f.bytes.Add, Read: f.reread.Add,
		Save: func(ctx context.Context, c staging.Checkpoint) error {
			return base.Put(ctx, f.item, f.partNote(m.seq), partly{c, m.asked()})
		},
	}
	if !f.anew {
		have, ok, err := f.have(ctx, m)
		if err != nil {
			return err
		}
		if ok {
			f.bytes.Add(have.SizeBytes)
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
	file.Seq, file.Name = m.seq, m.name
	return base.Put(ctx, f.item, f.fileNote(m.seq), fetched{file, m.asked()})
}

// fetched and partly are what is noted of a file that was staged, and of one that is on its way, with what was asked for: a note of the same
// number that answers another question is none.
type fetched struct {
	staging.File
	Asked string `json:"asked"`
}

type partly struct {
	staging.Checkpoint
	Asked string `json:"asked"`
}

// asked is the digest of what the depositor says of a file, the address included.
func (m member) asked() string {
	var algorithm, digest string
	if d := m.wanted.Digest; d != nil {
		algorithm, digest = d.Algorithm, d.Value
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q %q", m.name, m.wanted.URL, m.wanted.SizeBytes, algorithm, digest))
	return hex.EncodeToString(sum[:])
}

// have returns a file that an earlier attempt staged, if it is there.
func (f *fetcher) have(ctx context.Context, m member) (staging.File, bool, error) {
	file, ok, err := f.noted(ctx, m)
	if err != nil || !ok {
		return file, false, err
	}
	info, err := f.staging.Stat(ctx, file.Key)
	if errors.Is(err, storage.ErrNotFound) || err == nil && info.Size != file.SizeBytes {
		return file, false, nil
	}
	return file, err == nil, err
}

// noted returns what is known of a file that was staged.
func (f *fetcher) noted(ctx context.Context, m member) (staging.File, bool, error) {
	n, ok, err := base.Get[fetched](ctx, f.item, f.fileNote(m.seq))
	return n.File, ok && n.Asked == m.asked() && staging.Owned(f.item.ID, n.Key), err
}

// part returns where an earlier attempt stood inside a file.
func (f *fetcher) part(ctx context.Context, m member) (*staging.Checkpoint, error) {
	c, ok, err := base.Get[partly](ctx, f.item, f.partNote(m.seq))
	if err != nil || !ok || c.Asked != m.asked() {
		return nil, err
	}
	if !staging.Owned(f.item.ID, c.Key) {
		c.Key = "" // nothing of another item is ever removed by a note (R26)
	}
	return &c.Checkpoint, nil
}

func (f *fetcher) fileNote(seq int64) string { return f.folder + "/file/" + strconv.FormatInt(seq, 10) }

func (f *fetcher) partNote(seq int64) string { return f.folder + "/part/" + strconv.FormatInt(seq, 10) }

// noteLost is the verdict on a step whose interim data went while it ran: what they told of is fetched again, which costs time
// and no try (I1).
func noteLost(what string) error {
	return base.Snooze(time.Second, registry.ReasonNotDue, "the note of "+what+" was lost; it is fetched again")
}
