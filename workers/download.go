package workers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

const (
	// filesAtOnce is how many files of a job are fetched at a time.
	filesAtOnce = 8
	// resultDownload is the name of the durable result that says what was downloaded: the only names that Process
	// opens (R3).
	resultDownload = "download"
)

// downloaded is what a job's files came to.
type downloaded struct {
	List  string `json:"list"` // key of the list of staged files, in the order of the submission
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
}

// Download fetches every file of a job into staging, with all its digests in one pass, and checks size and digest
// where the depositor gave them. It goes on inside a file where an earlier attempt stopped.
type Download struct {
	base.Worker
	payloads payloads
	volume   volume
}

// Stage implements base.Handler.
func (w *Download) Stage() registry.Stage { return registry.Download }

// Work implements base.Handler.
func (w *Download) Work(ctx context.Context, item *base.Item) error {
	room, err := w.room(item)
	if err != nil {
		return err
	}
	store := room.Within(w.payloads.staging)
	_, files := item.Transfer()
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(filesAtOnce)
	var bad faults
	err = w.payloads.each(ctx, item, func(m member) error {
		group.Go(func() error {
			err := w.fetch(gctx, item, store, m)
			if err == nil {
				files.Add(1)
				return nil
			}
			return bad.keep(fmt.Errorf("file %d, %s: %w", m.seq, m.name, err))
		})
		return gctx.Err()
	})
	if werr := errors.Join(group.Wait(), bad.err()); werr != nil {
		return werr
	}
	if err != nil {
		return err
	}
	return w.finish(ctx, item)
}

// faults gathers what is wrong with a deposit, so that its producer hears of all of it at once.
type faults struct {
	mu    sync.Mutex
	first []error
	more  int
}

// keep takes a content fault and returns nil; any other error it returns as it is.
func (f *faults) keep(err error) error {
	const kept = 10
	var fault interface{ ContentFault() bool }
	if !errors.As(err, &fault) || !fault.ContentFault() {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.first) < kept {
		f.first = append(f.first, err)
	} else {
		f.more++
	}
	return nil
}

func (f *faults) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := errors.Join(f.first...)
	if f.more > 0 {
		err = errors.Join(err, fmt.Errorf("and %d more files", f.more))
	}
	return err
}

// room is what Provision reserved; more is asked for when the files turn out larger.
func (w *Download) room(item *base.Item) (*staging.Room, error) {
	var granted int64
	if _, err := item.Result(resultReserved, &granted); err != nil {
		return nil, err
	}
	return staging.NewRoom(granted, 0, func(ctx context.Context, bytes int64) error {
		return w.volume.reserve(ctx, item, bytes, w.volume.full)
	}), nil
}

// fetch brings one file in, unless an earlier attempt has it, or goes on where that one stopped.
func (w *Download) fetch(ctx context.Context, item *base.Item, store storage.Store, m member) error {
	bytes, _ := item.Transfer()
	if have, ok, err := w.have(ctx, item, m.seq); err != nil {
		return err
	} else if ok {
		bytes.Add(have.SizeBytes)
		return nil
	}
	m.wanted.Algorithms = []string{item.Spec().Profile.Digests()}
	f := staging.Fetch{
		Source: w.payloads.source, Store: store, Key: staging.FileKey(item.Lease(), "files", m.seq), Wanted: m.wanted,
		Save: func(ctx context.Context, c staging.Checkpoint) error {
			return base.Put(ctx, item, partKey(m.seq), c)
		},
		Moved: bytes.Add,
	}
	if c, ok, err := base.Get[staging.Checkpoint](ctx, item, partKey(m.seq)); err != nil {
		return err
	} else if ok {
		f.From = &c
	}
	file, err := f.Run(ctx)
	if err != nil {
		return err
	}
	file.Seq, file.Name, file.MIMEType = m.seq, m.name, m.mime
	return base.Put(ctx, item, fileKey(m.seq), file)
}

// have returns a file that is staged already, by this attempt or one before it.
func (w *Download) have(ctx context.Context, item *base.Item, seq int64) (staging.File, bool, error) {
	file, ok, err := base.Get[staging.File](ctx, item, fileKey(seq))
	if err != nil || !ok {
		return file, false, err
	}
	info, err := w.payloads.staging.Stat(ctx, file.Key)
	if errors.Is(err, storage.ErrNotFound) || err == nil && info.Size != file.SizeBytes {
		return file, false, nil
	}
	return file, err == nil, err
}

// finish writes the list that Process goes by, and corrects size and reservation to what really came.
func (w *Download) finish(ctx context.Context, item *base.Item) error {
	key := staging.Key(item.Lease(), "files.jsonl")
	list, err := staging.CreateList[staging.File](ctx, w.payloads.staging, key)
	if err != nil {
		return err
	}
	defer list.Close() //nolint:errcheck // nothing depends on a list that is given up
	sum := downloaded{List: key}
	err = w.payloads.each(ctx, item, func(m member) error {
		file, ok, err := base.Get[staging.File](ctx, item, fileKey(m.seq))
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("the note of file %d was lost; it is fetched again", m.seq)
		}
		sum.Files++
		sum.Bytes += file.SizeBytes
		return list.Add(file)
	})
	if err != nil {
		return err
	}
	if err := list.Commit(ctx); err != nil {
		return err
	}
	item.SetSize(sum.Bytes, sum.Files)
	item.SetDone(sum.Bytes, sum.Files)
	return item.SetResult(resultDownload, sum)
}

func fileKey(seq int64) string { return "file/" + strconv.FormatInt(seq, 10) }

func partKey(seq int64) string { return "part/" + strconv.FormatInt(seq, 10) }
