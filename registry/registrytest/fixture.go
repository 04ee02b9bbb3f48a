package registrytest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// What tests do not care about.
const (
	lease    = 30 * time.Second
	attempts = 5
	mnemonic = "merritt_demo"
	owner    = "ark:/99999/owner"
	agent    = "Holdfast test" // of preservation events
)

// clock is the store's only source of time.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// fixture is a store under test, with one collection, and the words the tests are written in.
type fixture struct {
	*testing.T
	registry.Store
	clock  *clock
	closed bool // by the test

	mu  sync.Mutex
	ids int
}

func newFixture(t *testing.T, open Open) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}}
	f.Store = open(t, f.clock.now)
	f.collection(mnemonic, registry.Profile{Name: "Demo", Owner: owner})
	return f
}

// unique returns a name that no other call returns.
func (f *fixture) unique(prefix string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids++
	return fmt.Sprintf("%s%04d", prefix, f.ids)
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// is checks an error's kind.
func (f *fixture) is(err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("error %v, want %v", err, want)
	}
}

func (f *fixture) collection(name string, p registry.Profile) {
	f.Helper()
	f.must(f.PutCollection(f.Context(), registry.Collection{Mnemonic: name, Profile: p}, "admin"))
}

func submission() registry.Submission {
	return registry.Submission{
		Collection: mnemonic, Actor: "depositor",
		Spec: registry.Spec{
			Type: registry.BatchManifest, Mode: registry.Add, URL: "https://example.org/batch.checkm", Filename: "batch.checkm",
			Submitter: "somebody",
		},
	}
}

// submit makes a batch.
func (f *fixture) submit(change ...func(*registry.Submission)) string {
	f.Helper()
	s := submission()
	for _, c := range change {
		c(&s)
	}
	r, err := f.Submit(f.Context(), s)
	f.must(err)
	return r.BatchID
}
