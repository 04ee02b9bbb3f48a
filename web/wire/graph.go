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

// GraphRequestOf returns the request that prepares a graph. It omits what the server sets itself.
func GraphRequestOf(g registry.Graph) GraphRequest {
	r := GraphRequest{GraphID: g.ID, Nodes: make([]NodeRequest, len(g.Nodes))}
	for i, n := range g.Nodes {
		r.Nodes[i] = NodeRequest{Key: n.Key, SubmitRequest: SubmitRequestOf(n.Submission)}
	}
	return r
}

// SubmitRequestOf returns the request that makes a submission. It omits what the server sets
// itself.
func SubmitRequestOf(s registry.Submission) SubmitRequest {
	r := SubmitRequest{
		Type: string(s.Spec.Type), Collection: s.Collection, Filename: s.Spec.Filename, ARK: s.Spec.PrimaryID,
		LocalIDs: s.Spec.LocalIDs, Submitter: s.Spec.Submitter, Title: s.Spec.Title, Creator: s.Spec.Creator, Date: s.Spec.Date,
		Notify: s.Spec.Notify, Digest: s.Spec.Digest, Update: s.Spec.Mode == registry.Update, Force: s.Force,
		Priority: s.Priority, Requires: s.Requires,
	}
	if id, ok := registry.UploadID(s.Spec.URL); ok {
		r.UploadID = id
	} else {
		r.URL = s.Spec.URL
	}
	return r
}
