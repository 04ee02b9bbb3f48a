// Package room reserves room on the staging volume for items.
//
// Room is reserved in the Registry before it is used (R24), in all for an item and not by the part.
// Where there is none the item waits without a worker and without counting a try.
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

// NameReserved is the name of the durable result that says how much room a job was given.
const NameReserved = "reserved"

// wait is how long a job waits for room on a full volume.
const wait = time.Minute

// Volume is the staging volume.
type Volume struct {
	Registry registry.Working
	Staging  storage.Store
	Name     string
	Full     float64 // share that may be used and promised
}

// Reserve promises the item bytes in all, or returns a *registry.NoSpaceError. staged is what it
// has written of them that the Registry does not know of: the volume counts it as used already.
func (v Volume) Reserve(ctx context.Context, item *base.Item, bytes, staged int64, full float64) error {
	return v.Ask(ctx, item, registry.Reservation{Bytes: bytes, Threshold: full}, staged)
}

// Ask is Reserve of r, whose volume, use and size it fills in.
func (v Volume) Ask(ctx context.Context, item *base.Item, r registry.Reservation, staged int64) error {
	space, err := v.Staging.Space(ctx)
	if err != nil && !errors.Is(err, storage.ErrUnlimited) {
		return fmt.Errorf("look at the staging volume: %w", err)
	}
	r.Volume, r.Used, r.Total = v.Name, max(0, space.Used-staged), space.Total
	return v.Registry.Reserve(ctx, item.Lease(), r)
}

// Granted returns how many bytes an item was given.
func Granted(item *base.Item) (bytes int64, err error) {
	_, err = item.Result(NameReserved, &bytes)
	return bytes, err
}

// Wait makes of an error that the staging volume, or that of temporary files, is full one that has
// the item wait, uncounted. It returns any other error as it is.
func Wait(err error) error {
	if errors.Is(err, storage.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) {
		return base.Snooze(wait, registry.ReasonNoSpace, err.Error())
	}
	return err
}
