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
