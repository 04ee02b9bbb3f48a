package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) queueRoutes(api huma.API) {
	register(s, api, operation{id: "queue-status", method: http.MethodGet, path: "/queue", summary: "What waits and runs in every stage"}, s.queueStatus)
	register(s, api, operation{id: "read-accepting", method: http.MethodGet, path: "/queue/accepting", summary: "Whether submissions are taken"}, s.accepting)
	register(s, api, operation{
		id: "search-orphans", method: http.MethodPost, path: "/orphans", status: http.StatusAccepted,
		summary: "Look for what belongs to nobody, by an item whose results.orphans tells what was found, and remove it if that is asked for",
	}, s.searchOrphans)
	register(s, api, operation{id: "set-accepting", method: http.MethodPut, path: "/queue/accepting", summary: "Take submissions, or refuse them for the time being"}, s.setAccepting)
}

func (s *server) queueStatus(ctx context.Context, _ *struct{}) (*output[registry.QueueStatus], error) {
	q, err := s.registry.QueueStatus(ctx)
	if err != nil {
		return nil, err
	}
	q.Stages = append([]registry.StageQueue{}, q.Stages...) // never null
	return &output[registry.QueueStatus]{Body: q}, nil
}

func (s *server) accepting(ctx context.Context, _ *struct{}) (*output[registry.Accepting], error) {
	a, err := s.registry.Accepting(ctx)
	if err != nil {
		return nil, err
	}
	return &output[registry.Accepting]{Body: a}, nil
}

type setAcceptingInput struct {
	Body wire.AcceptingRequest
}

func (s *server) setAccepting(ctx context.Context, in *setAcceptingInput) (*output[registry.Accepting], error) {
	a := registry.Accepting{On: in.Body.On, Reason: strings.TrimSpace(in.Body.Reason), Actor: actor(ctx)}
	faults := textFault("body.reason", a.Reason, maxText)
	if a.Reason == "" {
		faults = append(faults, wire.Fault{Location: "body.reason", Message: "missing: whoever submits is shown why"})
	}
	if err := invalid("nothing was changed", faults...); err != nil {
		return nil, err
	}
	if err := s.registry.SetAccepting(ctx, a); err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "accepting submissions changed", "on", a.On, "reason", a.Reason, "actor", a.Actor)
	return s.accepting(ctx, nil)
}

// takesSubmissions refuses what would let a submission in while none are taken, before its bytes are read.
func (s *server) takesSubmissions(ctx context.Context) error {
	a, err := s.registry.Accepting(ctx)
	if err == nil && !a.On {
		return &registry.NotAccepting{Accepting: a}
	}
	return err
}
