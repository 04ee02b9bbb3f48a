package workers

import (
	"context"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/room"
)

// unpackFactor is how much room a container is given for itself and what is in it. It is a guess
// that Process corrects as it unpacks.
const unpackFactor = 3

// Provision gives a job room on the staging volume before its first byte is fetched. A job for
// which there is none waits without a worker, and every waiting job is looked at, so that a small
// one passes a big one.
type Provision struct {
	base.Worker
	volume      room.Volume
	Unestimated float64 // the share for jobs of unknown size
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
