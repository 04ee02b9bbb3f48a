package submission

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/redact"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

// submitTask is the operation that submits a task. Who may call it may also prepare tasks in graphs.
const submitTask = "submit-task"

func (s *Service) taskRoutes() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "list-functions", Method: http.MethodGet, Path: "/functions", Summary: "List the functions that tasks can call",
	}, s.functions)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: submitTask, Method: http.MethodPost, Path: "/tasks", Status: http.StatusAccepted, Summary: "Submit a task: a call of a function",
	}, s.submitTask)
}

func (s *Service) functions(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[wire.Function]], error) {
	all, err := s.Registry.Functions(ctx)
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(wire.Each(all, wire.FunctionOf)), nil
}

type taskInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"A repeat with the same key gets the first one's answer"`
	Body wire.TaskRequest
}

// submitTask accepts a task. When it answers, the task is committed.
func (s *Service) submitTask(ctx context.Context, in *taskInput) (*endpoint.Output[registry.WorkItem], error) {
	task, faults := taskOf("body", in.Body)
	task.Actor, task.IdempotencyKey = access.Actor(ctx), in.Key
	faults = append(faults, valid.Text("header.Idempotency-Key", in.Key, valid.MaxText)...)
	at := func(string) string { return "body.requires" }
	if err := invalidGraph("nothing was submitted", registry.RequirementProblems(task.Requires), at, faults); err != nil {
		return nil, err
	}
	it, err := s.Registry.AddTask(ctx, task)
	if err != nil {
		return nil, err
	}
	if err := redact.Item(&it); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "task submitted", "item", it.ID, "function", task.Function, "actor", task.Actor)
	return &endpoint.Output[registry.WorkItem]{Body: it}, nil
}

// taskOf converts a request at a location to a task, with all faults of the request.
func taskOf(location string, r wire.TaskRequest) (registry.NewTask, []wire.Fault) {
	t := registry.NewTask{
		Function: r.Function, Args: r.Args, Title: r.Title, Subject: r.Subject, Collection: r.Collection, Priority: r.Priority, Cause: r.Cause, Requires: r.Requires,
	}
	if r.NotBefore != nil {
		t.NotBefore = *r.NotBefore
	}
	var faults []wire.Fault
	if err := registry.CheckFunctionName(r.Function); err != nil {
		faults = append(faults, wire.Fault{Location: location + ".function", Message: err.Error()})
	}
	for _, f := range []struct{ name, text string }{
		{"title", r.Title}, {"subject", r.Subject}, {"collection", r.Collection}, {"cause", r.Cause},
	} {
		faults = append(faults, valid.Text(location+"."+f.name, f.text, valid.MaxText)...)
	}
	return t, append(faults, valid.Priority(location+".priority", r.Priority)...)
}

// taskProblem returns the problem of a graph's task whose function is unknown or whose arguments do
// not fit, or nil.
func taskProblem(g registry.Graph, err error) error {
	var node *registry.NodeError
	if !errors.As(err, &node) {
		return nil
	}
	if p := endpoint.TaskProblem(err, nodeLocation(g, node.Key)+".task"); p != nil {
		return p
	}
	return nil
}
