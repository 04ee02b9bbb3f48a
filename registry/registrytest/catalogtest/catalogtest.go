// Package catalogtest is the conformance kit of what is preserved: identifiers and their locks,
// announced and recorded versions, receipts, deletions, fixity checks, restores, orphaned data.
package catalogtest

import "github.com/holdfast/holdfast/registry/registrytest"

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		topic("lock", lockTests()),
		topic("identify", identifyTests()),
		topic("intent", intentTests()),
		topic("abandon", abandonTests()),
		topic("record", recordTests()),
		topic("object_item", objectItemTests()),
		topic("deletion", deletionTests()),
		topic("fixity", fixityTests()),
		topic("restore", restoreTests()),
		topic("orphan", orphanTests()),
		topic("own_object", ownTests()),
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
