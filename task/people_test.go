package task_test

import (
	"context"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/remote"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// people is the Registry for those who submit, look, and act. The actor of a request is "curator" or
// "admin".
type people interface {
	task.Adding
	task.Preparing
	looking
	acting
}

type looking interface {
	Functions(ctx context.Context) ([]registry.Function, error)
	Item(ctx context.Context, id string) (registry.WorkItem, error)
	Items(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.WorkItem], error)
	Attempts(ctx context.Context, itemID string) ([]registry.Attempt, error)
	Log(ctx context.Context, q registry.LogQuery) (registry.Page[registry.LogLine], error)
	Events(ctx context.Context, itemID string, after int64, limit int) ([]registry.Event, error)
	Why(ctx context.Context, id string) (registry.Why, error)
	GraphNodes(ctx context.Context, graphID, after string, limit int) (registry.GraphPart, error)
	Around(ctx context.Context, itemID string, limit int) (registry.GraphPart, error)
	QueueStatus(ctx context.Context) (registry.QueueStatus, error)
	Failures(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.FailureGroup], error)
}

type acting interface {
	Command(ctx context.Context, c registry.Command) (registry.WorkItem, error)
	AddHold(ctx context.Context, h registry.Hold) error
	RemoveHold(ctx context.Context, scope registry.HoldScope, key, actor string) error
	SetAccepting(ctx context.Context, a registry.Accepting) error
	Drain(ctx context.Context, d registry.Drain) error
	SetLimit(ctx context.Context, l registry.Limit) error
	AddSchedule(ctx context.Context, r registry.ScheduleRequest) (registry.Schedule, error)
	RunSchedule(ctx context.Context, r registry.ScheduleRun) (registry.Firing, error)
}

var _ people = (*sqlstore.Store)(nil)

// overAPI is people with tokens: the admin's for acts and lists, and one of each actor's to submit.
type overAPI struct {
	*client.Client
	submit map[string]*remote.Registry // by actor
}

var _ people = overAPI{}

func (o overAPI) by(actor string) *remote.Registry {
	if r, ok := o.submit[actor]; ok {
		return r
	}
	return o.submit["admin"]
}

// AddTask implements task.Adding.
func (o overAPI) AddTask(ctx context.Context, n registry.NewTask) (registry.WorkItem, error) {
	return o.by(n.Actor).AddTask(ctx, n)
}

// Prepare implements task.Preparing.
func (o overAPI) Prepare(ctx context.Context, g registry.Graph) (registry.PreparedGraph, error) {
	return o.by(g.Actor).Prepare(ctx, g)
}

// RemoveHold is as in registry.Holding.
func (o overAPI) RemoveHold(ctx context.Context, scope registry.HoldScope, key, _ string) error {
	return o.Client.RemoveHold(ctx, scope, key)
}

// AddSchedule is as in registry.Scheduling.
func (o overAPI) AddSchedule(ctx context.Context, r registry.ScheduleRequest) (registry.Schedule, error) {
	return o.Client.AddSchedule(ctx, wire.NewScheduleRequest{Name: r.Name, ScheduleRequest: wire.ScheduleRequest{
		Cron: r.Cron, Zone: r.Zone, Task: wire.ScheduleTask(*r.Task), JitterSeconds: r.JitterSeconds, Overlap: r.Overlap, CatchUp: r.CatchUp,
	}}, r.DryRun)
}

// RunSchedule is as in registry.Scheduling.
func (o overAPI) RunSchedule(ctx context.Context, r registry.ScheduleRun) (registry.Firing, error) {
	return o.Client.RunSchedule(ctx, r.Name, r.IdempotencyKey)
}

// Drain is as in registry.Commanding.
func (o overAPI) Drain(ctx context.Context, d registry.Drain) error {
	return o.Client.Drain(ctx, d.Reason, max(0, time.Until(d.Until)))
}
