// Package accounttest is the conformance kit of who may ask: tokens, sessions of browsers,
// credentials.
package accounttest

import "github.com/holdfast/holdfast/registry/registrytest"

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		topic("token", tokenTests()),
		topic("credential", credentialTests()),
		topic("signing", signingTests()),
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
