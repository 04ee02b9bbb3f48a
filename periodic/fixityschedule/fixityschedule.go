// Package fixityschedule schedules fixity checks: it makes items for stored files whose last check is too
// old, so that damage is found while another storage still has good bytes.
package fixityschedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/registry"
)

// The defaults of a [Rechecker].
const (
	defaultOutstanding = 100
	defaultKeep        = 24 * time.Hour
	defaultLook        = 3 * time.Second
)

// Rechecker queues checks of stored files that are due. It may run in several processes at once.
type Rechecker struct {
	Registry registry.Rechecking
	Log      *slog.Logger
	Bounds   registry.RecheckRequest
	Look     time.Duration // between two looks
}

// New returns a rechecker that has every file read once in a while (0: only what people ask for).
func New(r registry.Rechecking, every time.Duration, log *slog.Logger) *Rechecker {
	return &Rechecker{Registry: r, Log: log, Look: defaultLook, Bounds: registry.RecheckRequest{
		Every: every, Outstanding: defaultOutstanding, Keep: defaultKeep,
	}}
}

// Run looks for files that are due until ctx ends. Trouble is logged once until it is over, damage
// whenever there is more or less of it than before.
func (c *Rechecker) Run(ctx context.Context) {
	damaged := int64(0)
	look := func(ctx context.Context) error {
		done, err := c.Registry.Recheck(ctx, c.Bounds)
		if err != nil || ctx.Err() != nil {
			return err
		}
		switch {
		case done.Damaged == damaged:
		case done.Damaged > 0:
			c.Log.ErrorContext(ctx, "stored files are damaged; their checks say which, and what to do", "files", done.Damaged, "before", damaged)
		default:
			c.Log.InfoContext(ctx, "no stored file is damaged any more")
		}
		damaged = done.Damaged
		return nil
	}
	periodic.Job{
		Do: look, Every: c.Look, Log: c.Log,
		Fails: "checks of stored files cannot be queued", Works: "checks of stored files are queued again",
	}.Run(ctx)
}
