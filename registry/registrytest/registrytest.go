// Package registrytest is the conformance suite of registry.Store: what every driver must keep
// true.
//
// It is a black box: it uses only the contract, looks at what became of the data, and after every
// test checks the invariants that always hold (I3, I9, I11 of docs/invariants.md). A test of a
// safety rule bears its number. A scenario that mrt-zk tests, too, bears its name there.
package registrytest

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Open opens an empty store whose clock is now, and which makes mails. It registers what closes the store with t.Cleanup.
type Open func(t *testing.T, now func() time.Time) registry.Store

type test struct {
	name string
	run  func(*fixture)
}

// topic is the tests of one part of the contract.
type topic struct {
	name  string
	tests []test
}

func topics() []topic {
	return []topic{
		{"incoming", incomingTests()},
		{"upload_quota", uploadQuotaTests()},
		{"submit", submitTests()},
		{"claim", claimTests()},
		{"renew", renewTests()},
		{"settle", settleTests()},
		{"fence", fenceTests()},
		{"sweep", sweepTests()},
		{"wake", wakeTests()},
		{"batch", batchTests()},
		{"report", reportTests()},
		{"lock", lockTests()},
		{"identify", identifyTests()},
		{"intent", intentTests()},
		{"abandon", abandonTests()},
		{"record", recordTests()},
		{"object_item", objectItemTests()},
		{"deletion", deletionTests()},
		{"fixity", fixityTests()},
		{"restore", restoreTests()},
		{"delivery", deliveryTests()},
		{"mail", mailTests()},
		{"reserve", reserveTests()},
		{"hold", holdTests()},
		{"held_by", heldByTests()},
		{"held_worker", heldWorkerTests()},
		{"release", releaseTests()},
		{"queue", queueTests()},
		{"seed_locks", seedLockTests()},
		{"command", commandTests()},
		{"transition", transitionTests()},
		{"stop", stopTests()},
		{"delete", deleteTests()},
		{"bulk", bulkTests()},
		{"purge", purgeTests()},
		{"expire", expireTests()},
		{"orphan", orphanTests()},
		{"why", whyTests()},
		{"list", listTests()},
		{"query", queryTests()},
		{"failures", failuresTests()},
		{"admin", adminTests()},
		{"profile", profileTests()},
		{"graph", graphTests()},
		{"scenario", scenarioTests()},
		{"turn", turnTests()},
		{"crowd", crowdTests()},
		{"token", tokenTests()},
		{"credential", credentialTests()},
		{"feed", feedTests()},
		{"subscription", subscriptionTests()},
		{"own", ownTests()},
	}
}

// Topics returns the names of the suite's topics.
func Topics() (names []string) {
	for _, topic := range topics() {
		names = append(names, topic.name)
	}
	return names
}

// Run runs the whole suite, or these topics of it. Every test gets a store of its own.
func Run(t *testing.T, open Open, only ...string) {
	t.Helper()
	known := map[string]bool{}
	for _, topic := range topics() {
		for _, tt := range topic.tests {
			known[topic.name+"/"+tt.name] = true
		}
	}
	checkScenarios(t, known)
	for _, name := range only {
		if !slices.Contains(Topics(), name) {
			t.Fatalf("there is no topic %q", name)
		}
	}
	for _, topic := range topics() {
		if len(only) > 0 && !slices.Contains(only, topic.name) {
			continue
		}
		t.Run(topic.name, func(t *testing.T) {
			for _, tt := range topic.tests {
				t.Run(tt.name, func(t *testing.T) {
					t.Parallel()
					f := newFixture(t, open)
					tt.run(f)
					if !f.closed {
						f.invariants()
					}
				})
			}
		})
	}
}
