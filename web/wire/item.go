package wire

import "github.com/holdfast/holdfast/registry"

// Item is an item with what its attempts tell of it.
type Item struct {
	registry.WorkItem

	// Deliveries are what receivers were told of it.
	Deliveries []registry.Delivery `json:"deliveries,omitempty" doc:"What receivers were told of it, oldest first"`

	ResumePoint string `json:"resume_point,omitempty" doc:"How much of the present step is done and kept: a restart continues there"`
}
