package receipt

import "github.com/holdfast/holdfast/registry"

// FileOf is a file of the inventory as receipts of a format hold it: without what is found out
// about its bytes later on.
func FileOf(f registry.File, format int) File {
	out := File{Path: f.Path, Size: f.SizeBytes, Digests: f.Digests, Content: f.ContentPath}
	if format > 1 {
		out.Modified = f.Modified
	}
	return out
}

// EventOf is an event of the inventory as the chain holds it: without the work item, which is ours
// alone.
func EventOf(e registry.Premis) Event {
	return Event{
		Seq: e.Seq, Object: e.ObjectID, ID: e.ID, Version: e.Version, Type: e.Type, At: e.At, Agent: e.Agent, Outcome: e.Outcome,
		Detail: e.Detail,
	}
}
