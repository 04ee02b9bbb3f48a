// Package schedule fires the schedules of a Registry when they are due.
package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/registry"
)

// Every is the interval at which a Timer looks for due schedules. A firing is late by no more than
// this, unless the database is slow.
const Every = time.Second

// Timer fires schedules. It may run in several processes at once: each time of a schedule fires
// once.
type Timer struct {
	Registry registry.SchedulesFiring
	Log      *slog.Logger
}

// Run fires due schedules until ctx ends. It logs what was not submitted, the first of a series of
// errors and the end of the series.
func (t *Timer) Run(ctx context.Context) {
	periodic.Job{
		Do: t.fire, Every: Every, Log: t.Log,
		Fails: "firing schedules failed; will retry", Works: "schedules fire again",
	}.Run(ctx)
}

func (t *Timer) fire(ctx context.Context) error {
	fired, err := t.Registry.FireSchedules(ctx)
	for _, f := range fired {
		switch f.Outcome {
		case registry.FiringSubmitted:
			t.Log.InfoContext(ctx, "schedule fired", "schedule", f.Schedule, "at", f.Tick, "item", f.ItemID)
		case registry.FiringFailed:
			t.Log.ErrorContext(ctx, "schedule could not submit; correct the schedule, or start the program that serves its function", "schedule", f.Schedule, "at", f.Tick, "reason", f.Reason)
		case registry.FiringSkipped, registry.FiringMissed:
			t.Log.WarnContext(ctx, "schedule submitted nothing", "schedule", f.Schedule, "at", f.Tick, "outcome", f.Outcome, "reason", f.Reason)
		}
	}
	return err
}
