// Package queue serves the state of the whole queue: waiting and running items, whether submissions
// are accepted, holds, limits, live workers, and the search for orphaned data.
package queue

import (
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Service serves the operations on the queue. All fields must be set.
type Service struct {
	*endpoint.Server
	Registry Registry
	Objects  ocfl.Roots // their names are volumes too
	Staging  storage.Store
}

// Registry is what a Service needs of the Registry, limited to what the caller may see.
type Registry interface {
	registry.ItemReader
	registry.Queue
	registry.AttemptReader
	registry.Commanding
	registry.Holding
	registry.Limiting
	registry.ThroughputReader
	registry.HoldingsReader
	registry.Storing
	registry.Submitting
	registry.Requesting
	registry.Profiles
}

// Routes adds the operations.
func (s *Service) Routes() {
	s.queueRoutes()
	s.holdRoutes()
	s.limitRoutes()
	s.holdingRoutes()
	s.storageRoutes()
}
