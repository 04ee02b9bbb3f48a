// Package base is the Base worker: the life cycle that every worker of Holdfast shares, after the ten steps of
// APTrust's Preserv.
//
// It keeps true that one attempt of one item is in the hands of one worker, that this worker writes only while it
// holds the claim, and that whatever happens to the step (an error, a panic, a hang, a shutdown, a lost lease, an
// outage of the Registry or of the interim store), the item is settled by its live attempt exactly once or is taken
// back by the Registry. A message of the queue is a hint and never more than that (invariants I1 to I7 and I11 of
// docs/invariants.md).
//
// A worker embeds [Worker], names its stage and does its work; the error it returns is the verdict:
//
//	type Scan struct{ base.Worker }
//
//	func (w *Scan) Stage() registry.Stage { return registry.Scan }
//	func (w *Scan) Work(ctx context.Context, item *base.Item) error
//
// nil sends the item to its next stage; [Content] and [Fatal] fail it; [Snooze] lets it wait, uncounted; any other
// error is retried with backoff until the tries are used up. [Runner] serves the workers of a process; the ten steps
// stand in lifecycle.go.
package base

import (
	"errors"

	"github.com/holdfast/holdfast/registry"
)

// Why a step's context ended, as context.Cause tells it, besides [registry.ErrClaimLost].
var (
	// ErrStopping: the worker is shutting down. Write a checkpoint and return; the item is released, uncounted, and goes
	// on elsewhere. Interim data and durable results can still be written for a moment (I5).
	ErrStopping = errors.New("worker is stopping")
	// ErrStuck: the step made no progress for its StuckAfter. What it returns now is a counted failure (R29).
	ErrStuck = errors.New("no progress")
)

// Errors of [Runner].
var (
	// ErrAbandoned: steps hung and did not end when told to, so that their goroutines had to be left behind. The
	// process should exit and be started anew (R29).
	ErrAbandoned = errors.New("steps hang and were abandoned")
	// ErrStarted: Run was called before. A Runner runs once.
	ErrStarted = errors.New("runner was started before")
)

// errLost is what an item's methods answer when its claim is gone, and the cause of a context that ends with the claim.
var errLost = registry.ErrClaimLost
