package progress

import (
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

func TestCodeOfProgress(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    registry.BatchProgress
		want exit.Code
	}{
		{"all completed", registry.BatchProgress{State: registry.StateCompleted, Settled: true, Jobs: 3, Completed: 3}, exit.OK},
		{"all failed on content", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 2, Failed: 2, Content: 2}, exit.Content},
		{"all failed on the system", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 2, Failed: 2}, exit.Failed},
		{"failed on both", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 2, Failed: 2, Content: 1}, exit.Partly},
		{"some completed", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 3, Completed: 2, Failed: 1, Content: 1}, exit.Partly},
		{"manifest wrong", registry.BatchProgress{State: registry.StateFailed, Settled: true, Class: registry.ContentFault}, exit.Content},
		{"manifest not fetched", registry.BatchProgress{State: registry.StateFailed, Settled: true, Class: registry.SystemFault}, exit.Failed},
		{"not reported", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 1, Completed: 1, Class: registry.SystemFault}, exit.Partly},
		{"content and cancelled", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 2, Failed: 1, Content: 1}, exit.Partly},
		{"cancelled", registry.BatchProgress{State: registry.StateCancelled, Settled: true, Jobs: 1}, exit.Failed},
		{"held", registry.BatchProgress{State: registry.StateHeld, Held: true, Jobs: 1, Open: 1}, exit.Held},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := CodeOf(tt.p); got != tt.want {
				t.Errorf("exit code %d, want %d", got, tt.want)
			}
		})
	}
}
