// Package suite runs all kits below registrytest as one suite, which every driver of the Registry
// passes. Its own tests go across the subjects: scenarios that mrt-zk tests, too, and what a
// Registry begins and ends with.
package suite

import (
	"slices"
	"testing"

	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/registrytest/accounttest"
	"github.com/holdfast/holdfast/registry/registrytest/catalogtest"
	"github.com/holdfast/holdfast/registry/registrytest/deposittest"
	"github.com/holdfast/holdfast/registry/registrytest/outboundtest"
	"github.com/holdfast/holdfast/registry/registrytest/searchtest"
	"github.com/holdfast/holdfast/registry/registrytest/worktest"
)

// Run runs the whole suite, or these topics of it. Every test gets a store of its own.
func Run(t *testing.T, open registrytest.Open, only ...string) {
	t.Helper()
	all := topics()
	known := map[string]bool{}
	for _, topic := range all {
		for _, tt := range topic.Tests {
			known[topic.Name+"/"+tt.Name] = true
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
			topic.Run(t, open)
		}
	}
}

func topics() []registrytest.Topic {
	return slices.Concat(
		deposittest.Topics(),
		worktest.Topics(),
		catalogtest.Topics(),
		outboundtest.Topics(),
		accounttest.Topics(),
		searchtest.Topics(),
		[]registrytest.Topic{topic("admin", adminTests()), topic("scenario", scenarioTests())},
	)
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
