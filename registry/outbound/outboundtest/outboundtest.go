// Package outboundtest is the conformance kit of what is told to others: callbacks, mails,
// subscriptions.
package outboundtest

import "github.com/holdfast/holdfast/registry/registrytest"

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		registrytest.NewTopic("delivery", deliveryTests()),
		registrytest.NewTopic("mail", mailTests()),
		registrytest.NewTopic("subscription", subscriptionTests()),
	}
}

// fixture is a store under test, with the helpers of these tests.
type fixture struct{ *registrytest.Fixture }

// tests are the tests of a topic by their names.
type tests = map[string]func(*fixture)
