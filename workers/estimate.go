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
	// headsAtOnce is how many files of a job are asked for their size concurrently.
	headsAtOnce = 16
	// deferPriority is added to the priority number of a job whose size is unknown or very large,
	// as in Merritt.
	deferPriority = 10
	// veryLarge is the size from which a job lets others pass.
	veryLarge = 100 << 30
	// maxCredibleSize is the size from which a stated size is ignored: sums would overflow.
	maxCredibleSize = 1 << 50
	// resultDeferred records that a job was deferred, so that another estimate does not defer it
	// again.
	resultDeferred = "deferred"
)

// Estimate asks for the size of every file of a job without fetching it. It never fails a job: what
// it cannot ask is unknown, and Download judges it.
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
	_ = group.Wait() // no function returns an error
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, registry.ErrClaimLost) {
		return err
	}
	bytes, files := sum.bytes, sum.files
	if err != nil {
		bytes, files = -1, -1 // the manifest itself is at fault; Download reports it
	}
	item.SetSize(bytes, files)
	if err := w.deferLarge(item, bytes); err != nil {
		return err
	}
	return payload.Warn(item)
}

// sizeOf returns the size that the source states, or else the depositor's; -1 if neither is known.
func sizeOf(ctx context.Context, from source.Fetcher, m payload.Member) int64 {
	size := m.Wanted.SizeBytes
	if info, err := from.Head(ctx, m.Wanted.URL); err == nil && info.Size >= 0 {
		size = info.Size
	}
	return size
}

// sizes adds up sizes while all of them are known.
type sizes struct {
	mu    sync.Mutex
	bytes int64 // -1 unknown
	files int64
}

func (s *sizes) add(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files++
	if size < 0 || s.bytes < 0 || size >= maxCredibleSize-s.bytes {
		s.bytes = -1
		return
	}
	s.bytes += size
}

// deferLarge defers a job of unknown or very large size, once.
func (w *Estimate) deferLarge(item *base.Item, size int64) error {
	if size >= 0 && size < veryLarge {
		return nil
	}
	var already bool
	if _, err := item.Result(resultDeferred, &already); err != nil || already {
		return err
	}
	item.AddPriority(deferPriority)
	return item.SetResult(resultDeferred, true)
}
