package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// AddSchedule creates a schedule. The actor is the token. A repeat of the same request returns the
// schedule; registry.ErrScheduleExists if another one has the name.
//
// With dryRun it changes nothing: it returns the schedule as it would be, with its next times, or the
// refusal.
func (c *Client) AddSchedule(ctx context.Context, r wire.NewScheduleRequest, dryRun bool) (registry.Schedule, error) {
	var out registry.Schedule
	err := c.ask(ctx, request{method: http.MethodPost, path: "/schedules", query: tried(dryRun)}, r, &out)
	return out, err
}

func tried(dryRun bool) url.Values {
	if !dryRun {
		return nil
	}
	return values("dry_run", "true")
}

// EditSchedule replaces what a schedule says; registry.ErrScheduleChanged if it has another version
// than the request. dryRun is as in AddSchedule.
func (c *Client) EditSchedule(ctx context.Context, name string, r wire.ScheduleRequest, dryRun bool) (registry.Schedule, error) {
	var out registry.Schedule
	err := c.ask(ctx, request{method: http.MethodPut, path: in("schedules", name), query: tried(dryRun)}, r, &out)
	return out, err
}

// Schedules lists all schedules by name.
func (c *Client) Schedules(ctx context.Context) ([]registry.Schedule, error) {
	p, err := get[registry.Page[registry.Schedule]](ctx, c, "/schedules", nil)
	return p.Rows, err
}

// Schedule returns a schedule; registry.ErrNotFound if there is none.
func (c *Client) Schedule(ctx context.Context, name string) (registry.Schedule, error) {
	return get[registry.Schedule](ctx, c, in("schedules", name), nil)
}

// RemoveSchedule removes a schedule; registry.ErrNotFound if there is none.
func (c *Client) RemoveSchedule(ctx context.Context, name string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: in("schedules", name)}, nil, nil)
}

// PauseSchedule stops a schedule until ResumeSchedule.
func (c *Client) PauseSchedule(ctx context.Context, name, reason string) (registry.Schedule, error) {
	var out registry.Schedule
	err := c.ask(ctx, request{method: http.MethodPut, path: in("schedules", name, "pause")}, wire.PauseRequest{Reason: reason}, &out)
	return out, err
}

// ResumeSchedule ends a pause.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (registry.Schedule, error) {
	var out registry.Schedule
	err := c.ask(ctx, request{method: http.MethodDelete, path: in("schedules", name, "pause")}, nil, &out)
	return out, err
}

// RunSchedule fires a schedule now. With an idempotency key ("" for none), a repeat gets the first
// one's answer.
func (c *Client) RunSchedule(ctx context.Context, name, idempotencyKey string) (registry.Firing, error) {
	var out registry.Firing
	err := c.ask(ctx, request{method: http.MethodPost, path: in("schedules", name, "runs"), header: keyed(idempotencyKey)}, nil, &out)
	return out, err
}

// Firings lists past firings of a schedule, newest first. after is the Next of the page before;
// limit 0 means 50.
func (c *Client) Firings(ctx context.Context, name, after string, limit int) (registry.Page[registry.Firing], error) {
	return get[registry.Page[registry.Firing]](ctx, c, in("schedules", name, "firings"), values("after", after, "limit", number(limit)))
}
