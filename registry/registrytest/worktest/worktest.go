// Package worktest is the conformance kit of the work engine: attempts and leases, holds, lanes,
// graphs, acts of people on items, events. It knows of deposits and objects only what makes an item
// wait or go on.
package worktest

import "github.com/holdfast/holdfast/registry/registrytest"

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		topic("claim", claimTests()),
		topic("renew", renewTests()),
		topic("settle", settleTests()),
		topic("fence", fenceTests()),
		topic("sweep", sweepTests()),
		topic("wake", wakeTests()),
		topic("reserve", reserveTests()),
		topic("hold", holdTests()),
		topic("held_by", heldByTests()),
		topic("held_worker", heldWorkerTests()),
		topic("release", releaseTests()),
		topic("queue", queueTests()),
		topic("seed_locks", seedLockTests()),
		topic("command", commandTests()),
		topic("transition", transitionTests()),
		topic("stop", stopTests()),
		topic("delete", deleteTests()),
		topic("bulk", bulkTests()),
		topic("purge", purgeTests()),
		topic("expire", expireTests()),
		topic("graph", graphTests()),
		topic("turn", turnTests()),
		topic("crowd", crowdTests()),
		topic("feed", feedTests()),
		topic("own", ownTests()),
		topic("foreign", foreignTests()),
		topic("bounds", boundTests()),
	}
}

// fixture is a store under test, with the words of these tests.
type fixture struct{ *registrytest.Fixture }

type test struct {
	name string
	run  func(*fixture)
}

func topic(name string, tests []test) registrytest.Topic {
	t := registrytest.Topic{Name: name}
	for _, tt := range tests {
		t.Tests = append(t.Tests, registrytest.Test{Name: tt.name, Run: func(f *registrytest.Fixture) { tt.run(&fixture{f}) }})
	}
	return t
}
