package workers

import (
	"context"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers/fixitycheck"
)

// backgroundSlots is how many files a process checks concurrently, and how many objects it copies to where
// they belong: few, since deposits have precedence.
const backgroundSlots = 2

// Fixity checks one stored file of an object in every storage that has it.
type Fixity struct {
	base.Worker
	Checker fixitycheck.Checker
}

// Stage implements base.Handler.
func (w *Fixity) Stage() registry.Stage { return registry.Fixity }

// Concurrency implements base.Handler.
func (w *Fixity) Concurrency() int {
	if w.Slots > 0 {
		return w.Slots
	}
	return backgroundSlots
}

// Work implements base.Handler.
func (w *Fixity) Work(ctx context.Context, item *base.Item) error { return w.Checker.Check(ctx, item) }

var _ base.Handler = (*Fixity)(nil)
