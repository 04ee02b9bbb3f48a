package api

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
)

// Processes is what the pages of processes show: what the caller's role and collections allow.
type Processes struct {
	registry registry.Processing // limited to what the caller may see
	access   *access.Table
}

// MaySee reports whether the caller may list processes.
func (p Processes) MaySee(ctx context.Context) bool {
	return p.access.Permit(ctx, "list-processes") == nil
}

// List is Processes of registry.Processing.
func (p Processes) List(ctx context.Context, q registry.ProcessQuery) (registry.Page[registry.ProcessInfo], error) {
	if err := p.access.Permit(ctx, "list-processes"); err != nil {
		return registry.Page[registry.ProcessInfo]{}, err
	}
	return p.registry.Processes(ctx, q)
}

// Read is Process of registry.Processing.
func (p Processes) Read(ctx context.Context, key registry.ProcessKey, r registry.HistoryRange) (registry.ProcessInfo, error) {
	if err := p.access.Permit(ctx, "read-process"); err != nil {
		return registry.ProcessInfo{}, err
	}
	return p.registry.Process(ctx, key, r)
}
