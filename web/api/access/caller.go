// Package access knows who asks, and what they may do.
//
// A request's context carries its [Caller]: the token, and the session of a browser. [Roles] and
// [Stages] are the one table of who may do which operation. The package does not know how a caller
// is authenticated (web/api), nor which things a caller may see (web/api/scope).
package access

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/signin"
)

// Caller is what is known of a request beside its input.
type Caller struct {
	RequestID string // in the log, and in the answer
	Token     registry.Token
	Session   registry.Session // of a browser; without an ID: none
}

type callerKey struct{}

// With returns the context of a request of a caller's.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Of returns the caller of a request, the zero one of a context that has none.
func Of(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Actor is who asks, as it is kept with acts.
func Actor(ctx context.Context) string { return Of(ctx).Token.Name }

// Person is who asks, by a session or by a token.
func Person(ctx context.Context) registry.Session {
	c := Of(ctx)
	if c.Session.ID != "" {
		return c.Session
	}
	return signin.ByToken(c.Token)
}
