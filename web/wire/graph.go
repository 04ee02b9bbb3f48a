package wire

import (
	"github.com/holdfast/holdfast/registry"
)

// GraphRequest prepares submissions and tasks that depend on each other. None of them starts before
// the graph is sealed.
type GraphRequest struct {
	GraphID string        `json:"graph_id,omitempty" id:"graphs" doc:"The unsealed graph to add to; a new graph when empty"`
	Nodes   []NodeRequest `json:"nodes" doc:"At most 500, with at most 2,000 requirements together"`
	Seal    bool          `json:"seal,omitempty" doc:"Also seal the graph: it is complete with these nodes, which start"`
}

// NodeRequest is a submission or a task in a graph. A submission always becomes a batch of its own,
// even if the same content was submitted before.
type NodeRequest struct {
	Key string `json:"key" maxLength:"200" doc:"Your own name for it, unique in the graph"`
	SubmitRequest
	Task *TaskRequest `json:"task,omitempty" doc:"A task instead of a submission: the node has only this and its key. Needs a role that may submit tasks"`
}

// EdgesResponse lists what an item requires and what requires it.
type EdgesResponse struct {
	Requires   []registry.Edge `json:"requires"`
	RequiredBy []registry.Edge `json:"required_by"`
}
