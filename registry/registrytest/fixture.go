package registrytest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Defaults of the tests.
const (
	Lease    = 30 * time.Second
	Attempts = 5
	Mnemonic = "merritt_demo"
	Owner    = "ark:/99999/owner"
	Agent    = "Holdfast test" // of preservation events
)

// Clock is the store's only source of time.
type Clock struct {
	mu   sync.Mutex
	at   time.Time
	step time.Duration
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(c.step)
	return c.at
}

// Step makes each later call of Now advance the clock.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step = d
}

// Pass advances the clock.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Fixture is a store under test with one collection, and the helpers of tests.
type Fixture struct {
	*testing.T
	Store  Store
	Clock  *Clock
	Closed bool // by the test

	mu  sync.Mutex
	ids int
}

func newFixture(t *testing.T, open Open) *Fixture {
	t.Helper()
	f := &Fixture{T: t, Clock: &Clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}}
	f.Store = open(t, f.Clock.Now)
	f.Collection(Mnemonic, registry.Profile{Name: "Demo", Owner: Owner})
	return f
}

// Unique returns a name that no other call returns.
func (f *Fixture) Unique(prefix string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids++
	return fmt.Sprintf("%s%04d", prefix, f.ids)
}

// Must ends the test on an error.
func (f *Fixture) Must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// Is ends the test unless an error is of a kind.
func (f *Fixture) Is(err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("error %v, want %v", err, want)
	}
}

// Collection saves a profile as the collection's next version.
func (f *Fixture) Collection(name string, p registry.Profile) {
	f.Helper()
	f.Must(f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: name, Profile: p}, "admin"))
}

// Submission returns a submission of a manifest to the fixture's collection.
func Submission() registry.Submission {
	return registry.Submission{
		Collection: Mnemonic, Actor: "depositor",
		Spec: registry.Spec{
			Type: registry.BatchManifest, Mode: registry.Add, URL: "https://example.org/batch.checkm", Filename: "batch.checkm",
			Submitter: "somebody",
		},
	}
}

// Submit submits a batch and returns its id.
func (f *Fixture) Submit(change ...func(*registry.Submission)) string {
	f.Helper()
	s := Submission()
	for _, c := range change {
		c(&s)
	}
	r, err := f.Store.Submit(f.Context(), s)
	f.Must(err)
	return r.BatchID
}
