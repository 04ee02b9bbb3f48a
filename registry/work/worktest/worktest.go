// Package worktest is the conformance kit of the work engine: attempts and leases, holds, lanes,
// graphs, acts of people, events. It uses deposits and objects only to make items wait or go on.
package worktest

import "github.com/holdfast/holdfast/registry/registrytest"

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		registrytest.NewTopic("claim", claimTests()),
		registrytest.NewTopic("renew", renewTests()),
		registrytest.NewTopic("settle", settleTests()),
		registrytest.NewTopic("continue", continueTests()),
		registrytest.NewTopic("fence", fenceTests()),
		registrytest.NewTopic("sweep", sweepTests()),
		registrytest.NewTopic("wake", wakeTests()),
		registrytest.NewTopic("reserve", reserveTests()),
		registrytest.NewTopic("hold", holdTests()),
		registrytest.NewTopic("held_by", heldByTests()),
		registrytest.NewTopic("held_worker", heldWorkerTests()),
		registrytest.NewTopic("release", releaseTests()),
		registrytest.NewTopic("queue", queueTests()),
		registrytest.NewTopic("seed_locks", seedLockTests()),
		registrytest.NewTopic("command", commandTests()),
		alike(registrytest.NewTopic("transition", transitionTests())),
		registrytest.NewTopic("stop", stopTests()),
		registrytest.NewTopic("delete", deleteTests()),
		registrytest.NewTopic("bulk", bulkTests()),
		registrytest.NewTopic("purge", purgeTests()),
		registrytest.NewTopic("expire", expireTests()),
		registrytest.NewTopic("graph", graphTests()),
		registrytest.NewTopic("turn", turnTests()),
		registrytest.NewTopic("crowd", crowdTests()),
		registrytest.NewTopic("limit", limitTests()),
		registrytest.NewTopic("feed", feedTests()),
		registrytest.NewTopic("own", ownTests()),
		registrytest.NewTopic("foreign", foreignTests()),
		registrytest.NewTopic("bounds", boundTests()),
	}
}

func alike(t registrytest.Topic) registrytest.Topic {
	t.Alike = true
	return t
}

// fixture adds this kit's helpers.
type fixture struct{ *registrytest.Fixture }

// tests are the tests of a topic by their names.
type tests = map[string]func(*fixture)
