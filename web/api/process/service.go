// Package process has the operations on processes: create, call, repair, read, import, remove. Its
// answers come from the Registry; programs that serve a namespace run the steps.
package process

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

// MostWait is the longest wait for an answer in one request.
const MostWait = time.Minute

// Service has the operations. It has no state. Server and Registry must be set.
type Service struct {
	*endpoint.Server

	Registry registry.Processing // limited to what the caller may see
}

// Routes adds the operations.
func (s *Service) Routes() {
	const one = "/processes/{namespace}/{process}"
	get, post := http.MethodGet, http.MethodPost
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-namespaces", Method: get, Path: "/namespaces", Summary: "List the namespaces of processes"}, s.namespaces)
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-processes", Method: get, Path: "/processes", Summary: "List processes, newest first"}, s.list)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "init-process", Method: post, Path: "/processes", Status: http.StatusAccepted, Summary: "Create a process and start its first step",
	}, s.start)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-process", Method: get, Path: one, Summary: "Read a process with a range of its history; wait for its first step"}, s.read)
	endpoint.Register(s.Server, endpoint.Operation{ID: "put-process", Method: http.MethodPut, Path: one, Summary: "Import a process"}, s.put)
	endpoint.Register(s.Server, endpoint.Operation{ID: "remove-process", Method: http.MethodDelete, Path: one, Summary: "Remove a process with its state and history"}, s.remove)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "call-process", Method: post, Path: one + "/calls", Status: http.StatusAccepted, Summary: "Call a process",
	}, s.call)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "repair-process", Method: post, Path: one + "/repairs", Status: http.StatusAccepted, Summary: "Repair a process in error by a step",
	}, s.repair)
	endpoint.Register(s.Server, endpoint.Operation{ID: "retry-process", Method: post, Path: one + "/retry", Summary: "Let a process in error go on without a repairing step"}, s.retry)
	endpoint.Register(s.Server, endpoint.Operation{ID: "trace-process", Method: get, Path: one + "/steps", Summary: "List the steps of a process, each with its events, oldest first"}, s.trace)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-answer", Method: get, Path: "/answers/{id}", Summary: "Read the answer of a step; wait for it"}, s.answer)
}

// At names the process of a request.
type At struct {
	Namespace string `path:"namespace" maxLength:"200"`
	Process   string `path:"process" maxLength:"1000" doc:"The id of the process, percent-encoded"`
}

func (a At) key() registry.ProcessKey {
	return registry.ProcessKey{Namespace: a.Namespace, ProcessID: a.Process}
}

// Keyed is the idempotency key of a request.
type Keyed struct {
	Key string `header:"Idempotency-Key" maxLength:"200" doc:"A repeat with the same key gets the first one's answer"`
}

// Waiting is how long a request may wait.
type Waiting struct {
	Wait float64 `query:"wait" minimum:"0" maximum:"60" doc:"Seconds to wait; then the present state is the answer"`
}

// limit is the wait as a duration.
func (w Waiting) limit() time.Duration { return time.Duration(w.Wait * float64(time.Second)) }

func (s *Service) namespaces(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[wire.Namespace]], error) {
	all, err := s.Registry.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(wire.Each(all, wire.NamespaceOf)), nil
}

type listInput struct {
	endpoint.Paging

	Namespace string `query:"namespace" maxLength:"200" doc:"Only of this namespace"`
	Status    string `query:"status" maxLength:"20" doc:"Only in this status: init, running, error or done"`
	Text      string `query:"text" maxLength:"200" doc:"Only with this text in the error"`
}

func (s *Service) list(ctx context.Context, in *listInput) (*endpoint.Output[registry.Page[registry.ProcessInfo]], error) {
	q := registry.ProcessQuery{Namespace: in.Namespace, Status: registry.ProcessStatus(in.Status), Text: in.Text, After: in.After, Limit: in.Size()}
	known := []registry.ProcessStatus{registry.ProcessInit, registry.ProcessRunning, registry.ProcessFailed, registry.ProcessDone}
	faults := slices.Concat(valid.OneOf("query.status", q.Status, known), valid.Text("query.text", q.Text, valid.MaxText))
	if err := endpoint.Invalid("nothing was listed", faults...); err != nil {
		return nil, err
	}
	p, err := s.Registry.Processes(ctx, q)
	if err != nil {
		return nil, err
	}
	return endpoint.Page(p), nil
}

type startInput struct {
	Keyed

	Body wire.ProcessRequest
}

func (s *Service) start(ctx context.Context, in *startInput) (*endpoint.Output[registry.Answer], error) {
	r := in.Body
	n := registry.NewProcess{
		ProcessKey: registry.ProcessKey{Namespace: r.Namespace, ProcessID: r.ProcessID}, Collection: r.Collection, Args: r.Args, Context: r.Context,
		Actor: access.Actor(ctx), IdempotencyKey: in.Key,
	}
	return answered(s.Registry.InitProcess(ctx, n))
}

func answered(a registry.Answer, err error) (*endpoint.Output[registry.Answer], error) {
	if err != nil {
		return nil, err
	}
	return &endpoint.Output[registry.Answer]{Body: a}, nil
}

func told(p registry.ProcessInfo, err error) (*endpoint.Output[registry.ProcessInfo], error) {
	if err != nil {
		return nil, err
	}
	return &endpoint.Output[registry.ProcessInfo]{Body: p}, nil
}

type callInput struct {
	At
	Keyed

	Body wire.CallRequest
}

func (in *callInput) call(ctx context.Context) registry.NewCall {
	n := registry.NewCall{ProcessKey: in.key(), Args: in.Body.Args, Context: in.Body.Context, Actor: access.Actor(ctx), IdempotencyKey: in.Key}
	if in.Body.Range != nil {
		n.Range = *in.Body.Range
	}
	return n
}

func (s *Service) call(ctx context.Context, in *callInput) (*endpoint.Output[registry.Answer], error) {
	return answered(s.Registry.CallProcess(ctx, in.call(ctx)))
}

func (s *Service) repair(ctx context.Context, in *callInput) (*endpoint.Output[registry.Answer], error) {
	return answered(s.Registry.RepairProcess(ctx, in.call(ctx)))
}

type retryInput struct {
	At
	Keyed

	Body wire.RetryRequest
}

func (s *Service) retry(ctx context.Context, in *retryInput) (*endpoint.Output[registry.ProcessInfo], error) {
	if err := endpoint.Invalid("nothing was changed", valid.Text("body.reason", in.Body.Reason, valid.MaxText)...); err != nil {
		return nil, err
	}
	return told(s.Registry.RetryProcess(ctx, registry.ProcessAct{
		ProcessKey: in.key(), Context: in.Body.Context, Reason: in.Body.Reason, Actor: access.Actor(ctx), IdempotencyKey: in.Key,
	}))
}

type readInput struct {
	At
	Waiting

	Offset   int64 `query:"offset" minimum:"0" doc:"Only events after this one; with backward, before it"`
	Limit    int   `query:"limit" minimum:"1" maximum:"1000" doc:"Most events; 1,000 when absent"`
	Backward bool  `query:"backward" doc:"Newest events first"`
	None     bool  `query:"none" doc:"No events"`
}

func (s *Service) read(ctx context.Context, in *readInput) (*endpoint.Output[registry.ProcessInfo], error) {
	ctx, cancel := s.Until(ctx, in.limit())
	defer cancel()
	return told(s.Registry.Process(ctx, in.key(), registry.HistoryRange{Offset: in.Offset, Limit: in.Limit, Backward: in.Backward, None: in.None}))
}

type putInput struct {
	At
	Keyed

	Body wire.PutProcessRequest
}

func (s *Service) put(ctx context.Context, in *putInput) (*endpoint.Output[registry.ProcessInfo], error) {
	p := registry.PutProcess{
		ProcessKey: in.key(), Collection: in.Body.Collection, State: in.Body.State, Metadata: in.Body.Metadata, Timer: in.Body.Timer,
		Actor: access.Actor(ctx), IdempotencyKey: in.Key,
	}
	for _, e := range in.Body.History {
		p.History = append(p.History, registry.ProcessEvent{ID: e.ID, At: e.At, Payload: e.Payload, Metadata: e.Metadata})
	}
	return told(s.Registry.PutProcess(ctx, p))
}

type removeInput struct {
	At
	Keyed

	Reason string `query:"reason" maxLength:"2000" doc:"For people; kept with the act"`
}

func (s *Service) remove(ctx context.Context, in *removeInput) (*struct{}, error) {
	return nil, s.Registry.RemoveProcess(ctx, registry.ProcessAct{ProcessKey: in.key(), Reason: in.Reason, Actor: access.Actor(ctx), IdempotencyKey: in.Key})
}

type traceInput struct {
	At
	endpoint.Paging
}

func (s *Service) trace(ctx context.Context, in *traceInput) (*endpoint.Output[registry.Page[registry.TracedStep]], error) {
	p, err := s.Registry.TraceProcess(ctx, registry.TraceQuery{ProcessKey: in.key(), After: in.After, Limit: in.Size()})
	if err != nil {
		return nil, err
	}
	return endpoint.Page(p), nil
}

type answerInput struct {
	Waiting

	ID string `path:"id" maxLength:"200" doc:"The item of the step"`
}

func (s *Service) answer(ctx context.Context, in *answerInput) (*endpoint.Output[registry.Answer], error) {
	ctx, cancel := s.Until(ctx, in.limit())
	defer cancel()
	return answered(s.Registry.AwaitAnswer(ctx, in.ID))
}
