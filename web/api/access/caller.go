// Package access knows who the caller is and what the caller may do.
//
// A request's context carries its [Caller]: the token, and a browser's session. [Roles] and
// [Stages] are the one table of who may call which operation. Authentication is in web/api, and
// which things a caller may see in web/api/scope.
package access

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/signin"
)

// Caller is what is known of a request beside its input.
type Caller struct {
	RequestID string // identifies the request in the log and the answer
	Remote    string // the address that the request came from, with its port
	Token     registry.Token
	Session   registry.Session // a browser's; without an ID: none
}

type callerKey struct{}

// With returns a context with a caller.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Of returns the caller of a request, or the zero Caller if the context has none.
func Of(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Actor returns the caller's name, as acts record it.
func Actor(ctx context.Context) string { return Of(ctx).Token.Name }

// Owns reports whether the caller submitted an item, or has a role that acts on the items of others.
// Names of tokens are never used again.
func Owns(ctx context.Context, it registry.WorkItem) bool {
	token := Of(ctx).Token
	return token.Role == registry.RoleOperator || token.Role == registry.RoleAdmin || token.Name != "" && token.Name == it.CreatedBy
}

// Person returns the caller's session, or one for the caller's token.
func Person(ctx context.Context) registry.Session {
	c := Of(ctx)
	if c.Session.ID != "" {
		return c.Session
	}
	return signin.ByToken(c.Token)
}
