package queue

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) queueRoutes() {
	endpoint.Register(s.Server, endpoint.Operation{ID: "queue-status", Method: http.MethodGet, Path: "/queue", Summary: "Show how many items wait and run in each stage"}, s.queueStatus)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-accepting", Method: http.MethodGet, Path: "/queue/accepting", Summary: "Show whether submissions are accepted"}, s.accepting)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "search-orphans", Method: http.MethodPost, Path: "/orphans", Status: http.StatusAccepted,
		Summary: "Search for orphaned data, and remove them on request; results.orphans of the returned item lists the findings",
	}, s.searchOrphans)
	endpoint.Register(s.Server, endpoint.Operation{ID: "set-accepting", Method: http.MethodPut, Path: "/queue/accepting", Summary: "Accept submissions, or refuse them until further notice"}, s.setAccepting)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "drain", Method: http.MethodPost, Path: "/queue/drain",
		Summary: "Hold everything, and stop running steps at their next safe point; to resume, remove the hold on all",
	}, s.drain)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "read-throughput", Method: http.MethodGet, Path: "/queue/throughput",
		Summary: "Show what was preserved and failed, and how much waited, over the last hour, day or month",
	}, s.throughput)
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-workers", Method: http.MethodGet, Path: "/workers", Summary: "List the live workers"}, s.workers)
}

type drainInput struct{ Body wire.DrainRequest }

func (s *Service) drain(ctx context.Context, in *drainInput) (*endpoint.Output[registry.QueueStatus], error) {
	d := registry.Drain{Until: time.Now().Add(time.Duration(in.Body.Stop) * time.Second), Reason: strings.TrimSpace(in.Body.Reason), Actor: access.Actor(ctx)}
	faults := valid.Text("body.reason", d.Reason, valid.MaxText)
	if d.Reason == "" {
		faults = append(faults, wire.Fault{Location: "body.reason", Message: "missing: give the reason; it is shown with held items"})
	}
	if err := endpoint.Invalid("nothing was drained", faults...); err != nil {
		return nil, err
	}
	if err := s.Registry.Drain(ctx, d); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "drain began", "until", d.Until, "reason", d.Reason, "actor", d.Actor)
	return s.queueStatus(ctx, nil)
}

func (s *Service) queueStatus(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.QueueStatus], error) {
	q, err := s.Registry.QueueStatus(ctx)
	if err != nil {
		return nil, err
	}
	q.Stages = append([]registry.StageQueue{}, q.Stages...) // never null
	return &endpoint.Output[registry.QueueStatus]{Body: q}, nil
}

func (s *Service) accepting(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Accepting], error) {
	return endpoint.Answered(s.Registry.Accepting(ctx))
}

type setAcceptingInput struct {
	Body wire.AcceptingRequest
}

func (s *Service) setAccepting(ctx context.Context, in *setAcceptingInput) (*endpoint.Output[registry.Accepting], error) {
	a := registry.Accepting{On: in.Body.On, Reason: strings.TrimSpace(in.Body.Reason), Actor: access.Actor(ctx)}
	faults := valid.Text("body.reason", a.Reason, valid.MaxText)
	if a.Reason == "" && !a.On {
		faults = append(faults, wire.Fault{Location: "body.reason", Message: "missing: give the reason; depositors who submit are shown it"})
	}
	if err := endpoint.Invalid("nothing was changed", faults...); err != nil {
		return nil, err
	}
	if err := s.Registry.SetAccepting(ctx, a); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "acceptance of submissions changed", "on", a.On, "reason", a.Reason, "actor", a.Actor)
	return s.accepting(ctx, nil)
}

type throughputInput struct {
	Span registry.ThroughputSpan `query:"span" default:"hour" enum:"hour,day,month" doc:"hour: by minutes; day: by quarters of an hour; month: 30 days by quarters of a day"`
}

func (s *Service) throughput(ctx context.Context, in *throughputInput) (*endpoint.Output[registry.Throughput], error) {
	return endpoint.Answered(s.Registry.Throughput(ctx, in.Span))
}

func (s *Service) workers(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[registry.WorkerInfo]], error) {
	all, err := s.Registry.Workers(ctx)
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(all), nil
}
