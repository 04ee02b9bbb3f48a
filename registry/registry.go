// Package registry is the contract of Holdfast's one system of record.
//
// Every WorkItem is known here. What happens to it is decided in one transaction, and only the
// holder of its live attempt can move it on. Everything else in Holdfast (NSQ messages, interim
// data, staged bytes, counters on a page) is a hint or a copy that may be lost (docs/invariants.md,
// I1).
//
// The package holds the words (WorkItem, Stage, Status, Route), the state machine that they obey,
// and [Store], the contract, which registry/sqlstore implements. Workers in other processes use its
// part [ForWorkers], which web/protocol carries over HTTP. The package imports the standard
// library only.
package registry

// Store is the system of record. One conformance suite, registrytest, holds for every implementation.
//
// Every method is one transaction: it happened whole or not at all, and a returned error other than a connection's
// loss means not at all. All methods may be called concurrently. Methods that take a Lease are fenced: they return
// [ErrClaimLost] and change nothing when the lease's attempt is not the item's live one.
type Store interface {
	ForWorkers
	// Of the work engine.
	AttemptReader
	Dispatching
	Sweeping
	Commanding
	Holding
	Feeds
	// Of deposits.
	Receiving
	Submitting
	Graphs
	ReportLister
	Profiles
	// Of objects.
	Catalog
	Attesting
	Deciding
	Requesting
	Rechecking
	// Of receivers.
	Notifying
	Subscribing
	Forwarding
	// Of who may ask.
	TokenKeeper
	Secrets
	// Close releases the store's resources; calls after it fail.
	Close() error
}
