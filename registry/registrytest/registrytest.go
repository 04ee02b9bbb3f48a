// Package registrytest has what the Registry's conformance kits share: the store under test, a clock,
// and helpers. Each subject's kit lies beside the subject: work/worktest, deposit/deposittest,
// catalog/catalogtest, outbound/outboundtest, account/accounttest, search/searchtest. Package suite
// runs them all.
//
// The kits test a black box. They use only the contract and check the data afterwards. After every
// test they check the invariants that always hold (I3, I9, I11 of docs/invariants.md). A test of a
// safety rule has the rule's number in its name. A scenario of mrt-zk's tests keeps its name.
package registrytest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/survey"
)

// Store is the whole Registry: all roles.
type Store interface {
	registry.ForWorkers
	// Of the work engine.
	registry.AttemptReader
	registry.Explaining
	registry.Dispatching
	registry.Sweeping
	registry.Commanding
	registry.Holding
	registry.Limiting
	registry.Feeds
	registry.Accessing
	registry.BackupNoting
	registry.ThroughputReader
	registry.ThroughputNoting
	registry.TokenUseNoting
	// Of deposits.
	registry.Receiving
	registry.Submitting
	registry.Graphs
	registry.Tasking
	registry.Scheduling
	registry.SchedulesFiring
	registry.StepReader
	registry.Processing
	registry.ReportLister
	registry.CorrectionReader
	registry.Profiles
	// Of objects.
	registry.Catalog
	registry.Attesting
	registry.EvidenceKeeping
	registry.Deciding
	registry.Requesting
	registry.Rechecking
	registry.HoldingsReader
	survey.Reader
	registry.Storing
	registry.Aligning
	// Of receivers.
	registry.Notifying
	registry.Subscribing
	registry.Forwarding
	// Of who may ask.
	registry.TokenKeeper
	registry.ViewKeeper
	registry.Secrets
	// Close releases the store's resources; calls after it fail.
	Close() error
}

// Open opens an empty store that uses the clock now and makes mails. It closes the store with
// t.Cleanup.
type Open func(t *testing.T, now func() time.Time) Store

// Topic is the tests of one part of the contract, by their names. Each gets its own store.
type Topic struct {
	Name  string
	Tests map[string]func(*Fixture)
	// Alike says that the tests differ in their data only, so that some stand for all.
	Alike bool
}

// NewTopic makes a topic of a kit's tests. Their fixture embeds Fixture and adds the kit's helpers.
func NewTopic[F ~struct{ *Fixture }](name string, tests map[string]func(*F)) Topic {
	topic := Topic{Name: name, Tests: map[string]func(*Fixture){}}
	for name, test := range tests {
		topic.Tests[name] = func(f *Fixture) { test(&F{f}) }
	}
	return topic
}

// Run runs the topic's tests in parallel. Afterwards each checks the invariants, unless it has
// closed its store. With sample it runs one in four of tests that are alike (internal/looptest).
func (topic Topic) Run(t *testing.T, open Open, sample bool) {
	t.Helper()
	t.Run(topic.Name, func(t *testing.T) {
		chosen := looptest.Some(t, 4)
		for _, name := range slices.Sorted(maps.Keys(topic.Tests)) {
			if sample && topic.Alike && !chosen() {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, open)
				topic.Tests[name](f)
				if !f.Closed {
					f.Invariants()
				}
			})
		}
	})
}
