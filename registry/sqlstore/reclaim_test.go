package sqlstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
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
