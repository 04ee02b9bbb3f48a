// Package registry is the contract of Holdfast's one system of record.
//
// Every WorkItem is known here. What happens to it is decided in one transaction, and only the
// holder of its live attempt can move it on. Everything else in Holdfast (NSQ messages, interim
// data, staged bytes, counters on a page) is a hint or a copy that may be lost (docs/invariants.md,
// I1).
//
// The package holds the words (WorkItem, Stage, Status, Route), the state machine that they obey,
// and the contract: small roles, each beside the types of its subject, such as [Working] or
// [Receiving]. Who needs the Registry takes the roles that it asks. Workers in other processes have
// [ForWorkers], which web/protocol carries over HTTP. The whole is the Store that
// registry/sqlstore opens; registry/registrytest/suite is its conformance suite.
//
// Every method of a role is one transaction: it happened whole or not at all, and a returned error
// other than a connection's loss means not at all. All methods may be called concurrently. Methods
// that take a [Lease] are fenced: they return [ErrClaimLost] and change nothing when the lease's
// attempt is not the item's live one.
//
// The package imports the standard library only.
package registry
