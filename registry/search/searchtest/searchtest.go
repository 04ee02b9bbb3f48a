// Package searchtest is the conformance kit of search: lists, queries, failures by cause, and why
// an item waits.
package searchtest

import "github.com/holdfast/holdfast/registry/registrytest"

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		registrytest.NewTopic("why", whyTests()),
		registrytest.NewTopic("list", listTests()),
		registrytest.NewTopic("query", queryTests()),
		registrytest.NewTopic("failures", failuresTests()),
		registrytest.NewTopic("holdings", holdingsTests()),
	}
}

// fixture adds this kit's helpers.
type fixture struct{ *registrytest.Fixture }

// tests are the tests of a topic by their names.
type tests = map[string]func(*fixture)
