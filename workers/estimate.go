package workers

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
)

const (
	// headsAtOnce is how many files of a job are asked for their size at a time.
	headsAtOnce = 16
	// laterBy is added to the priority number of a job whose size is unknown or very large, as in Merritt.
	laterBy = 10
	// veryLarge is the size from which a job makes way for others.
	veryLarge = 100 << 30
	// resultDeferred says that a job was put back already, so that estimating it again does not do so once more.
	resultDeferred = "deferred"
)

// Estimate asks for the size of every file of a job, without fetching any. It never fails a job: what cannot be asked
// is unknown here, and judged by Download.
type Estimate struct {
	base.Worker
	payloads payloads
}

// Stage implements base.Handler.
func (w *Estimate) Stage() registry.Stage { return registry.Estimate }

// Work implements base.Handler.
func (w *Estimate) Work(ctx context.Context, item *base.Item) error {
	var bytes, files, unknown atomic.Int64
	progress := item.Progress("sizes asked for", "files")
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(headsAtOnce)
	err := w.payloads.each(ctx, item, func(m member) error {
		group.Go(func() error {
			defer progress.Add(1)
			files.Add(1)
			info, err := w.payloads.source.Head(gctx, m.wanted.URL)
			switch {
			case gctx.Err() != nil:
				return context.Cause(gctx)
			case err == nil && info.Size >= 0:
				bytes.Add(info.Size)
			case m.wanted.SizeBytes >= 0:
				bytes.Add(m.wanted.SizeBytes)
			default:
				unknown.Add(1)
			}
			return nil
		})
		return gctx.Err()
	})
	if werr := group.Wait(); werr != nil {
		return werr
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	size, count := bytes.Load(), files.Load()
	if err != nil || unknown.Load() > 0 {
		size = -1
	}
	if err != nil {
		count = -1 // the manifest itself is the trouble; Download says what it is
	}
	item.SetSize(size, count)
	return w.makeWay(item, size)
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
