package workers

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/workers/payload"
)

const (
	// headsAtOnce is how many files of a job are asked for their size at a time.
	headsAtOnce = 16
	// laterBy is added to the priority number of a job whose size is unknown or very large, as in
	// Merritt.
	laterBy = 10
	// veryLarge is the size from which a job makes way for others.
	veryLarge = 100 << 30
	// incredible is the size from which a claim counts for nothing: sums of it could not be added
	// up.
	incredible = 1 << 50
	// resultDeferred says that a job was put back already, so that estimating it again does not do
	// so once more.
	resultDeferred = "deferred"
)

// Estimate asks for the size of every file of a job, without fetching any. It never fails a job:
// what cannot be asked is unknown here, and judged by Download.
type Estimate struct {
	base.Worker
	payloads payload.Files
}

// Stage implements base.Handler.
func (w *Estimate) Stage() registry.Stage { return registry.Estimate }

// Work implements base.Handler.
func (w *Estimate) Work(ctx context.Context, item *base.Item) error {
	var sum sizes
	from := w.payloads.Sources(item.Collection)
	progress := item.Progress("sizes asked for", "files")
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(headsAtOnce)
	err := w.payloads.Each(ctx, item, func(m payload.Member) error {
		group.Go(func() error {
			defer progress.Add(1)
			sum.add(sizeOf(gctx, from, m))
			return nil
		})
		return gctx.Err()
	})
	_ = group.Wait() // nothing of it fails
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, registry.ErrClaimLost) {
		return err
	}
	bytes, files := sum.bytes, sum.files
	if err != nil {
		bytes, files = -1, -1 // the manifest itself is the trouble; Download says what it is
	}
	item.SetSize(bytes, files)
	if err := w.makeWay(item, bytes); err != nil {
		return err
	}
	return payload.Warn(item)
}

// sizeOf is what the source says, else what the depositor does; -1 when neither can be relied on.
func sizeOf(ctx context.Context, from source.Fetcher, m payload.Member) int64 {
	size := m.Wanted.SizeBytes
	if info, err := from.Head(ctx, m.Wanted.URL); err == nil && info.Size >= 0 {
		size = info.Size
	}
	return size
}

// sizes adds up sizes as long as all of them are known.
type sizes struct {
	mu    sync.Mutex
	bytes int64 // -1 unknown
	files int64
}

func (s *sizes) add(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files++
	if size < 0 || s.bytes < 0 || size >= incredible-s.bytes {
		s.bytes = -1
		return
	}
	s.bytes += size
}

// makeWay lets jobs of known and ordinary size go first, once.
func (w *Estimate) makeWay(item *base.Item, size int64) error {
	if size >= 0 && size < veryLarge {
		return nil
	}
	var already bool
	if _, err := item.Result(resultDeferred, &already); err != nil || already {
		return err
	}
	item.AddPriority(laterBy)
	return item.SetResult(resultDeferred, true)
}
