// Package account serves tokens and browser sessions, and tells the pages who has signed in.
package account

import (
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/signin"
)

// Service serves the operations on tokens and sessions.
type Service struct {
	*endpoint.Server
	Registry Registry
	SignIn   *signin.Service // nil: no pages in this process
}

// Registry is what a Service needs of the Registry, limited to what the caller may see.
type Registry interface {
	registry.TokenKeeper
	registry.Profiles
}

// Routes adds the operations.
func (s *Service) Routes() {
	s.tokenRoutes()
	s.sessionRoutes()
}
