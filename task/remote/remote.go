// Package remote connects programs with functions to a Registry at an address.
package remote

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/wire"
)

// Registry is a Registry at an address. A token of a worker for the functions' stages
// (`holdfast token create --role worker --stage run:NAME`) serves and calls functions. To submit
// tasks and graphs needs the token of an operator or admin. The caller must Close it.
type Registry struct {
	*protocol.Client
	api *client.Client
}

var (
	_ task.Registry  = (*Registry)(nil)
	_ task.Adding    = (*Registry)(nil)
	_ task.Preparing = (*Registry)(nil)
)

// Open returns the Registry at an address such as https://holdfast.example.org. It does not connect
// yet.
func Open(address, token string) *Registry {
	c := client.New(address, token, client.Options{})
	return &Registry{protocol.NewClient(c), c}
}

// AddTask implements task.Adding. The actor is the token.
func (r *Registry) AddTask(ctx context.Context, n registry.NewTask) (registry.WorkItem, error) {
	return r.api.SubmitTask(ctx, request(n), n.IdempotencyKey)
}

// Prepare implements task.Preparing for graphs of tasks. The actor is the token. A graph that also
// has deposits is submitted with `holdfast graph`.
func (r *Registry) Prepare(ctx context.Context, g registry.Graph) (registry.PreparedGraph, error) {
	out := wire.GraphRequest{GraphID: g.ID, Seal: g.Seal}
	for _, n := range g.Nodes {
		node := wire.NodeRequest{Key: n.Key}
		if n.Task != nil {
			one := request(*n.Task)
			node.Task = &one
		}
		out.Nodes = append(out.Nodes, node)
	}
	return r.api.PrepareGraph(ctx, out, g.IdempotencyKey)
}

func request(n registry.NewTask) wire.TaskRequest {
	out := wire.TaskRequest{
		Function: n.Function, Args: n.Args, Title: n.Title, Subject: n.Subject, Collection: n.Collection, Priority: n.Priority, Cause: n.Cause, Requires: n.Requires,
	}
	if !n.NotBefore.IsZero() {
		out.NotBefore = &n.NotBefore
	}
	return out
}
