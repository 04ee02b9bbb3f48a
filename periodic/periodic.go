// Package periodic runs a function at intervals until its context ends. It logs when the function
// begins to fail and when it works again.
package periodic

import (
	"context"
	"log/slog"
	"time"
)

// Job is a function that runs at intervals. All fields must be set.
type Job struct {
	Do    func(ctx context.Context) error
	Every time.Duration // from one start to the next; a run that takes longer delays the next
	Log   *slog.Logger
	// Fails is the log message for the first of consecutive failures, Works that for the first
	// success after them.
	Fails, Works string
}

// Run calls Do at once, and then at each interval until ctx ends.
func (j Job) Run(ctx context.Context) {
	tick := time.NewTicker(j.Every)
	defer tick.Stop()
	failing := false
	for {
		err := j.Do(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			j.Log.WarnContext(ctx, j.Fails, "err", err) //nolint:sloglint // the maker of the job writes the message
		case err == nil && failing:
			j.Log.InfoContext(ctx, j.Works) //nolint:sloglint // as above
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
