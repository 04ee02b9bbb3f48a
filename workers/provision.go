package workers

import (
	"context"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/room"
)

// unpackFactor is how many times its size a container reserves for itself and its contents. It is
// an estimate that Process corrects while it unpacks.
const unpackFactor = 3

// Provision reserves room on the staging volume before a job's first byte is fetched. A job without
// room waits without a worker. All waiting jobs are considered, so that a small one passes a large
// one.
type Provision struct {
	base.Worker
	volume      room.Volume
	Unestimated float64 // the share of the volume for jobs of unknown size
}

// Stage implements base.Handler.
func (w *Provision) Stage() registry.Stage { return registry.Provision }

// Work implements base.Handler.
func (w *Provision) Work(ctx context.Context, item *base.Item) error {
	bytes, full := item.SizeBytes, w.volume.Full
	if bytes < 0 {
		bytes, full = 0, w.Unestimated
	}
	if payload.Unpacks(item.Spec().Type) {
		bytes *= unpackFactor
	}
	if err := w.volume.Reserve(ctx, item, bytes, 0, full); err != nil {
		return err
	}
	return item.SetResult(room.NameReserved, bytes)
}
