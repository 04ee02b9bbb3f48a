// Package fixityschedule schedules fixity checks: it enqueues a check for each stored file whose
// last check is too old. Damage is then found while another storage still has a good copy.
package fixityschedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/registry"
)

// The default settings of a [Scheduler].
const (
	defaultOutstanding = 100
	defaultKeep        = 24 * time.Hour
	defaultEvery       = 3 * time.Second
)

// Scheduler enqueues fixity checks that are due. It may run in several processes at once.
type Scheduler struct {
	Registry registry.Rechecking
	Log      *slog.Logger
	Bounds   registry.RecheckRequest
	Every    time.Duration // between two rounds
}

// New returns a Scheduler that has every stored file checked once per interval. With every = 0 only
// the checks that people request run.
func New(r registry.Rechecking, every time.Duration, log *slog.Logger) *Scheduler {
	return &Scheduler{Registry: r, Log: log, Every: defaultEvery, Bounds: registry.RecheckRequest{
		Every: every, Outstanding: defaultOutstanding, Keep: defaultKeep,
	}}
}

// Run enqueues due checks until ctx ends. It logs the first of a series of failures and the end of
// the series. It logs damage whenever the number of damaged files changes.
func (c *Scheduler) Run(ctx context.Context) {
	damaged := int64(0)
	look := func(ctx context.Context) error {
		done, err := c.Registry.Recheck(ctx, c.Bounds)
		if err != nil || ctx.Err() != nil {
			return err
		}
		switch {
		case done.Damaged == damaged:
		case done.Damaged > 0:
			c.Log.ErrorContext(ctx, "stored files are damaged; their failed checks say which, and what to do", "files", done.Damaged, "before", damaged)
		default:
			c.Log.InfoContext(ctx, "no stored file is damaged any more")
		}
		damaged = done.Damaged
		return nil
	}
	periodic.Job{
		Do: look, Every: c.Every, Log: c.Log,
		Fails: "enqueueing fixity checks failed; will retry", Works: "fixity checks are enqueued again",
	}.Run(ctx)
}
