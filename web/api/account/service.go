// Package account serves tokens, browser sessions and the views that people saved.
package account

import (
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/signin"
)

// Service serves the operations on tokens, sessions and saved views.
type Service struct {
	*endpoint.Server
	Registry Registry
	SignIn   *signin.Service // nil: no pages in this process
}

// Registry is what a Service needs of the Registry, limited to what the caller may see.
type Registry interface {
	registry.TokenKeeper
	registry.ViewKeeper
	registry.Profiles
}

// Routes adds the operations.
func (s *Service) Routes() {
	s.tokenRoutes()
	s.sessionRoutes()
	s.viewRoutes()
}
