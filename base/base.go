// Package base is the Base worker: the life cycle that all workers of Holdfast share, after the ten
// steps of APTrust's Preserv.
//
// It promises that one worker at a time has an attempt of an item, and writes only while it holds
// the claim. Whatever happens to the step (an error, a panic, a hang, a shutdown, a lost lease, an
// outage of the Registry or of the interim store), its live attempt settles the item exactly once,
// or the Registry takes it back (docs/invariants.md, I1 to I7 and I11). It knows nothing of
// what a step does.
//
// A worker embeds [Worker], names its stage and does its work:
//
//	type Scan struct{ base.Worker }
//
//	func (w *Scan) Stage() registry.Stage { return registry.Scan }
//	func (w *Scan) Work(ctx context.Context, item *base.Item) error
//
// The error that Work returns is the verdict. nil sends the item to its next stage. [Content] and
// [Fatal] fail it. [Snooze] lets it wait, uncounted. Any other error is retried with backoff until
// the tries are used up. [Runner] serves the workers of a process; lifecycle.go has the ten steps.
package base

import (
	"errors"

	"github.com/holdfast/holdfast/registry"
)

// Why a step's context ended, as context.Cause tells it, besides [registry.ErrClaimLost].
var (
	// ErrStopping: the worker is shutting down. Write a checkpoint and return; the item is
	// released, uncounted, and goes on elsewhere. Interim data and durable results can still be
	// written for a moment (I5).
	ErrStopping = errors.New("worker is stopping")
	// ErrStuck: the step made no progress for its StuckAfter. What it returns now is a counted
	// failure (R29).
	ErrStuck = errors.New("no progress")
)

// Errors of [Runner].
var (
	// ErrAbandoned: steps hung and did not end when told to, so that their goroutines had to be
	// left behind. The process should exit and be started anew (R29).
	ErrAbandoned = errors.New("steps hang and were abandoned")
	// ErrStarted: Run was called before. A Runner runs once.
	ErrStarted = errors.New("runner was started before")
)

// errLost is what an item's methods answer when its claim is gone, and the cause of a context that
// ends with the claim.
var errLost = registry.ErrClaimLost
