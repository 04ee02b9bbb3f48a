// Package base runs workers: it claims items, renews leases, judges errors and settles. Its life
// cycle follows the ten steps of APTrust's Preserv.
//
// The state of a process is a [Runner] with its slots, its claimed attempts and their fences.
// Items, attempts and durable results live in the Registry; interim data live in an
// [interim.Store].
//
// It promises (docs/invariants.md, I1 to I7 and I11):
//
//   - One worker at a time holds an attempt of an item, and writes only while it holds the claim.
//   - The live attempt settles its item exactly once, or the Registry takes the item back. That
//     holds after an error, a panic, a hang, a shutdown, a lost lease, and an outage of the
//     Registry or of the interim store.
//
// It does not know what a step does.
//
// A worker embeds [Worker], names its stage and does its work:
//
//	type Scan struct{ base.Worker }
//
//	func (w *Scan) Stage() registry.Stage { return registry.Scan }
//	func (w *Scan) Work(ctx context.Context, item *base.Item) error
//
// The error that Work returns is the verdict. nil sends the item to its next stage. [Content] and
// [Fatal] fail it. [Snooze] makes it wait, uncounted. Any other error is retried with backoff until
// the tries are used up. [Runner] serves the workers of a process; lifecycle.go has the ten steps.
package base

import (
	"errors"

	"github.com/holdfast/holdfast/registry"
)

// Causes of a step's context (context.Cause), besides [registry.ErrClaimLost].
var (
	// ErrStopping: the worker is shutting down. Write a checkpoint and return; the item is
	// released, uncounted, and continues elsewhere. Interim data and durable results can still be
	// written for a moment (I5).
	ErrStopping = errors.New("worker is stopping")
	// ErrStuck: the step made no progress for its StuckAfter. Whatever it returns now is a counted
	// failure (R29).
	ErrStuck = errors.New("no progress")
)

// Errors of [Runner].
var (
	// ErrAbandoned: steps hung, ignored the end of their contexts, and were abandoned with their
	// goroutines. The process should exit and be restarted (R29).
	ErrAbandoned = errors.New("steps hang and were abandoned")
	// ErrStarted: Run was already called. A Runner runs once.
	ErrStarted = errors.New("runner was started before")
)

// errLost is what an item's methods return when its claim is gone, and the cause of a context that
// ends with the claim.
var errLost = registry.ErrClaimLost
