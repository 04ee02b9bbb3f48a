package queue

import (
	"io"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/registry"
)

// TestQueueStatus_WorkersAway: the status shows ready items and sent messages, and explains the
// difference.
func TestQueueStatus_WorkersAway(t *testing.T) {
	out := &strings.Builder{}
	a := &cli.App{Out: out, Err: io.Discard}
	err := printQueue(a, registry.QueueStatus{Accepting: registry.Accepting{On: true}, Stages: []registry.StageQueue{
		{Stage: registry.Download, Ready: 5000, Rung: 2},
		{Stage: registry.Process, Ready: 3, Rung: 2, Capacity: 4, Free: 1},
		{Stage: registry.Run.Of("link-check"), Ready: 1},
	}}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"RUNG", "download: 5,000 items are ready, and no worker serves this stage", "has sent 2 messages to NSQ", "holdfast worker download", "link-check: 1 item is ready", "Start the program that serves link-check"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the status does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), "holdfast worker run:") {
		t.Errorf("holdfast worker serves no functions:\n%s", out)
	}
	if strings.Contains(out.String(), "process:") {
		t.Errorf("a stage that has workers is explained:\n%s", out)
	}
	for line := range strings.Lines(out.String()) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
}

// TestQueueStatus_Versions: the status tells the versions of the workers, and that several are an
// unfinished upgrade.
func TestQueueStatus_Versions(t *testing.T) {
	one, other := registry.WorkerInfo{Version: "v1.0.0"}, registry.WorkerInfo{Version: "v1.1.0"}
	for _, test := range []struct {
		workers []registry.WorkerInfo
		want    string
	}{
		{nil, "none"},
		{[]registry.WorkerInfo{one, one}, "2 of version v1.0.0"},
		{[]registry.WorkerInfo{other, one, one}, "2 of version v1.0.0; 1 of version v1.1.0; finish the upgrade"},
	} {
		if got := versionsText(test.workers); got != test.want {
			t.Errorf("%v: %q, want %q", test.workers, got, test.want)
		}
	}
}
