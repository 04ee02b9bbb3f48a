package sqlstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// TestReclaim: Reclaim takes back all leases, however many there are and however long they last.
func TestReclaim(t *testing.T) {
	c := newClock()
	s := open(t, filepath.Join(t.TempDir(), "registry.db"), c.now)
	l := &life{s: s, clock: c}
	for _, step := range l.beginning() {
		if err := step.run(t.Context()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
	const n = 501 // more than one transaction takes
	run := func(step call) {
		t.Helper()
		if err := step.run(t.Context()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
	run(l.claim(registry.Expand))
	jobs := make([]registry.NewJob, n)
	for i := range jobs {
		jobs[i] = registry.NewJob{Line: int64(i + 1)}
	}
	for _, part := range [][]registry.NewJob{jobs[:500], jobs[500:]} {
		if _, err := s.AddJobs(t.Context(), l.lease, part); err != nil {
			t.Fatal(err)
		}
	}
	run(l.done())
	for range n {
		run(l.claim(registry.Estimate))
	}
	run(l.beat()) // the last one has got on
	lost, err := s.Reclaim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(lost) != n {
		t.Errorf("%d leases were taken back, want %d", len(lost), n)
	}
	registrytest.CheckInvariants(t, s)
	for _, lease := range lost {
		it, err := s.Item(t.Context(), lease.ItemID)
		if err != nil {
			t.Fatal(err)
		}
		want := 1
		if lease == l.lease {
			want = 0
		}
		if it.Status != registry.Pending || it.Tries != want || it.RunAt.After(c.now().Add(time.Second)) {
			t.Errorf("item %s is %s with %d tries, want pending with %d, at once", it.ID, it.Status, it.Tries, want)
		}
	}
	if again, err := s.Reclaim(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("the second call took %d: %v", len(again), err)
	}
}

// TestReclaim_LeavesProgramsOutside: a program that serves a function goes on while Holdfast is started
// again: its attempt stays its own, and it is still known.
func TestReclaim_LeavesProgramsOutside(t *testing.T) {
	for name, database := range map[string]func(testing.TB) string{"sqlite": sqlstoretest.SQLite, "postgres": sqlstoretest.Postgres} {
		t.Run(name, func(t *testing.T) {
			s := openURL(t, database(t), newClock().now)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(s.Announce(t.Context(), []registry.Function{{Name: "work"}}))
			it, err := s.AddTask(t.Context(), registry.NewTask{Function: "work"})
			must(err)
			c, err := s.Claim(t.Context(), registry.ClaimRequest{RequestID: "r", Stage: it.Stage, Worker: "program", Lease: time.Minute, MaxAttempts: 5})
			must(err)
			for worker, stage := range map[string]registry.Stage{"program": it.Stage, "ours": registry.Download} {
				_, err := s.Renew(t.Context(), registry.RenewRequest{
					Lease: time.Minute, Worker: registry.WorkerInfo{ID: worker, Capacity: map[registry.Stage]int{stage: 1}},
				})
				must(err)
			}
			lost, err := s.Reclaim(t.Context())
			must(err)
			if len(lost) > 0 {
				t.Errorf("taken back: %+v", lost)
			}
			all, err := s.Workers(t.Context())
			must(err)
			if len(all) != 1 || all[0].ID != "program" {
				t.Errorf("known are %+v", all)
			}
			if v, err := s.Settle(t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone}); err != nil || v.Status != registry.Completed {
				t.Errorf("its result: %+v, %v", v, err)
			}
		})
	}
}
