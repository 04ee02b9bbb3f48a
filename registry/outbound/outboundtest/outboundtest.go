// Package outboundtest is the conformance kit of outbound messages: callbacks, mails,
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

// fixture adds this kit's helpers.
type fixture struct{ *registrytest.Fixture }

// tests are the tests of a topic by their names.
type tests = map[string]func(*fixture)
