package sqlstore_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// failsJob makes a job and fails it.
func failsJob(t *testing.T, s *sqlstore.Store, name string) {
	t.Helper()
	_, err := s.Submit(t.Context(), registry.Submission{Collection: "c", Name: name, Spec: registry.Spec{URL: "http://h.test/" + name}})
	if err != nil {
		t.Fatal(err)
	}
	claim := func(stage registry.Stage) registry.Lease {
		c, err := s.Claim(t.Context(), registry.ClaimRequest{RequestID: name + string(stage), Stage: stage, Worker: "w", Lease: time.Hour, MaxAttempts: 5, StuckAfter: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return c.Lease
	}
	settle := func(v registry.Settlement) {
		v.MaxAttempts = 5
		if _, err := s.Settle(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	l := claim(registry.Expand)
	if _, err := s.AddJobs(t.Context(), l, []registry.NewJob{{Line: 1, Row: 1, Name: name, Spec: registry.Spec{URL: "http://h.test/" + name}}}); err != nil {
		t.Fatal(err)
	}
	settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
	settle(registry.Settlement{Lease: claim(registry.Estimate), Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "gone"})
}

// failedIn adds up the failures of a day.
func failedIn(t *testing.T, s registrytest.Store) (failed int64) {
	t.Helper()
	day, err := s.Throughput(t.Context(), registry.ThroughputDay)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[time.Time]bool{}
	for _, p := range day.Rows {
		if failed += p.Failed; seen[p.At] {
			t.Errorf("two rows of %v", p.At)
		}
		seen[p.At] = true
	}
	return failed
}

func collectionFor(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	if err := s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "test"); err != nil {
		t.Fatal(err)
	}
}

// TestThroughput_ThreeRegistries: three registries over one database, whose clocks differ by minutes,
// count each failure once.
func TestThroughput_ThreeRegistries(t *testing.T) {
	t.Parallel()
	url := sqlstoretest.Postgres(t)
	c := newClock()
	var stores []*sqlstore.Store
	for _, skew := range []time.Duration{0, -20 * time.Minute, 20 * time.Minute} {
		stores = append(stores, openURL(t, url, func() time.Time { return c.now().Add(skew) }))
	}
	collectionFor(t, stores[0])
	const rounds = 40
	for range rounds {
		failsJob(t, stores[0], "job "+c.now().String())
		c.pass(time.Minute)
		var all sync.WaitGroup
		for _, s := range stores {
			for range 2 {
				all.Go(func() {
					if err := s.NoteThroughput(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
	}
	c.pass(time.Hour) // the clock that is behind reaches the one that was ahead
	for _, s := range stores {
		if err := s.NoteThroughput(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if failed := failedIn(t, stores[2]); failed != rounds {
		t.Errorf("%d failures counted, want %d", failed, rounds)
	}
}

// TestThroughput_DiesAnywhere: a process that dies at any statement of counting leaves nothing of it,
// and the next one counts the same, once.
func TestThroughput_DiesAnywhere(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": sqlstoretest.SQLite, "postgres": sqlstoretest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			s := openURL(t, database(t), c.now)
			collectionFor(t, s)
			failsJob(t, s, "a")
			failsJob(t, s, "b")
			c.pass(time.Minute)
			survived := false
			for n := 1; !survived; n++ {
				statements := 0
				s.SetFault(func(query string) error {
					if strings.HasPrefix(query, "ROLLBACK") || strings.HasPrefix(query, "SAVEPOINT") || strings.HasPrefix(query, "RELEASE") {
						return nil
					}
					if statements++; statements >= n {
						return errFault
					}
					return nil
				})
				err := s.NoteThroughput(t.Context())
				s.SetFault(nil)
				if survived = err == nil; survived && n < 8 {
					t.Errorf("counting has %d statements", n)
				}
				if err != nil && !errors.Is(err, errFault) {
					t.Fatal(err)
				}
				if failed := failedIn(t, s); !survived && failed != 0 {
					t.Fatalf("dead at statement %d: %d failures", n, failed)
				}
			}
			if err := s.NoteThroughput(t.Context()); err != nil {
				t.Error(err)
			}
			if failed := failedIn(t, s); failed != 2 {
				t.Errorf("%d failures counted, want 2", failed)
			}
		})
	}
}
