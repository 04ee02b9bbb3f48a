package queue

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// TestQueueStatus_WorkersAway: the status shows ready items and sent messages, and explains the
// difference.
func TestQueueStatus_WorkersAway(t *testing.T) {
	out := &strings.Builder{}
	a := &cli.App{Out: out, Err: io.Discard}
	err := printQueue(a, status{QueueStatus: registry.QueueStatus{Accepting: registry.Accepting{On: true}, Stages: []registry.StageQueue{
		{Stage: registry.Download, Ready: 5000, Rung: 2},
		{Stage: registry.Process, Ready: 3, Rung: 2, Capacity: 4, Free: 1},
		{Stage: registry.Run.Of("link-check"), Ready: 1},
	}}}, "")
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

// TestQueueStatus_Coverage: the status tells what share of the stored files was checked when, and only
// all of them are 100 %.
func TestQueueStatus_Coverage(t *testing.T) {
	checked := func(files ...int64) (all []registry.CheckedWithin) {
		for i, n := range files {
			all = append(all, registry.CheckedWithin{Days: registry.CheckedDays()[i], Files: n})
		}
		return all
	}
	at := time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC)
	for _, test := range []struct {
		kept wire.Holdings
		want string
	}{
		{wire.Holdings{Holdings: registry.Holdings{Files: 1200, Checked: checked(300, 1199, 1200), FixityDays: 90, Late: 1, At: at}}, `
stored files:           1,200, counted ` + terminal.TimeText(at) + `
fixity checks:          25 % of the files within 30 days
                        99 % of the files within 90 days
                        100 % of the files within 365 days
                        1 file is late: not checked for 90 days and a tenth
`},
		{wire.Holdings{Holdings: registry.Holdings{Checked: checked(0, 0, 0)}}, "\nfixity checks:          no file is stored yet\n"},
	} {
		out := &strings.Builder{}
		if err := printQueue(&cli.App{Out: out, Err: io.Discard}, status{Holdings: &test.kept}, ""); err != nil || !strings.Contains(out.String(), test.want) {
			t.Errorf("error %v, and the status does not say %q:\n%s", err, test.want, out)
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

// TestQueueStatus_Copies: the status says where objects lack copies, and which storages are on their way.
func TestQueueStatus_Copies(t *testing.T) {
	out, s := &strings.Builder{}, status{}
	s.addCopies(registry.StorageReport{
		Collections: []registry.CollectionCopies{{Collection: "maps", Objects: 9, Short: registry.Amount{Objects: 2}}, {Collection: "whole", Objects: 5}},
		Storages: []registry.Storage{
			{Name: "storage", State: registry.StorageRetiring, Waits: &registry.StorageWaits{Lacking: registry.Amount{Objects: 3}}},
			{Name: "second", State: registry.StorageFilling, Missing: registry.Amount{Objects: 1}},
			{Name: "third", State: registry.StorageInUse},
		},
	})
	if err := printQueue(&cli.App{Out: out, Err: io.Discard}, s, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 objects have fewer", "storage is retiring; 3 objects without their copies elsewhere", "second is filling; 1 object to be copied there"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the status does not say %q:\n%s", want, out)
		}
	}
	if len(s.Short) != 1 || strings.Contains(out.String(), "third") {
		t.Errorf("what is as it should be is told: %+v\n%s", s.Short, out)
	}
}
