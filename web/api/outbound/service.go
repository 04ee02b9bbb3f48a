// Package outbound serves subscriptions, and the credentials that Holdfast presents to sources and
// receivers.
//
// A secret is encrypted before it is stored, and is never returned.
package outbound

import (
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Service serves the operations on credentials and subscriptions.
type Service struct {
	*endpoint.Server
	Registry Registry
	Keys     *secret.Keys // nil: no credential can be set
}

// Registry is what a Service needs of the Registry, limited to what the caller may see.
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
