package deposit

import (
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TestSafeAs: a depositor may delete a copy only if every byte was read back in two storages.
func TestSafeAs(t *testing.T) {
	at := time.Unix(1000, 0)
	one, two, unread := registry.Replica{Storage: "one", VerifiedAt: at}, registry.Replica{Storage: "two", VerifiedAt: at}, registry.Replica{Storage: "three"}
	for _, tt := range []struct {
		replicas []registry.Replica
		damaged  bool
		want     bool
	}{
		{nil, false, false},
		{[]registry.Replica{one}, false, false},
		{[]registry.Replica{one, unread}, false, false},
		{[]registry.Replica{one, two}, false, true},
		{[]registry.Replica{one, two}, true, false},
	} {
		if got := safeAs(registry.ObjectVersion{Version: 1, Replicas: tt.replicas}, tt.damaged); got.Safe != tt.want {
			t.Errorf("%v, damaged %v: safe %v, want %v", tt.replicas, tt.damaged, got.Safe, tt.want)
		}
	}
}

// TestPhaseOf tells depositors when they must act themselves.
func TestPhaseOf(t *testing.T) {
	for _, tt := range []struct {
		batch    registry.WorkItem
		progress registry.BatchProgress
		want     phase
	}{
		{registry.WorkItem{Status: registry.Failed, ErrorClass: registry.JobsFault}, registry.BatchProgress{Failed: 2, Content: 1}, phaseMine},
		{registry.WorkItem{Status: registry.Failed, ErrorClass: registry.JobsFault}, registry.BatchProgress{Failed: 2}, phaseTheirs},
		{registry.WorkItem{Status: registry.Failed, ErrorClass: registry.ContentFault}, registry.BatchProgress{}, phaseMine},
		{registry.WorkItem{Status: registry.Failed, ErrorClass: registry.SystemFault}, registry.BatchProgress{}, phaseTheirs},
		{registry.WorkItem{Status: registry.Running, State: registry.StateProcessing}, registry.BatchProgress{Jobs: 3, Failed: 2, Content: 2, Corrected: 1}, phaseMine},
		{registry.WorkItem{Status: registry.Running, State: registry.StateProcessing}, registry.BatchProgress{Failed: 2}, phaseRunning},
		{registry.WorkItem{Status: registry.Running, State: registry.StateReporting}, registry.BatchProgress{Jobs: 1, Failed: 1, Content: 1}, phaseRunning},
		{registry.WorkItem{Status: registry.Completed}, registry.BatchProgress{}, phaseDone},
		{registry.WorkItem{Status: registry.Deleted}, registry.BatchProgress{}, phaseStopped},
		{registry.WorkItem{Status: registry.Pending, State: registry.StateHeld}, registry.BatchProgress{}, phaseWaiting},
		{registry.WorkItem{Status: registry.Pending, State: registry.StateProcessing}, registry.BatchProgress{Held: true}, phaseWaiting},
		{registry.WorkItem{Status: registry.Pending, State: registry.StateProcessing}, registry.BatchProgress{}, phaseRunning},
	} {
		if got := phaseOf(tt.batch, tt.progress); got != tt.want {
			t.Errorf("%s %s %s, %+v: %s, want %s", tt.batch.Status, tt.batch.State, tt.batch.ErrorClass, tt.progress, got, tt.want)
		}
	}
}
