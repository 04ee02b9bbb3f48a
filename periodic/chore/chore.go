// Package chore runs a function at intervals until its context ends, and logs when it begins to
// fail and when it works again.
package chore

import (
	"context"
	"log/slog"
	"time"
)

// Chore is one such thing. All fields must be set.
type Chore struct {
	Do    func(ctx context.Context) error
	Every time.Duration // between two times; one that takes longer is followed by the next at once
	Log   *slog.Logger
	// Fails and Works say in the log that it has begun to fail, and that it works again. Trouble is
	// told once until it is over.
	Fails, Works string
}

// Run does it at once and then again and again until ctx ends.
func (c Chore) Run(ctx context.Context) {
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	failing := false
	for {
		err := c.Do(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			c.Log.WarnContext(ctx, c.Fails, "err", err) //nolint:sloglint // whoever makes the chore writes it
		case err == nil && failing:
			c.Log.InfoContext(ctx, c.Works) //nolint:sloglint // as above
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
