package submission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) graphRoutes() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "prepare-graph", Method: http.MethodPost, Path: "/graphs", Status: http.StatusCreated,
		Refuses: []int{http.StatusTooManyRequests, http.StatusInsufficientStorage},
		Summary: "Prepare submissions and tasks that depend on each other; none starts before the graph is sealed",
	}, s.prepareGraph)
	endpoint.Register(s.Server, endpoint.Operation{ID: "seal-graph", Method: http.MethodPost, Path: "/graphs/{id}/seal", Summary: "Seal a graph, so that its items start"}, s.sealGraph)
}

type prepareInput struct {
	Key       string `header:"Idempotency-Key" maxLength:"200" doc:"A repeat with the same key gets the first one's answer"`
	UserAgent string `header:"User-Agent"`
	Trace     string `header:"Traceparent" maxLength:"200" doc:"W3C Trace Context: the batches join this trace, and callbacks carry it on"`
	Body      wire.GraphRequest
}

// prepareGraph accepts submissions and tasks, all or none. When it answers, they are committed.
func (s *Service) prepareGraph(ctx context.Context, in *prepareInput) (*endpoint.Output[registry.PreparedGraph], error) {
	g := registry.Graph{ID: in.Body.GraphID, Actor: access.Actor(ctx), IdempotencyKey: in.Key, Seal: in.Body.Seal}
	faults := valid.Text("header.Idempotency-Key", in.Key, valid.MaxText)
	for i, n := range in.Body.Nodes {
		at := fmt.Sprintf("body.nodes[%d]", i)
		faults = append(faults, valid.Text(at+".key", n.Key, valid.MaxText)...)
		if n.Task != nil {
			if err := s.Permit(ctx, submitTask); err != nil {
				return nil, err
			}
			task, wrong := taskOf(at+".task", *n.Task)
			faults = append(faults, wrong...)
			if !reflect.ValueOf(n.SubmitRequest).IsZero() {
				faults = append(faults, wire.Fault{Location: at + ".task", Message: "a node is a submission or a task; give the task's fields inside task only"})
			}
			g.Nodes = append(g.Nodes, registry.Node{Key: n.Key, Task: &task})
			continue
		}
		spec, wrong := specOf(n.SubmitRequest)
		for _, f := range wrong {
			f.Location = strings.Replace(f.Location, "body.", at+".", 1)
			faults = append(faults, f)
		}
		g.Nodes = append(g.Nodes, registry.Node{Key: n.Key, Submission: s.nodeSubmission(ctx, in, n, spec)})
	}
	faults = append(faults, uploadsTwice(in.Body.Nodes)...)
	at := func(key string) string { return nodeLocation(g, key) }
	if err := invalidGraph("nothing was prepared", g.Problems(), at, faults); err != nil {
		return nil, err
	}
	for _, n := range in.Body.Nodes {
		if err := s.mayCorrect(ctx, n.Corrects); err != nil {
			return nil, err
		}
	}
	done, err := s.acceptUploads(ctx, in.Body.Nodes, g)
	if err != nil {
		return nil, err
	}
	defer done()
	p, err := s.Registry.Prepare(ctx, g)
	var wrong *registry.GraphError
	if errors.As(err, &wrong) {
		return nil, invalidGraph("nothing was prepared", []*registry.GraphError{wrong}, at, nil)
	} else if p := taskProblem(g, err); p != nil {
		return nil, p
	} else if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "graph prepared", "graph", p.GraphID, "items", len(p.Items), "actor", g.Actor)
	return &endpoint.Output[registry.PreparedGraph]{Body: p}, nil
}

func (s *Service) nodeSubmission(ctx context.Context, in *prepareInput, n wire.NodeRequest, spec registry.Spec) registry.Submission {
	if spec.Submitter == "" {
		spec.Submitter = access.Actor(ctx)
	}
	spec.UserAgent, spec.Trace = agent(in.UserAgent), joined(ctx, in.Trace)
	sub := registry.Submission{
		Collection: n.Collection, Name: shownName(spec.Filename, n.Folder), Spec: spec, Priority: n.Priority, Actor: access.Actor(ctx), Force: true, Requires: n.Requires,
		Mails: s.mailTerms(ctx),
	}
	if sub.Collection == "" {
		sub.Collection = wire.DefaultCollection
	}
	return sub
}

// acceptUploads judges the uploads of a graph's nodes and sets in the nodes what it learns of them.
// Until done is called, nobody else can submit or remove these uploads.
func (s *Service) acceptUploads(ctx context.Context, nodes []wire.NodeRequest, g registry.Graph) (done func(), err error) {
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
	slices.Sort(ids) // a fixed order prevents deadlocks
	for _, id := range ids {
		f, err := s.Uploads.Take(ctx, id)
		if err != nil {
			return nil, err
		}
		taken = append(taken, f)
	}
	for i, n := range nodes {
		if n.UploadID == "" {
			continue
		}
		if err := s.acceptNode(ctx, n.UploadID, n.Folder, &g.Nodes[i].Submission); err != nil {
			return nil, fmt.Errorf("node %q: %w", n.Key, err)
		}
	}
	return release, nil
}

func (s *Service) acceptNode(ctx context.Context, id string, folder bool, sub *registry.Submission) error {
	u, err := s.uploadFor(ctx, id, folder, sub)
	if err != nil {
		return err
	}
	_, err = s.Staging.Stat(ctx, source.UploadKey(id))
	if errors.Is(err, storage.ErrNotFound) {
		return endpoint.NotFound("upload %s (%s) is no longer stored; send the file again", u.ID, u.Filename)
	} else if err != nil {
		return fmt.Errorf("find upload %s: %w", id, err)
	}
	return s.accept(ctx, u, sub)
}

// uploadsTwice returns the faults of uploads that two nodes name. An upload belongs to one batch
// and is removed with it.
func uploadsTwice(nodes []wire.NodeRequest) (faults []wire.Fault) {
	first := map[string]string{}
	for i, n := range nodes {
		if n.UploadID == "" {
			continue
		}
		if key, there := first[n.UploadID]; there {
			faults = append(faults, wire.Fault{
				Location: fmt.Sprintf("body.nodes[%d].upload_id", i), Message: fmt.Sprintf("node %q uses this upload; send the file again for this node", key),
			})
			continue
		}
		first[n.UploadID] = n.Key
	}
	return faults
}

func (s *Service) sealGraph(ctx context.Context, in *lookup.ItemID) (*struct{}, error) {
	if err := s.Registry.Seal(ctx, in.ID, access.Actor(ctx)); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "graph sealed", "graph", in.ID, "actor", access.Actor(ctx))
	return nil, nil //nolint:nilnil // huma answers 204
}

// nodeLocation returns the location of a node in a request. If several have the key, it is the last
// one.
func nodeLocation(g registry.Graph, key string) string {
	for i, n := range slices.Backward(g.Nodes) {
		if key != "" && n.Key == key {
			return fmt.Sprintf("body.nodes[%d]", i)
		}
	}
	return "body.nodes"
}

// invalidGraph returns the problem of a graph or of a submission's requirements, with the request's
// other faults, or nil. at returns the location of a node in the request.
func invalidGraph(what string, wrong []*registry.GraphError, at func(key string) string, others []wire.Fault) error {
	if len(wrong) == 0 {
		return endpoint.Invalid(what, others...)
	}
	var faults []wire.Fault
	for _, e := range wrong {
		faults = append(faults, endpoint.GraphFault(at(e.Key), e))
	}
	p := wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeGraph, what+"; correct the fields that the errors name", append(faults, others...)...)
	p.Cause = wire.CauseOf(wrong[0])
	return p
}
