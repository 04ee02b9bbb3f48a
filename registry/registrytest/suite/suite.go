// Package suite runs the conformance kits of all subjects as one suite. Every driver of the Registry
// passes it. Its own tests go across the subjects: the scenarios of mrt-zk's tests, and what a
// Registry begins and ends with.
package suite

import (
	"slices"
	"testing"

	"github.com/holdfast/holdfast/registry/account/accounttest"
	"github.com/holdfast/holdfast/registry/catalog/catalogtest"
	"github.com/holdfast/holdfast/registry/deposit/deposittest"
	"github.com/holdfast/holdfast/registry/outbound/outboundtest"
	"github.com/holdfast/holdfast/registry/processes/processestest"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/schedules/schedulestest"
	"github.com/holdfast/holdfast/registry/search/searchtest"
	"github.com/holdfast/holdfast/registry/survey/surveytest"
	"github.com/holdfast/holdfast/registry/tasks/taskstest"
	"github.com/holdfast/holdfast/registry/throughput/throughputtest"
	"github.com/holdfast/holdfast/registry/work/worktest"
)

// Run runs the whole suite, or only the named topics. Every test gets its own store.
func Run(t *testing.T, open registrytest.Open, only ...string) {
	t.Helper()
	run(t, open, false, only)
}

// Sample is Run for a driver whose stores cost much, of a contract that a cheaper one passes whole:
// of tests that are alike it runs one in four, other ones each time.
func Sample(t *testing.T, open registrytest.Open, only ...string) {
	t.Helper()
	run(t, open, true, only)
}

func run(t *testing.T, open registrytest.Open, sample bool, only []string) {
	t.Helper()
	all := topics()
	known := map[string]bool{}
	for _, topic := range all {
		for name := range topic.Tests {
			known[topic.Name+"/"+name] = true
		}
	}
	checkScenarios(t, known)
	for _, name := range only {
		if !slices.ContainsFunc(all, func(t registrytest.Topic) bool { return t.Name == name }) {
			t.Fatalf("there is no topic %q", name)
		}
	}
	for _, topic := range all {
		if len(only) == 0 || slices.Contains(only, topic.Name) {
			topic.Run(t, open, sample)
		}
	}
}

func topics() []registrytest.Topic {
	return slices.Concat(
		deposittest.Topics(),
		worktest.Topics(),
		taskstest.Topics(),
		schedulestest.Topics(),
		surveytest.Topics(),
		throughputtest.Topics(),
		processestest.Topics(),
		catalogtest.Topics(),
		outboundtest.Topics(),
		accounttest.Topics(),
		searchtest.Topics(),
		[]registrytest.Topic{registrytest.NewTopic("admin", adminTests()), registrytest.NewTopic("scenario", scenarioTests())},
	)
}

// fixture adds the helpers of these tests.
type fixture struct{ *registrytest.Fixture }

// tests are the tests of a topic by their names.
type tests = map[string]func(*fixture)
