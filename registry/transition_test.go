package registry_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

func TestCheckAct(t *testing.T) {
	for _, tt := range []struct {
		action   registry.Action
		act      registry.Act
		from, to registry.Status
		ok       bool
	}{
		{registry.Ingest, registry.ActSubmit, "", registry.Pending, true},
		{registry.Ingest, registry.ActReject, "", registry.Failed, true},
		{registry.Batch, registry.ActReject, "", registry.Failed, false},
		{registry.Ingest, registry.ActClaim, registry.Pending, registry.Running, true},
		{registry.Ingest, registry.ActClaim, registry.Running, registry.Running, false},
		{registry.Ingest, registry.ActClaim, registry.Failed, registry.Running, false},
		{registry.Ingest, registry.ActAdvance, registry.Running, registry.Pending, true},
		{registry.Ingest, registry.ActAdvance, registry.Pending, registry.Pending, false},
		{registry.Ingest, registry.ActComplete, registry.Running, registry.Completed, true},
		{registry.Ingest, registry.ActComplete, registry.Pending, registry.Completed, false},
		{registry.Ingest, registry.ActLose, registry.Running, registry.Pending, true},
		{registry.Ingest, registry.ActLose, registry.Running, registry.Failed, true},
		{registry.Ingest, registry.ActRequeue, registry.Failed, registry.Pending, true},
		{registry.Ingest, registry.ActRequeue, registry.Cancelled, registry.Pending, true},
		{registry.Ingest, registry.ActRequeue, registry.Completed, registry.Pending, false},
		{registry.Ingest, registry.ActRequeue, registry.Deleted, registry.Pending, false},
		{registry.Ingest, registry.ActCancel, registry.Pending, registry.Cancelled, true},
		{registry.Ingest, registry.ActCancel, registry.Completed, registry.Cancelled, false},
		{registry.Batch, registry.ActCancel, registry.Pending, registry.Cancelled, false},
		{registry.Batch, registry.ActUpdateReport, registry.Failed, registry.Pending, true},
		{registry.Ingest, registry.ActUpdateReport, registry.Failed, registry.Pending, false},
		{registry.Batch, registry.ActUpdateReport, registry.Completed, registry.Pending, false},
	} {
		err := registry.CheckAct(registry.Position{Action: tt.action, Status: tt.from}, tt.act, tt.to)
		if (err == nil) != tt.ok {
			t.Errorf("%s of %s: (%s -> %s) gives %v, want allowed=%v", tt.act, tt.action, tt.from, tt.to, err, tt.ok)
		}
		var te *registry.TransitionError
		if err != nil && (!errors.As(err, &te) || te.From != tt.from || te.To != tt.to) {
			t.Errorf("%s: %+v", tt.act, te)
		}
	}
}

// TestCompletedIsTerminal: nothing leads away from what is done.
func TestCompletedIsTerminal(t *testing.T) {
	for _, tr := range registry.Transitions() {
		switch tr.From {
		case registry.Completed, registry.Deleted, registry.Aborted:
			t.Errorf("%s leads from %s to %s", tr.Act, tr.From, tr.To)
		case "", registry.Prepare, registry.Pending, registry.Running, registry.Failed, registry.Cancelled:
		}
	}
}

func TestAllowedActs(t *testing.T) {
	for _, tt := range []struct {
		action registry.Action
		from   registry.Status
		want   []registry.Act
	}{
		{registry.Ingest, registry.Pending, []registry.Act{registry.ActCancel}},
		{registry.Ingest, registry.Running, nil},
		{registry.Ingest, registry.Failed, []registry.Act{registry.ActRequeue}},
		{registry.Ingest, registry.Cancelled, []registry.Act{registry.ActRequeue}},
		{registry.Ingest, registry.Completed, nil},
		{registry.Batch, registry.Pending, nil},
		{registry.Batch, registry.Failed, []registry.Act{registry.ActRequeue, registry.ActUpdateReport}},
		{registry.Batch, registry.Completed, nil},
	} {
		if got := registry.AllowedActs(registry.Position{Action: tt.action, Status: tt.from}); !slices.Equal(got, tt.want) {
			t.Errorf("AllowedActs(%s, %s)=%v, want %v", tt.action, tt.from, got, tt.want)
		}
	}
}

func TestTransitionErrorText(t *testing.T) {
	for _, tt := range []struct {
		err  registry.TransitionError
		want string
	}{
		{
			registry.TransitionError{ItemID: "i", From: registry.Completed, To: registry.Pending},
			"item i: state change (completed -> pending) is not allowed; allowed here: nothing",
		},
		{
			registry.TransitionError{From: registry.Failed, To: registry.Cancelled, Allowed: []registry.Act{registry.ActRequeue, registry.ActUpdateReport}},
			"state change (failed -> cancelled) is not allowed; allowed here: requeue, update-report",
		},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestErrorsSayWhat(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&registry.NotClaimable{ItemID: "i", Reason: registry.ReasonHeld}, "item i cannot be claimed: held"},
		{&registry.LockedError{Key: "ark:x", ItemID: "i"}, "ark:x is locked by item i"},
		{
			&registry.IdentifierMismatch{LocalID: "l", Known: "a", Given: "b"},
			`local id "l" belongs to a, but the submission names b; correct one of the two`,
		},
		{
			&registry.NoSpaceError{Volume: "v", Need: 5, Used: 70, Total: 100, Reserved: 8, ThresholdFactor: 0.8},
			"needs 5 bytes; volume v is 70 % used (70 bytes of 100 bytes), 8 bytes reserved, and may be filled to 80 %",
		},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
