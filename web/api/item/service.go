// Package item serves batches, jobs and other items: lists, counts, progress, reasons for waiting,
// failures, reports, and acts.
package item

import (
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Service serves the operations on items. All fields must be set.
type Service struct {
	*endpoint.Server
	Registry Registry
}

// Registry is what a Service needs of the Registry, limited to what the caller may see.
type Registry interface {
	registry.ItemReader
	registry.AttemptReader
	registry.Explaining
	registry.Feeds
	registry.Graphs
	registry.ReportReader
	registry.ReportLister
	registry.CorrectionReader
	registry.DeliveryReader
	registry.StepReader
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
