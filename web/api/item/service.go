// Package item serves batches, jobs and the items of acts: lists and counts, how far they are and
// why they wait, what failed, what was reported, and the acts that are asked of them.
package item

import (
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Service answers what is asked about items. All fields must be set.
type Service struct {
	*endpoint.Server
	Registry Registry
}

// Registry is what a Service asks, limited to what the caller may see.
type Registry interface {
	registry.ItemReader
	registry.AttemptReader
	registry.Feeds
	registry.Graphs
	registry.ReportReader
	registry.ReportLister
	registry.DeliveryReader
	registry.Commanding
	registry.Notifying
}

// Routes adds the operations.
func (s *Service) Routes() {
	s.batchRoutes()
	s.reportRoutes()
	s.itemRoutes()
	s.graphRoutes()
}
