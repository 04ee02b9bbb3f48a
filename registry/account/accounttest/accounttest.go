// Package accounttest is the conformance kit of who may ask: tokens, sessions of browsers,
// credentials.
package accounttest

import "github.com/holdfast/holdfast/registry/registrytest"

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		registrytest.NewTopic("token", tokenTests()),
		registrytest.NewTopic("credential", credentialTests()),
		registrytest.NewTopic("signing", signingTests()),
	}
}

// fixture is a store under test, with the helpers of these tests.
type fixture struct{ *registrytest.Fixture }

// tests are the tests of a topic by their names.
type tests = map[string]func(*fixture)
