// Package event serves the feed as pages and as a stream (server-sent events), and the audit list.
package event

import (
	"context"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/signin"
)

// Service serves the operations on events. Registry must be set.
type Service struct {
	*endpoint.Server
	Registry  Registry
	SignIn    *signin.Service // nil: no sessions
	KeepAlive time.Duration   // interval of a stream's keep-alive messages and of checks of its token; 0: 15 s
}

// Registry is what a Service needs of the Registry, limited to what the caller may see.
type Registry interface {
	registry.Feeds
	// Item is as in registry.ItemReader.
	Item(ctx context.Context, id string) (registry.WorkItem, error)
	// TokenByHash is as in registry.TokenKeeper.
	TokenByHash(ctx context.Context, hash string) (registry.Token, error)
}

// Routes adds the operations.
func (s *Service) Routes() {
	s.feedRoutes()
	s.eventsRoute()
}
