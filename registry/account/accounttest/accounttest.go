// Package accounttest is the conformance kit of accounts: tokens, sessions of browsers, saved views,
// credentials.
package accounttest

import "github.com/holdfast/holdfast/registry/registrytest"

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		registrytest.NewTopic("token", tokenTests()),
		registrytest.NewTopic("credential", credentialTests()),
		registrytest.NewTopic("signing", signingTests()),
		registrytest.NewTopic("view", viewTests()),
	}
}

// fixture adds this kit's helpers.
type fixture struct{ *registrytest.Fixture }

// tests are the tests of a topic by their names.
type tests = map[string]func(*fixture)
