package api

import (
	"context"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Access is the access table.
func Access() map[string][]registry.Role { return access() }

// StagesOf are the operations of workers, with the stages whose workers may do them; nil is all.
func StagesOf() map[string][]registry.Stage { return stagesOf() }

// WithToken returns the context of a request of a token's.
func WithToken(ctx context.Context, t registry.Token) context.Context {
	return withCaller(ctx, t, registry.Session{})
}

// AuditCheckpoint compares a record with the newest checkpoint in a storage.
func AuditCheckpoint(ctx context.Context, r Chains, root ocfl.Named) (wire.CheckpointAudit, error) {
	return auditCheckpoint(ctx, r, root, "")
}
