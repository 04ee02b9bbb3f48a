package workers

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// resultReserved is the name of the durable result that says how much room a job was given.
const resultReserved = "reserved"

const (
	// unpackFactor is how much room a container is given for itself and what is in it. It is a guess that Process
	// corrects as it unpacks.
	unpackFactor = 3
	// roomWait is how long a job waits for room on a volume that somebody else has filled.
	roomWait = time.Minute
)

// unpacks says whether payloads of this type are taken apart.
func unpacks(t registry.PayloadType) bool {
	return t == registry.ContainerType || t == registry.BagType || t == registry.AutoType
}

// volume is the staging volume, on which room is reserved before it is used.
type volume struct {
	registry registry.Working
	staging  storage.Store
	name     string
	full     float64 // share that may be used and promised
}

// reserve promises the item bytes in all, or returns a *registry.NoSpaceError. staged is what it has written of them
// that the Registry does not know of: the volume counts it as used already.
func (v volume) reserve(ctx context.Context, item *base.Item, bytes, staged int64, full float64) error {
	return v.ask(ctx, item, registry.Reservation{Bytes: bytes, Threshold: full}, staged)
}

// ask fills in what the volume is like.
func (v volume) ask(ctx context.Context, item *base.Item, r registry.Reservation, staged int64) error {
	space, err := v.staging.Space(ctx)
	if err != nil && !errors.Is(err, storage.ErrUnlimited) {
		return fmt.Errorf("look at the staging volume: %w", err)
	}
	r.Volume, r.Used, r.Total = v.name, max(0, space.Used-staged), space.Total
	return v.registry.Reserve(ctx, item.Lease(), r)
}

// granted is what an item was given.
func granted(item *base.Item) (bytes int64, err error) {
	_, err = item.Result(resultReserved, &bytes)
	return bytes, err
}

// waitForRoom makes an item wait, uncounted, while the staging volume, or that of temporary files, is full, whoever filled it.
func waitForRoom(err error) error {
	if errors.Is(err, storage.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) {
		return base.Snooze(roomWait, registry.ReasonNoSpace, err.Error())
	}
	return err
}

// Provision gives a job room on the staging volume before its first byte is fetched. A job for which there is none
// waits without a worker, and every waiting job is looked at, so that a small one passes a big one.
type Provision struct {
	base.Worker
	volume      volume
	Unestimated float64 // the share for jobs of unknown size
}

// Stage implements base.Handler.
func (w *Provision) Stage() registry.Stage { return registry.Provision }

// Work implements base.Handler.
func (w *Provision) Work(ctx context.Context, item *base.Item) error {
	bytes, full := item.SizeBytes, w.volume.full
	if bytes < 0 {
		bytes, full = 0, w.Unestimated
	}
	if unpacks(item.Spec().Type) {
		bytes *= unpackFactor
	}
	if err := w.volume.reserve(ctx, item, bytes, 0, full); err != nil {
		return err
	}
	return item.SetResult(resultReserved, bytes)
}
