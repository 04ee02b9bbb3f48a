// Package queue serves what stands before all items: how much waits and runs, whether submissions
// are taken, holds, the workers that are alive, and the search for orphaned data.
package queue

import (
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Service answers what is asked about the queue. All fields must be set.
type Service struct {
	*endpoint.Server
	Registry Registry
	Objects  ocfl.Roots // whose names are volumes, too
}

// Registry is what a Service asks, limited to what the caller may see.
type Registry interface {
	registry.ItemReader
	registry.Queue
	registry.AttemptReader
	registry.Commanding
	registry.Holding
	registry.Submitting
	registry.Requesting
	registry.Profiles
}

// Routes adds the operations.
func (s *Service) Routes() {
	s.queueRoutes()
	s.holdRoutes()
}
