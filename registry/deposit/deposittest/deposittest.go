// Package deposittest is the conformance kit of deposits: uploads and their quotas, submissions,
// batches, their reports, profiles of collections.
package deposittest

import "github.com/holdfast/holdfast/registry/registrytest"

// Topics returns the kit's topics.
func Topics() []registrytest.Topic {
	return []registrytest.Topic{
		registrytest.NewTopic("incoming", incomingTests()),
		registrytest.NewTopic("upload_quota", uploadQuotaTests()),
		registrytest.NewTopic("submit", submitTests()),
		registrytest.NewTopic("release_upload", releaseTests()),
		registrytest.NewTopic("batch", batchTests()),
		registrytest.NewTopic("report", reportTests()),
		registrytest.NewTopic("profile", profileTests()),
	}
}

// fixture adds this kit's helpers.
type fixture struct{ *registrytest.Fixture }

// tests are the tests of a topic by their names.
type tests = map[string]func(*fixture)
