package api

import (
	"context"

	"github.com/holdfast/holdfast/registry"
)

// Access is the access table.
func Access() map[string][]registry.Role { return access() }

// WithToken returns the context of a request of a token's.
func WithToken(ctx context.Context, t registry.Token) context.Context {
	return withCaller(ctx, t, registry.Session{})
}
