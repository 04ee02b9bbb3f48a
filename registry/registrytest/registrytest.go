// Package registrytest is what the conformance kits of the Registry share: the store under test, a
// clock, and the words that scenarios are told in. A kit below it holds the tests of one subject
// (worktest, deposittest, catalogtest, outboundtest, accounttest, searchtest); package suite runs
// them all.
//
// The kits are a black box: they use only the contract, look at what became of the data, and after
// every test check the invariants that always hold (I3, I9, I11 of docs/invariants.md). A test of a
// safety rule bears its number. A scenario that mrt-zk tests, too, bears its name there.
package registrytest

import (
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Store is the whole Registry: all roles.
type Store interface {
	registry.ForWorkers
	// Of the work engine.
	registry.AttemptReader
	registry.Dispatching
	registry.Sweeping
	registry.Commanding
	registry.Holding
	registry.Feeds
	// Of deposits.
	registry.Receiving
	registry.Submitting
	registry.Graphs
	registry.ReportLister
	registry.Profiles
	// Of objects.
	registry.Catalog
	registry.Attesting
	registry.Deciding
	registry.Requesting
	registry.Rechecking
	// Of receivers.
	registry.Notifying
	registry.Subscribing
	registry.Forwarding
	// Of who may ask.
	registry.TokenKeeper
	registry.Secrets
	// Close releases the store's resources; calls after it fail.
	Close() error
}

// Open opens an empty store whose clock is now, and which makes mails. It registers what closes the
// store with t.Cleanup.
type Open func(t *testing.T, now func() time.Time) Store

// Test is one test of the contract, with a store of its own.
type Test struct {
	Name string
	Run  func(*Fixture)
}

// Topic is the tests of one part of the contract.
type Topic struct {
	Name  string
	Tests []Test
}

// Run runs the topic's tests at the same time. Afterwards each checks the invariants, unless it has
// closed its store.
func (topic Topic) Run(t *testing.T, open Open) {
	t.Helper()
	t.Run(topic.Name, func(t *testing.T) {
		for _, tt := range topic.Tests {
			t.Run(tt.Name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, open)
				tt.Run(f)
				if !f.Closed {
					f.Invariants()
				}
			})
		}
	})
}
