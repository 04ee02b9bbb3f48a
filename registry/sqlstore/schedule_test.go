package sqlstore_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// quarterly adds a schedule that fires at each quarter of an hour.
func quarterly(t *testing.T, s registrytest.Store) {
	t.Helper()
	if err := s.Announce(t.Context(), []registry.Function{{Name: "harvest"}}); err != nil {
		t.Fatal(err)
	}
	_, err := s.AddSchedule(t.Context(), registry.ScheduleRequest{Name: "q", Actor: "ann", ScheduleSpec: registry.ScheduleSpec{
		Cron: "*/15 * * * *", Zone: "Europe/Berlin", Overlap: registry.OverlapAllow, CatchUp: registry.CatchUpAll,
		Task: &registry.ScheduledTask{Function: "harvest", Args: json.RawMessage(`{}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// fired returns the times of all items that the schedule made, and fails for a time without an item.
func fired(t *testing.T, s registrytest.Store) (ticks []string) {
	t.Helper()
	seen := map[string]bool{}
	for after := ""; ; {
		page, err := s.Firings(t.Context(), "q", after, 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range page.Rows {
			if f.Outcome != registry.FiringSubmitted || seen[f.ItemID] {
				t.Errorf("firing %+v", f)
			}
			seen[f.ItemID] = true
			ticks = append(ticks, f.Tick.Format(time.RFC3339))
		}
		if after = page.Next; after == "" {
			break
		}
	}
	n, err := s.Items(t.Context(), registry.ItemQuery{Action: registry.Task, Limit: 500})
	if err != nil || len(n.Rows) != len(ticks) {
		t.Errorf("%d items of %d firings, %v", len(n.Rows), len(ticks), err)
	}
	slices.Sort(ticks)
	return ticks
}

// TestC28_ThreeRegistries: three registries over one database, whose clocks differ by more than the
// schedule's interval, fire each of its times once.
func TestC28_ThreeRegistries(t *testing.T) {
	t.Parallel()
	url := sqlstoretest.Postgres(t)
	c := newClock()
	from := c.now()
	var stores []*sqlstore.Store
	for _, skew := range []time.Duration{0, -20 * time.Minute, 20 * time.Minute} {
		stores = append(stores, openURL(t, url, func() time.Time { return c.now().Add(skew) }))
	}
	quarterly(t, stores[0])
	const rounds = 60
	for range rounds {
		c.pass(10 * time.Minute)
		var all sync.WaitGroup
		for _, s := range stores {
			for range 2 {
				all.Go(func() {
					if _, err := s.FireSchedules(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
	}
	var want []string
	for at := from.Truncate(15 * time.Minute).Add(15 * time.Minute); !at.After(c.now().Add(20 * time.Minute)); at = at.Add(15 * time.Minute) {
		want = append(want, at.UTC().Format(time.RFC3339))
	}
	if got := fired(t, stores[0]); !slices.Equal(got, want) {
		t.Errorf("fired %d times, want %d:\n%v\n%v", len(got), len(want), got, want)
	}
}

// TestC28_KilledWhileFiring: a process that dies at any statement of a firing leaves nothing of it,
// and the next process fires the same time, once.
func TestC28_KilledWhileFiring(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": sqlstoretest.SQLite, "postgres": sqlstoretest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			s := openURL(t, database(t), c.now)
			quarterly(t, s)
			c.pass(15 * time.Minute)
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
				_, err := s.FireSchedules(t.Context())
				s.SetFault(nil)
				if survived = err == nil; survived && n < 8 {
					t.Errorf("a firing has %d statements", n)
				}
				if err != nil && !errors.Is(err, errFault) {
					t.Fatal(err)
				}
				if got := fired(t, s); !survived && len(got) != 0 {
					t.Fatalf("dead at statement %d: %v", n, got)
				}
			}
			if _, err := s.FireSchedules(t.Context()); err != nil {
				t.Error(err)
			}
			if got := fired(t, s); len(got) != 1 {
				t.Errorf("fired %v", got)
			}
		})
	}
}
