package wire

import (
	"github.com/holdfast/holdfast/registry"
)

// GraphRequest prepares submissions that depend on each other. None of them starts before the graph
// is sealed.
type GraphRequest struct {
	GraphID string        `json:"graph_id,omitempty" id:"graphs" doc:"The unsealed graph to add to; a new graph when empty"`
	Nodes   []NodeRequest `json:"nodes" doc:"At most 500, with at most 2,000 requirements together"`
}

// NodeRequest is a submission in a graph. It always becomes a batch of its own, even if the same
// content was submitted before.
type NodeRequest struct {
	Key string `json:"key" maxLength:"200" doc:"Your own name for it, unique in the graph"`
	SubmitRequest
}

// EdgesResponse lists what an item requires and what requires it.
type EdgesResponse struct {
	Requires   []registry.Edge `json:"requires"`
	RequiredBy []registry.Edge `json:"required_by"`
}
