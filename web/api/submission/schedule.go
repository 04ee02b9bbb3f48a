package submission

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) scheduleRoutes() {
	const path = "/schedules/{name}"
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-schedules", Method: http.MethodGet, Path: "/schedules", Summary: "List schedules and their next times"}, s.schedules)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-schedule", Method: http.MethodGet, Path: path, Summary: "Show a schedule, its next times and its last firing"}, s.schedule)
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-firings", Method: http.MethodGet, Path: path + "/firings", Summary: "List past firings of a schedule, newest first"}, s.firings)
	endpoint.Register(s.Server, endpoint.Operation{ID: "add-schedule", Method: http.MethodPost, Path: "/schedules", Status: http.StatusCreated, Summary: "Create a schedule"}, s.addSchedule)
	endpoint.Register(s.Server, endpoint.Operation{ID: "edit-schedule", Method: http.MethodPut, Path: path, Summary: "Replace what a schedule says"}, s.editSchedule)
	endpoint.Register(s.Server, endpoint.Operation{ID: "remove-schedule", Method: http.MethodDelete, Path: path, Summary: "Delete a schedule and its past firings; its items stay"}, s.removeSchedule)
	endpoint.Register(s.Server, endpoint.Operation{ID: "pause-schedule", Method: http.MethodPut, Path: path + "/pause", Summary: "Pause a schedule; its times pass without effect"}, s.pauseSchedule)
	endpoint.Register(s.Server, endpoint.Operation{ID: "resume-schedule", Method: http.MethodDelete, Path: path + "/pause", Summary: "Resume a schedule"}, s.resumeSchedule)
	endpoint.Register(s.Server, endpoint.Operation{ID: "run-schedule", Method: http.MethodPost, Path: path + "/runs", Status: http.StatusAccepted, Summary: "Fire a schedule now, also a paused one"}, s.runSchedule)
}

// ScheduleName names a schedule in a path.
type ScheduleName struct {
	Name string `path:"name" maxLength:"200"`
}

func (s *Service) schedules(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[registry.Schedule]], error) {
	all, err := s.Registry.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(all), nil
}

func (s *Service) schedule(ctx context.Context, in *ScheduleName) (*endpoint.Output[registry.Schedule], error) {
	return endpoint.Answered(s.Registry.Schedule(ctx, in.Name))
}

type firingsInput struct {
	ScheduleName
	endpoint.Paging
}

func (s *Service) firings(ctx context.Context, in *firingsInput) (*endpoint.Output[registry.Page[registry.Firing]], error) {
	if _, err := s.Registry.Schedule(ctx, in.Name); err != nil {
		return nil, err
	}
	page, err := s.Registry.Firings(ctx, in.Name, in.After, in.Size())
	if err != nil {
		return nil, in.BadCursor(err)
	}
	return endpoint.Page(page), nil
}

// scheduleOf converts a request to the Registry's, or returns a problem with its faults.
func scheduleOf(ctx context.Context, name string, r wire.ScheduleRequest) (registry.ScheduleRequest, error) {
	var faults []wire.Fault
	for _, f := range []struct{ at, text string }{{"title", r.Task.Title}, {"subject", r.Task.Subject}, {"collection", r.Task.Collection}} {
		faults = append(faults, valid.Text("body.task."+f.at, f.text, valid.MaxText)...)
	}
	faults = append(faults, valid.Priority("body.task.priority", r.Task.Priority)...)
	out := registry.ScheduleRequest{ScheduleSpec: r.Spec(), Name: name, Version: r.Version, Actor: access.Actor(ctx)}
	return out, endpoint.Invalid("the schedule was not changed", faults...)
}

// ScheduleTry asks for a dry run.
type ScheduleTry struct {
	DryRun bool `query:"dry_run" doc:"Only judge the request: answer with the schedule as it would be, and its next times, and change nothing"`
}

type addScheduleInput struct {
	ScheduleTry
	Body wire.NewScheduleRequest
}

func (s *Service) addSchedule(ctx context.Context, in *addScheduleInput) (*endpoint.Output[registry.Schedule], error) {
	r, err := scheduleOf(ctx, in.Body.Name, in.Body.ScheduleRequest)
	if err != nil {
		return nil, err
	}
	r.DryRun = in.DryRun
	made, err := s.Registry.AddSchedule(ctx, r)
	if in.DryRun {
		return scheduleAnswer(made, err)
	}
	return s.scheduleChanged(ctx, "create", made, err)
}

type editScheduleInput struct {
	ScheduleName
	ScheduleTry
	Body wire.ScheduleRequest
}

func (s *Service) editSchedule(ctx context.Context, in *editScheduleInput) (*endpoint.Output[registry.Schedule], error) {
	r, err := scheduleOf(ctx, in.Name, in.Body)
	if err != nil {
		return nil, err
	}
	// The errors of an unknown schedule and an unknown function or collection are alike.
	if _, err := s.Registry.Schedule(ctx, in.Name); err != nil {
		return nil, err
	}
	r.DryRun = in.DryRun
	edited, err := s.Registry.EditSchedule(ctx, r)
	if in.DryRun {
		return scheduleAnswer(edited, err)
	}
	return s.scheduleChanged(ctx, "edit", edited, err)
}

// scheduleAnswer answers with a schedule, or with what is wrong with its task.
func scheduleAnswer(b registry.Schedule, err error) (*endpoint.Output[registry.Schedule], error) {
	var name *registry.UnknownFunctionError
	var args *registry.ArgumentError
	if errors.As(err, &name) || errors.As(err, &args) {
		return nil, endpoint.TaskProblem(err, "body.task")
	}
	return endpoint.Answered(b, err)
}

// scheduleChanged answers a change of a schedule.
func (s *Service) scheduleChanged(ctx context.Context, act string, b registry.Schedule, err error) (*endpoint.Output[registry.Schedule], error) {
	if err == nil {
		s.Log.InfoContext(ctx, "schedule changed", "schedule", b.Name, "act", act, "actor", access.Actor(ctx))
	}
	return scheduleAnswer(b, err)
}

func (s *Service) removeSchedule(ctx context.Context, in *ScheduleName) (*struct{}, error) {
	err := s.Registry.RemoveSchedule(ctx, in.Name, access.Actor(ctx))
	if err == nil {
		s.Log.InfoContext(ctx, "schedule removed", "schedule", in.Name, "actor", access.Actor(ctx))
	}
	return nil, err
}

type pauseScheduleInput struct {
	ScheduleName
	Body wire.PauseRequest
}

func (s *Service) pauseSchedule(ctx context.Context, in *pauseScheduleInput) (*endpoint.Output[registry.Schedule], error) {
	reason := strings.TrimSpace(in.Body.Reason)
	faults := valid.Text("body.reason", reason, valid.MaxText)
	if reason == "" {
		faults = append(faults, wire.Fault{Location: "body.reason", Message: "missing: give the reason; it is shown with the schedule"})
	}
	if err := endpoint.Invalid("the schedule was not paused", faults...); err != nil {
		return nil, err
	}
	paused, err := s.Registry.PauseSchedule(ctx, in.Name, reason, access.Actor(ctx))
	return s.scheduleChanged(ctx, "pause", paused, err)
}

func (s *Service) resumeSchedule(ctx context.Context, in *ScheduleName) (*endpoint.Output[registry.Schedule], error) {
	resumed, err := s.Registry.ResumeSchedule(ctx, in.Name, access.Actor(ctx))
	return s.scheduleChanged(ctx, "resume", resumed, err)
}

type runScheduleInput struct {
	ScheduleName
	Key string `header:"Idempotency-Key" maxLength:"200" doc:"A repeat with the same key gets the first one's answer"`
}

func (s *Service) runSchedule(ctx context.Context, in *runScheduleInput) (*endpoint.Output[registry.Firing], error) {
	if err := endpoint.Invalid("nothing was submitted", valid.Text("header.Idempotency-Key", in.Key, valid.MaxText)...); err != nil {
		return nil, err
	}
	f, err := s.Registry.RunSchedule(ctx, registry.ScheduleRun{Name: in.Name, Actor: access.Actor(ctx), IdempotencyKey: in.Key})
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "schedule run", "schedule", in.Name, "item", f.ItemID, "actor", access.Actor(ctx))
	return &endpoint.Output[registry.Firing]{Body: f}, nil
}
