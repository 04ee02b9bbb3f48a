package terminal_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

// Each outcome of an attempt has a colour, and so has each condition by its first word; a number has
// one unless it is 0. What is not a terminal gets none.
func TestMeanings(t *testing.T) {
	for condition, want := range map[string]terminal.Meaning{
		string(registry.OutcomeDone): terminal.Good, string(registry.OutcomeRetry): terminal.Waiting, string(registry.OutcomeSnooze): terminal.Waiting,
		string(registry.OutcomeReleased): terminal.Quiet, string(registry.OutcomeFailed): terminal.Bad, string(registry.OutcomeSentBack): terminal.Waiting,
		string(registry.OutcomeLost): terminal.Bad, string(registry.OutcomeWithdrawn): terminal.Quiet,
		"failing since 2026-01-02, 3 tries: no": terminal.Bad, "paused by ann": terminal.Waiting, "until 2026-01-02": terminal.Plain, "": terminal.Plain,
	} {
		if got := terminal.ConditionMeaning(condition); got != want {
			t.Errorf("%q means %d, want %d", condition, got, want)
		}
	}
	bad := terminal.Counted(terminal.Bad)
	if bad("0") != terminal.Quiet || bad("") != terminal.Quiet || bad("12") != terminal.Bad {
		t.Error("numbers have wrong meanings")
	}
	var out strings.Builder
	f := &terminal.Facts{}
	f.AddAs(terminal.Bad, "error", "no\x1b[1m room")
	if err := f.Write(&out); err != nil || out.String() != "error:  no"+strings.TrimPrefix(terminal.Clean("no\x1b[1m room"), "no")+"\n" {
		t.Errorf("facts in a file: %q, %v", out.String(), err)
	}
}
