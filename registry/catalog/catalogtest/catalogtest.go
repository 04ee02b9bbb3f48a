// Package catalogtest is the conformance kit of preserved objects: identifiers and their locks,
// announced and recorded versions, receipts, deletions, fixity checks, restores, orphaned data.
package catalogtest

import "github.com/holdfast/holdfast/registry/registrytest"

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		registrytest.NewTopic("lock", lockTests()),
		registrytest.NewTopic("identify", identifyTests()),
		registrytest.NewTopic("intent", intentTests()),
		registrytest.NewTopic("abandon", abandonTests()),
		registrytest.NewTopic("record", recordTests()),
		registrytest.NewTopic("object_item", objectItemTests()),
		registrytest.NewTopic("deletion", deletionTests()),
		registrytest.NewTopic("fixity", fixityTests()),
		registrytest.NewTopic("evidence", evidenceTests()),
		registrytest.NewTopic("restore", restoreTests()),
		registrytest.NewTopic("orphan", orphanTests()),
		registrytest.NewTopic("terms", termsTests()),
		registrytest.NewTopic("storages", storageTests()),
		registrytest.NewTopic("own_object", ownTests()),
	}
}

// fixture adds this kit's helpers.
type fixture struct{ *registrytest.Fixture }

// tests are the tests of a topic by their names.
type tests = map[string]func(*fixture)
