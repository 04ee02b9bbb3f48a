// Package outbound serves what Holdfast shows to others, and whom it tells: the credentials of
// collections for sources and receivers, subscriptions with their keys.
//
// A secret is sealed before it is stored, and is never answered again.
package outbound

import (
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Service answers what is asked about credentials and subscriptions.
type Service struct {
	*endpoint.Server
	Registry Registry
	Keys     *secret.Keys // nil: no credential can be set
}

// Registry is what a Service asks, limited to what the caller may see.
type Registry interface {
	registry.Profiles
	registry.Unlocking
	registry.Secrets
	registry.Subscribing
}

// Routes adds the operations.
func (s *Service) Routes() {
	s.credentialRoutes()
	s.subscriptionRoutes()
}
