// Package room reserves room on the staging volume for items.
//
// Room is reserved in the Registry before it is used (R24). A reservation is the total of an item,
// not an addition. If there is no room, the item waits without a worker and uncounted. The package
// does not decide who gets room first: the Registry does.
package room

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

// NameReserved is the durable result with the bytes that a job was granted.
const NameReserved = "reserved"

// retryWait is how long a job waits for room on a full volume.
const retryWait = time.Minute

// Volume is the staging volume.
type Volume struct {
	Registry registry.Working
	Staging  storage.Store
	Name     string
	Full     float64 // share that may be used and reserved
}

// Reserve sets the item's reservation to bytes in total, or returns a *registry.NoSpaceError.
// staged is how much of that is written without the Registry knowing: the volume already counts it
// as used.
func (v Volume) Reserve(ctx context.Context, item *base.Item, bytes, staged int64, full float64) error {
	return v.Ask(ctx, item, registry.Reservation{Bytes: bytes, Threshold: full}, staged)
}

// Ask is Reserve for r. It sets the volume, its usage and its size.
func (v Volume) Ask(ctx context.Context, item *base.Item, r registry.Reservation, staged int64) error {
	space, err := v.Staging.Space(ctx)
	if err != nil && !errors.Is(err, storage.ErrUnlimited) {
		return fmt.Errorf("read the space of the staging volume: %w", err)
	}
	r.Volume, r.Used, r.Total = v.Name, max(0, space.Used-staged), space.Total
	return v.Registry.Reserve(ctx, item.Lease(), r)
}

// Granted returns how many bytes an item was granted.
func Granted(item *base.Item) (bytes int64, err error) {
	_, err = item.Result(NameReserved, &bytes)
	return bytes, err
}

// Wait turns the error of a full staging volume, or a full volume of temporary files, into an
// uncounted wait. It returns any other error unchanged.
func Wait(err error) error {
	if errors.Is(err, storage.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) {
		return base.Snooze(retryWait, registry.ReasonNoSpace, err.Error())
	}
	return err
}
