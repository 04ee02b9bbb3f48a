package registry_test

import (
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func TestStateOf(t *testing.T) {
	ingest := func(s registry.Stage, st registry.Status, attempt int64) registry.Position {
		return registry.Position{Action: registry.Ingest, Stage: s, Status: st, Attempt: attempt}
	}
	for _, tt := range []struct {
		name string
		p    registry.Position
		want registry.State
	}{
		{"new job", ingest(registry.Estimate, registry.Pending, 0), "Pending"},
		{"job pending again", ingest(registry.Estimate, registry.Pending, 1), "Estimating"},
		{"estimate", ingest(registry.Estimate, registry.Running, 1), "Estimating"},
		{"provision waits", ingest(registry.Provision, registry.Pending, 1), "Provisioning"},
		{"provision", ingest(registry.Provision, registry.Running, 2), "Provisioning"},
		{"download", ingest(registry.Download, registry.Running, 3), "Downloading"},
		{"process", ingest(registry.Process, registry.Running, 4), "Processing"},
		{"replicate", ingest(registry.Replicate, registry.Running, 5), "Replicating"},
		{"record", ingest(registry.Record, registry.Running, 5), "Recording"},
		{"notify", ingest(registry.Notify, registry.Running, 6), "Notify"},
		{"completed", ingest(registry.Notify, registry.Completed, 6), "Completed"},
		{"failed", ingest(registry.Download, registry.Failed, 6), "Failed"},
		{"cancelled", ingest(registry.Download, registry.Cancelled, 6), "Cancelled"},
		{"aborted", ingest(registry.Download, registry.Aborted, 6), "Aborted"},
		{"deleted", ingest(registry.Download, registry.Deleted, 6), "Deleted"},
		{"prepare", ingest(registry.Estimate, registry.Prepare, 0), "Prepare"},
		{"held", registry.Position{Action: registry.Ingest, Stage: registry.Download, Status: registry.Pending, Held: true}, "Held"},
		{"a running step is not held", registry.Position{Action: registry.Ingest, Stage: registry.Download, Status: registry.Running, Held: true}, "Downloading"},
		{"a failed item is not held", registry.Position{Action: registry.Ingest, Stage: registry.Download, Status: registry.Failed, Held: true}, "Failed"},

		{"new batch", registry.Position{Action: registry.Batch, Stage: registry.Expand, Status: registry.Pending}, "Pending"},
		{"expand", registry.Position{Action: registry.Batch, Stage: registry.Expand, Status: registry.Running, Attempt: 1}, "Processing"},
		{"batch waits for jobs", registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Pending, Attempt: 1, Open: 2}, "Processing"},
		{"report", registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Pending, Attempt: 1, Closing: 1}, "Reporting"},
		{"report runs while a job runs again", registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Running, Attempt: 1, Open: 1, Closing: 1}, "Reporting"},
		{"update waits for jobs", registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Pending, Attempt: 2, Open: 1, Closing: 1}, "Processing"},
		{"update", registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Running, Attempt: 3, Closing: 2}, "UpdateReporting"},

		{"unknown action", registry.Position{Action: "other", Stage: "run", Status: registry.Running}, "run"},
		{"unknown stage", registry.Position{Action: registry.Ingest, Stage: "weigh", Status: registry.Running}, "weigh"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := registry.StateOf(tt.p); got != tt.want {
				t.Errorf("state=%s, want %s", got, tt.want)
			}
		})
	}
}

func TestStateEqual(t *testing.T) {
	if !registry.StateCompleted.Equal("COMPLETED") || registry.StateCompleted.Equal("Complete") {
		t.Error("states are compared without regard to case, and whole")
	}
}

func TestSettled(t *testing.T) {
	open := map[registry.Status]bool{registry.Prepare: true, registry.Pending: true, registry.Running: true}
	for _, s := range registry.Statuses() {
		if s.Settled() == open[s] {
			t.Errorf("%s: settled=%v", s, s.Settled())
		}
	}
	if registry.Status("nonsense").Settled() {
		t.Error("an unknown status is settled")
	}
}

// TestStateText: an item that waits for a retry shows that, and not its step, which is not running.
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
		{"soon", &registry.NextTry{At: now.Add(3 * time.Minute), Attempt: 3, Of: 5}, now, "Retry at 18:23:00 UTC, attempt 3 of 5"},
		{"elsewhere", &registry.NextTry{At: now.Add(3 * time.Minute), Attempt: 3, Of: 5}, now.In(zone), "Retry at 19:23:00, attempt 3 of 5"},
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
