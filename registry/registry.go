// Package registry is the contract of Holdfast's system of record.
//
// The Registry knows every WorkItem. One transaction decides each change of an item, and only the
// holder of its live attempt can move it on. Everything else in Holdfast (NSQ messages, interim
// data, staged bytes, counters on a page) is a hint or a copy that may be lost (docs/invariants.md,
// I1).
//
// The package defines the types (WorkItem, Stage, Status, Route), the state machine, and the
// contract. The contract consists of small roles, each beside the types of its subject, such as
// [Working] or [Receiving]. A user of the Registry takes the roles that it calls. Workers in other
// processes use [ForWorkers], which web/protocol carries over HTTP. The Store of registry/sqlstore
// implements all roles; registry/registrytest is the conformance suite.
//
// Every method of a role is one transaction: it happens as a whole or not at all. Unless the
// connection was lost, an error means that nothing happened. All methods may be called
// concurrently. Methods that take a [Lease] are fenced: if the lease's attempt is not the item's
// live one, they return [ErrClaimLost] and change nothing.
//
// The package imports the standard library only.
package registry

import "context"

// ForWorkers is everything that workers call of the Registry: directly in the same process, or over
// HTTP (web/protocol). Every argument has a bound (registry/bounds); ErrInvalid if one is exceeded.
type ForWorkers interface {
	// Attempts and items.
	Working
	ItemReader
	Queue
	// Functions and namespaces.
	Serving
	Stepping
	// Deposits.
	Uploads
	Batching
	ReportReader
	// Objects.
	Preserving
	Inventory
	Evidencing
	EventsSigning
	Locking
	Deleting
	Checking
	Copying
	Restoring
	// Receivers, and credentials for them and for sources.
	Delivering
	DeliveryReader
	Mailing
	Unlocking
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
}
