package api

import (
	"context"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/valid"
)

// Schedules is what the page of schedules shows and does: as the caller's role allows, and in the
// caller's name.
type Schedules struct {
	registry registry.Scheduling // limited to what the caller may see
	access   *access.Table
}

// MaySee reports whether the caller may list schedules.
func (s Schedules) MaySee(ctx context.Context) bool {
	return s.access.Permit(ctx, "list-schedules") == nil
}

// MayAct reports whether the caller may run, pause and resume schedules.
func (s Schedules) MayAct(ctx context.Context) bool {
	return s.access.Permit(ctx, "pause-schedule") == nil
}

// List returns all schedules by name.
func (s Schedules) List(ctx context.Context) ([]registry.Schedule, error) {
	if err := s.access.Permit(ctx, "list-schedules"); err != nil {
		return nil, err
	}
	return s.registry.Schedules(ctx)
}

// Pause is PauseSchedule of registry.Scheduling; the actor is the caller.
func (s Schedules) Pause(ctx context.Context, name, reason string) error {
	if err := s.access.Permit(ctx, "pause-schedule"); err != nil {
		return err
	}
	reason = strings.TrimSpace(reason)
	if err := endpoint.Invalid("the schedule was not paused", valid.Text("reason", reason, valid.MaxText)...); err != nil {
		return err
	}
	_, err := s.registry.PauseSchedule(ctx, name, reason, access.Actor(ctx))
	return err
}

// Resume is ResumeSchedule of registry.Scheduling; the actor is the caller.
func (s Schedules) Resume(ctx context.Context, name string) error {
	if err := s.access.Permit(ctx, "resume-schedule"); err != nil {
		return err
	}
	_, err := s.registry.ResumeSchedule(ctx, name, access.Actor(ctx))
	return err
}

// Run is RunSchedule of registry.Scheduling; the actor is the caller.
func (s Schedules) Run(ctx context.Context, name, idempotencyKey string) (registry.Firing, error) {
	if err := s.access.Permit(ctx, "run-schedule"); err != nil {
		return registry.Firing{}, err
	}
	return s.registry.RunSchedule(ctx, registry.ScheduleRun{Name: name, Actor: access.Actor(ctx), IdempotencyKey: idempotencyKey})
}
