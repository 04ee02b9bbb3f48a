// Package event serves what happened: the feed, the same as a stream (server-sent events), and the
// audit list.
package event

import (
	"context"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/signin"
)

// Service answers what is asked about events. Registry must be set.
type Service struct {
	*endpoint.Server
	Registry  Registry
	SignIn    *signin.Service // nil: nobody has a session
	KeepAlive time.Duration   // between two signs of life of a stream, in which a token that has ended is noticed; 0: 15 s
}

// Registry is what a Service asks, limited to what the caller may see.
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
