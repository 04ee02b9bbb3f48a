package registry_test

import (
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TestStateText: what waits for a retry is told as that and not as the step that does not run.
func TestStateText(t *testing.T) {
	now := time.Date(2026, 11, 22, 18, 20, 0, 0, time.UTC)
	zone := time.FixedZone("CET", 3600)
	for _, tt := range []struct {
		name string
		next *registry.NextTry
		now  time.Time
		want string
	}{
		{"runs", nil, now, "Downloading"},
		{"soon", &registry.NextTry{At: now.Add(3 * time.Minute), Attempt: 3, Of: 5}, now, "Retry at 18:23 UTC, attempt 3 of 5"},
		{"elsewhere", &registry.NextTry{At: now.Add(3 * time.Minute), Attempt: 3, Of: 5}, now.In(zone), "Retry at 19:23, attempt 3 of 5"},
		{"another day", &registry.NextTry{At: now.Add(24 * time.Hour), Attempt: 2, Of: 5}, now, "Retry at 2026-11-23 18:20 UTC, attempt 2 of 5"},
		{"due", &registry.NextTry{At: now, Attempt: 2, Of: 5}, now, "Retry due, attempt 2 of 5"},
		{"of a worker that did not say", &registry.NextTry{At: now, Attempt: 2}, now, "Retry due, attempt 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			it := registry.WorkItem{State: registry.StateDownloading, NextTry: tt.next}
			if got := it.StateText(tt.now); got != tt.want {
				t.Errorf("told as %q, want %q", got, tt.want)
			}
			job, err := registry.JobResultOf(it)
			if err != nil {
				t.Fatal(err)
			}
			if got := job.StateText(tt.now); got != tt.want {
				t.Errorf("the job is told as %q, want %q", got, tt.want)
			}
		})
	}
}
