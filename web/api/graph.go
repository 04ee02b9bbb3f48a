package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) graphRoutes(api huma.API) {
	register(s, api, operation{
		id: "prepare-graph", method: http.MethodPost, path: "/graphs", status: http.StatusCreated,
		refuses: []int{http.StatusTooManyRequests, http.StatusInsufficientStorage},
		summary: "Prepare submissions that depend on each other; nothing of them starts before the graph is sealed",
	}, s.prepareGraph)
	register(s, api, operation{id: "seal-graph", method: http.MethodPost, path: "/graphs/{id}/seal", summary: "Let a graph's items go"}, s.sealGraph)
	register(s, api, operation{id: "read-graph", method: http.MethodGet, path: "/graphs/{id}", summary: "Show a graph's items and what they require"}, s.graph)
	register(s, api, operation{id: "item-edges", method: http.MethodGet, path: "/items/{id}/edges", summary: "What an item requires, and what requires it"}, s.edges)
}

type prepareInput struct {
	Key       string `header:"Idempotency-Key" maxLength:"200" doc:"A repeat with the same key answers what the first one did"`
	UserAgent string `header:"User-Agent"`
	Body      wire.GraphRequest
}

// prepareGraph takes submissions in, all or none. What it answers is committed.
func (s *server) prepareGraph(ctx context.Context, in *prepareInput) (*output[registry.PreparedGraph], error) {
	g := registry.Graph{ID: in.Body.GraphID, Actor: actor(ctx), IdempotencyKey: in.Key}
	faults := textFault("header.Idempotency-Key", in.Key, maxText)
	for i, n := range in.Body.Nodes {
		spec, wrong := specOf(n.SubmitRequest)
		for _, f := range wrong {
			f.Location = strings.Replace(f.Location, "body.", fmt.Sprintf("body.nodes[%d].", i), 1)
			faults = append(faults, f)
		}
		faults = append(faults, textFault(fmt.Sprintf("body.nodes[%d].key", i), n.Key, maxText)...)
		g.Nodes = append(g.Nodes, registry.Node{Key: n.Key, Submission: s.nodeSubmission(ctx, in, n, spec)})
	}
	faults = append(faults, uploadsTwice(in.Body.Nodes)...)
	at := func(key string) string { return nodeLocation(g, key) }
	if err := invalidGraph("nothing was prepared", g.Problems(), at, faults); err != nil {
		return nil, err
	}
	done, err := s.acceptUploads(ctx, in.Body.Nodes, g)
	if err != nil {
		return nil, err
	}
	defer done()
	p, err := s.registry.Prepare(ctx, g)
	var wrong *registry.GraphError
	if errors.As(err, &wrong) {
		return nil, invalidGraph("nothing was prepared", []*registry.GraphError{wrong}, at, nil)
	} else if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "graph prepared", "graph", p.GraphID, "items", len(p.Items), "actor", g.Actor)
	return &output[registry.PreparedGraph]{Body: p}, nil
}

func (s *server) nodeSubmission(ctx context.Context, in *prepareInput, n wire.NodeRequest, spec registry.Spec) registry.Submission {
	if spec.Submitter == "" {
		spec.Submitter = actor(ctx)
	}
	spec.UserAgent = agent(in.UserAgent)
	sub := registry.Submission{
		Collection: n.Collection, Name: spec.Filename, Spec: spec, Priority: n.Priority, Actor: actor(ctx), Force: true, Requires: n.Requires,
		Mails: s.mailTerms(ctx),
	}
	if sub.Collection == "" {
		sub.Collection = wire.DefaultCollection
	}
	return sub
}

// acceptUploads judges the uploads of a graph's nodes and notes in them what is known of their payloads. Until done is called
// nobody else decides about these uploads.
func (s *server) acceptUploads(ctx context.Context, nodes []wire.NodeRequest, g registry.Graph) (done func(), err error) {
	var taken []func()
	release := func() {
		for _, f := range taken {
			f()
		}
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	var ids []string
	for _, n := range nodes {
		if n.UploadID != "" {
			ids = append(ids, n.UploadID)
		}
	}
	slices.Sort(ids) // so that two calls never wait for each other
	for _, id := range ids {
		f, err := s.inUse.take(ctx, id)
		if err != nil {
			return nil, err
		}
		taken = append(taken, f)
	}
	for i, n := range nodes {
		if n.UploadID == "" {
			continue
		}
		if err := s.acceptNode(ctx, n.UploadID, &g.Nodes[i].Submission); err != nil {
			return nil, fmt.Errorf("node %q: %w", n.Key, err)
		}
	}
	return release, nil
}

func (s *server) acceptNode(ctx context.Context, id string, sub *registry.Submission) error {
	u, err := s.uploadFor(ctx, id, sub)
	if err != nil {
		return err
	}
	_, err = s.staging.Stat(ctx, source.UploadKey(id))
	if errors.Is(err, storage.ErrNotFound) {
		return notFound("upload %s (%s) is not here any more; send the file again", u.ID, u.Filename)
	} else if err != nil {
		return fmt.Errorf("look for upload %s: %w", id, err)
	}
	return s.accept(ctx, u, sub)
}

// uploadsTwice finds uploads that two nodes name: an upload is one batch's own, and is removed with it.
func uploadsTwice(nodes []wire.NodeRequest) (faults []wire.Fault) {
	first := map[string]string{}
	for i, n := range nodes {
		if n.UploadID == "" {
			continue
		}
		if key, there := first[n.UploadID]; there {
			faults = append(faults, wire.Fault{
				Location: fmt.Sprintf("body.nodes[%d].upload_id", i), Message: fmt.Sprintf("it is node %q's; send the file again for this one", key),
			})
			continue
		}
		first[n.UploadID] = n.Key
	}
	return faults
}

func (s *server) sealGraph(ctx context.Context, in *ItemID) (*struct{}, error) {
	if err := s.registry.Seal(ctx, in.ID, actor(ctx)); err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "graph sealed", "graph", in.ID, "actor", actor(ctx))
	return nil, nil //nolint:nilnil // huma answers 204
}

func (s *server) graph(ctx context.Context, in *ItemID) (*output[registry.GraphView], error) {
	g, err := s.registry.Graph(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	for i := range g.Items {
		if err := redact(&g.Items[i]); err != nil {
			return nil, err
		}
	}
	g.Items, g.Edges = append([]registry.WorkItem{}, g.Items...), append([]registry.Edge{}, g.Edges...) // never null
	return &output[registry.GraphView]{Body: g}, nil
}

func (s *server) edges(ctx context.Context, in *ItemID) (*output[wire.EdgesResponse], error) {
	requires, required, err := s.registry.Edges(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &output[wire.EdgesResponse]{Body: wire.EdgesResponse{
		Requires: append([]registry.Edge{}, requires...), RequiredBy: append([]registry.Edge{}, required...),
	}}, nil
}

// nodeLocation is where in a request a node stands; the last of those with its key, which is the one too many.
func nodeLocation(g registry.Graph, key string) string {
	for i, n := range slices.Backward(g.Nodes) {
		if key != "" && n.Key == key {
			return fmt.Sprintf("body.nodes[%d]", i)
		}
	}
	return "body.nodes"
}

func graphFault(location string, e *registry.GraphError) wire.Fault {
	return wire.Fault{Location: location, Message: e.Problem, Found: e.Key}
}

// invalidGraph is the problem of a graph, or of a submission's requirements, in which this is wrong, and of what else is wrong
// with the request; nil when nothing is. at is where in the request a node stands.
func invalidGraph(what string, wrong []*registry.GraphError, at func(key string) string, others []wire.Fault) error {
	if len(wrong) == 0 {
		return invalid(what, others...)
	}
	var faults []wire.Fault
	for _, e := range wrong {
		faults = append(faults, graphFault(at(e.Key), e))
	}
	p := wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeGraph, what+"; correct what the errors name", append(faults, others...)...)
	p.Cause = wire.CauseOf(wrong[0])
	return p
}
