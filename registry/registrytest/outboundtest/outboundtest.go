// Package outboundtest is the conformance kit of what is told to others: callbacks, mails,
// subscriptions.
package outboundtest

import "github.com/holdfast/holdfast/registry/registrytest"

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		topic("delivery", deliveryTests()),
		topic("mail", mailTests()),
		topic("subscription", subscriptionTests()),
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
