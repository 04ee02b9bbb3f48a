package wire

import "github.com/holdfast/holdfast/registry"

// Item is an item with what its attempts tell of it.
type Item struct {
	registry.WorkItem

	ResumePoint string `json:"resume_point,omitempty" doc:"How much of the present step is done and kept: a restart continues there"`
}
