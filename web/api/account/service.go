// Package account serves tokens and browsers' sessions, and says to the pages who has signed in.
package account

import (
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/signin"
)

// Service answers what is asked about tokens and sessions.
type Service struct {
	*endpoint.Server
	Registry Registry
	SignIn   *signin.Service // nil: this process serves no pages
}

// Registry is what a Service asks, limited to what the caller may see.
type Registry interface {
	registry.TokenKeeper
	registry.Profiles
}

// Routes adds the operations.
func (s *Service) Routes() {
	s.tokenRoutes()
	s.sessionRoutes()
}
