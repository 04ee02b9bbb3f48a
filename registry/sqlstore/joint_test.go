package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

func none(string) error { return nil }

// crew is a store with a batch of jobs that wait for their first stage.
type crew struct {
	*testing.T
	*sqlstore.Store
	batch string
	asked int
}

func newCrew(t *testing.T, jobs int) *crew {
	t.Helper()
	c := &crew{T: t, Store: newStore(t)}
	if err := c.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"); err != nil {
		t.Fatal(err)
	}
	r, err := c.Submit(t.Context(), registry.Submission{Collection: "c"})
	if err != nil {
		t.Fatal(err)
	}
	c.batch = r.BatchID
	expand := c.claimed(registry.Expand)
	rows := make([]registry.NewJob, jobs)
	for i := range rows {
		rows[i] = registry.NewJob{Line: int64(i + 1), Spec: registry.Spec{Type: registry.FileType, URL: "https://example.org/x"}}
	}
	if _, err := c.AddJobs(t.Context(), expand.Lease, rows); err != nil {
		t.Fatal(err)
	}
	if err := c.done(expand.Lease); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *crew) request(stage registry.Stage, id string) registry.ClaimRequest {
	return registry.ClaimRequest{RequestID: id, Stage: stage, Hint: c.batch, Worker: "w", Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Hour}
}

func (c *crew) claimed(stage registry.Stage) registry.Claim {
	c.Helper()
	c.asked++
	claim, err := c.Claim(c.Context(), c.request(stage, fmt.Sprint(stage, c.asked)))
	if err != nil {
		c.Fatal(err)
	}
	return claim
}

func (c *crew) done(l registry.Lease) error {
	_, err := c.Settle(c.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeDone, MaxAttempts: 5})
	return err
}

// begun claims n jobs at a stage that they have come to.
func (c *crew) begun(stage registry.Stage, n int) (leases []registry.Lease) {
	c.Helper()
	for _, step := range mustRoute().Steps {
		leases = nil
		for range n {
			leases = append(leases, c.claimed(step.Stage).Lease)
		}
		if step.Stage == stage {
			return leases
		}
		for _, l := range leases {
			if err := c.done(l); err != nil {
				c.Fatal(err)
			}
		}
	}
	c.Fatalf("no stage %s", stage)
	return nil
}

func mustRoute() registry.Route {
	route, ok := registry.RouteOf(registry.Ingest)
	if !ok {
		panic("no route of jobs")
	}
	return route.With(nil)
}

func (c *crew) check() {
	c.Helper()
	checkReady(c.Context(), c.T, c.Store)
	registrytest.CheckInvariants(c.T, c.Store)
}

// TestJoint checks claims and settles that share a group.
func TestJoint(t *testing.T) {
	const n = 12
	t.Run("R23 jobs that settle together write their batch once", func(t *testing.T) {
		c := newCrew(t, n)
		leases := c.begun(registry.Notify, n)
		commits, rounds, written := 0, 0, 0
		errs := gather(c.Store, n, func(q string) error {
			switch {
			case q == "COMMIT":
				commits++
			case strings.HasPrefix(q, "UPDATE attempt SET finished_at"): // those that come while a group is run are run together after it
				rounds++
			case strings.HasPrefix(q, "UPDATE work_item SET blocker_count"):
				written++
			}
			return nil
		}, func(i int) error { return c.done(leases[i]) })
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if written != rounds || commits == n || rounds == n {
			t.Errorf("the batch was written %d times for %d rounds of %d settles, in %d groups", written, rounds, n, commits)
		}
		batch, err := c.Item(t.Context(), c.batch)
		if err != nil || batch.BlockerCount != 0 || batch.Closing != 1 {
			t.Errorf("batch %+v: %v", batch, err)
		}
		c.check()
	})
	t.Run("R10 who comes too late is told so, and nobody else hears of it", func(t *testing.T) {
		c := newCrew(t, n)
		leases := c.begun(registry.Estimate, n)
		lost := leases[3]
		leases[3].N++
		again := 0
		errs := gather(c.Store, n+1, func(q string) error {
			if strings.HasPrefix(q, "SAVEPOINT") {
				again++
			}
			return nil
		}, func(i int) error {
			if i == n { // the same settlement twice
				return c.done(leases[5])
			}
			return c.done(leases[i])
		})
		for i, err := range errs {
			if i == 3 && !errors.Is(err, registry.ErrClaimLost) || i != 3 && err != nil {
				t.Errorf("settle %d: %v", i, err)
			}
		}
		if again > 0 {
			t.Error("the group was run again for it")
		}
		if err := c.done(lost); err != nil {
			t.Errorf("the attempt that lives: %v", err)
		}
		c.check()
	})
	t.Run("R10 a fault anywhere in a group is no caller's for long", func(t *testing.T) {
		for at := range looptest.Steps(t) {
			c := newCrew(t, 2*n)
			leases := c.begun(registry.Estimate, n)
			statements, hurt := 0, false
			errs := gather(c.Store, 2*n, func(string) error {
				if statements++; statements == at {
					hurt = true
					return errFault
				}
				return nil
			}, func(i int) error {
				if i < n {
					return c.done(leases[i])
				}
				_, err := c.Claim(t.Context(), c.request(registry.Estimate, fmt.Sprint(i)))
				return err
			})
			failed := 0
			for i, err := range errs {
				if err == nil {
					continue
				}
				failed++
				if !errors.Is(err, errFault) {
					t.Errorf("fault at %d: call %d: %v", at, i, err)
				}
			}
			if failed > 1 { // who was alone in the first group
				t.Errorf("a fault at statement %d failed %d calls", at, failed)
			}
			c.check()
			running, err := c.Items(t.Context(), registry.ItemQuery{Status: registry.Running})
			if err != nil || len(running.Rows)+failed < n || len(running.Rows) > n+failed {
				t.Errorf("fault at %d: %d items run, %d calls failed, %v", at, len(running.Rows), failed, err)
			}
			if !hurt {
				break
			}
		}
	})
	t.Run("R11 settles come before claims", func(t *testing.T) {
		// A claim that is looked at before the settlement is refused, and tells nothing: until one
		// is not, in the settlement's group.
		for tries := 1; ; tries++ {
			c := newCrew(t, 1)
			lease := c.begun(registry.Estimate, 1)[0]
			begun := 0
			errs := gather(c.Store, 2, func(q string) error {
				if strings.HasPrefix(q, "BEGIN") {
					begun++
				}
				return nil
			}, func(i int) error {
				if i == 1 {
					return c.done(lease)
				}
				_, err := c.Claim(t.Context(), c.request(registry.Provision, "next"))
				return err
			})
			c.check()
			if errs[1] != nil {
				t.Fatal(errs[1])
			}
			if errs[0] == nil && begun == 1 {
				return
			}
			if tries == 200 {
				t.Fatalf("of %d claims that came with a settlement none had what it made ready, the last: %v", tries, errs[0])
			}
		}
	})
	t.Run("R25 renewals go first", func(t *testing.T) {
		for commits := 0; commits != 1; { // until both came in one group
			c := newCrew(t, 2)
			leases := c.begun(registry.Estimate, 2)
			var order []string
			commits = 0
			errs := gather(c.Store, 2, func(q string) error {
				for _, what := range []string{"UPDATE attempt AS a SET lease_until", "UPDATE attempt SET finished_at", "COMMIT"} {
					if strings.HasPrefix(q, what) {
						order = append(order, what)
					}
				}
				if q == "COMMIT" {
					commits++
				}
				return nil
			}, func(i int) error {
				if i == 0 {
					return c.done(leases[0])
				}
				_, err := c.Renew(t.Context(), registry.RenewRequest{
					Worker: registry.WorkerInfo{ID: "w"}, Lease: time.Minute, Beats: []registry.Beat{{Lease: leases[1], DoneBytes: -1, DoneFiles: -1}},
				})
				return err
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if commits == 1 && (len(order) == 0 || order[0] != "UPDATE attempt AS a SET lease_until") {
				t.Errorf("written in the order %q", order)
			}
		}
	})
	t.Run("R9 claims that come together get different items, a repeated request the same one", func(t *testing.T) {
		c := newCrew(t, n)
		got := make([]registry.Claim, n+3)
		errs := gather(c.Store, n+3, none, func(i int) (err error) {
			id := i
			if i >= n {
				id = 2 // a repeat, and again
			}
			got[i], err = c.Claim(t.Context(), c.request(registry.Estimate, fmt.Sprint("together ", id)))
			return err
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for i, claim := range got {
			if i >= n {
				if claim.Lease != got[2].Lease {
					t.Errorf("repeat %d got %v, the first request %v", i, claim.Lease, got[2].Lease)
				}
				continue
			}
			if seen[claim.Lease.ItemID] {
				t.Errorf("item %s was given twice", claim.Lease.ItemID)
			}
			seen[claim.Lease.ItemID] = true
		}
		c.check()
	})
}
