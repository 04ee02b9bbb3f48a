package wire

import "github.com/holdfast/holdfast/registry"

// Item is an item with its deliveries and resume point.
type Item struct {
	registry.WorkItem

	// Deliveries are the item's messages to receivers.
	Deliveries []registry.Delivery `json:"deliveries,omitempty" doc:"Its messages to receivers, oldest first"`

	ResumePoint string `json:"resume_point,omitempty" doc:"The progress of the present step that is kept: a retry resumes there"`

	// Steps are the outside steps of a job.
	Steps []registry.StepRun `json:"steps,omitempty" doc:"Tasks that the profile's steps made for the job, oldest first"`
}
