package registry_test

import (
	"errors"
	"slices"
	"strings"
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
		{registry.Ingest, registry.ActCancel, registry.Running, registry.Cancelled, true},
		{registry.Ingest, registry.ActCancel, registry.Completed, registry.Cancelled, false},
		{registry.Tidy, registry.ActCancel, registry.Pending, registry.Cancelled, false},
		{registry.Ingest, registry.ActAbort, registry.Failed, registry.Aborted, true},
		{registry.Ingest, registry.ActAbort, registry.Deleted, registry.Aborted, false},
		{registry.Ingest, registry.ActDelete, registry.Running, registry.Deleted, false},
		{registry.Ingest, registry.ActDelete, registry.Pending, registry.Deleted, false},
		{registry.Ingest, registry.ActDelete, registry.Completed, registry.Deleted, false},
		{registry.Ingest, registry.ActPurge, registry.Completed, "", false},
		{registry.Batch, registry.ActPurge, registry.Completed, "", true},
		{registry.Batch, registry.ActPurge, registry.Failed, "", false},
		{registry.Ingest, registry.ActUpdateReport, registry.Failed, registry.Pending, false},
		{registry.Batch, registry.ActUpdateReport, registry.Completed, registry.Pending, false},
	} {
		route, _ := registry.RouteOf(tt.action)
		err := registry.CheckAct(registry.Position{Action: tt.action, Stage: route.First(), Status: tt.from, Attempt: 1}, tt.act, tt.to)
		if (err == nil) != tt.ok {
			t.Errorf("%s of %s: (%s -> %s) gives %v, want allowed=%v", tt.act, tt.action, tt.from, tt.to, err, tt.ok)
		}
		var te *registry.TransitionError
		if err != nil && (!errors.As(err, &te) || te.Act != tt.act) {
			t.Errorf("%s: %+v", tt.act, te)
		}
	}
}

// TestCheckAct_limits: transitions that are restricted to a stage, a hold or open requirements.
func TestCheckAct_limits(t *testing.T) {
	for _, tt := range []struct {
		p   registry.Position
		act registry.Act
		to  registry.Status
		ok  bool
	}{
		{registry.Position{Action: registry.Ingest, Status: registry.Pending, Held: true}, registry.ActDelete, registry.Deleted, true},
		{registry.Position{Action: registry.Ingest, Status: registry.Pending}, registry.ActUnhold, registry.Pending, false},
		{registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Failed, Attempt: 1}, registry.ActUpdateReport, registry.Pending, true},
		{registry.Position{Action: registry.Batch, Stage: registry.Expand, Status: registry.Failed, Attempt: 1}, registry.ActUpdateReport, registry.Pending, false},
		{registry.Position{Action: registry.Batch, Stage: registry.Expand, Status: registry.Running}, registry.ActCancel, registry.Cancelled, true},
		{registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Pending, Open: 1}, registry.ActCancel, registry.Pending, true},
		{registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Pending, Open: 1}, registry.ActCancel, registry.Cancelled, false},
		{registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Pending}, registry.ActCancel, registry.Pending, false},
		{registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Running}, registry.ActCancel, registry.Cancelled, false},
		{registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Running}, registry.ActAbort, registry.Aborted, true},
	} {
		if err := registry.CheckAct(tt.p, tt.act, tt.to); (err == nil) != tt.ok {
			t.Errorf("%s of %+v to %s: %v, want allowed=%v", tt.act, tt.p, tt.to, err, tt.ok)
		}
	}
}

// TestDoneIsTerminal: no transition leads from a final status back to work.
func TestDoneIsTerminal(t *testing.T) {
	for _, tr := range registry.Transitions() {
		switch tr.From {
		case registry.Completed, registry.Deleted, registry.Aborted:
			if tr.To != "" && tr.To != registry.Deleted {
				t.Errorf("%s leads from %s to %s", tr.Act, tr.From, tr.To)
			}
		case "", registry.Prepare, registry.Pending, registry.Running, registry.Failed, registry.Cancelled:
		}
	}
}

func TestAllowedActs(t *testing.T) {
	requeue, cancel, abort, remove, purge := registry.ActRequeue, registry.ActCancel, registry.ActAbort, registry.ActDelete, registry.ActPurge
	priority, hold, unhold, update := registry.ActPriority, registry.ActHold, registry.ActUnhold, registry.ActUpdateReport
	for _, tt := range []struct {
		p    registry.Position
		want []registry.Act
	}{
		{registry.Position{Action: registry.Ingest, Status: registry.Prepare}, []registry.Act{cancel, abort, remove, priority, hold}},
		{registry.Position{Action: registry.Ingest, Status: registry.Pending}, []registry.Act{cancel, abort, priority, hold}},
		{registry.Position{Action: registry.Ingest, Status: registry.Pending, Held: true, OwnHold: true}, []registry.Act{cancel, abort, remove, priority, hold, unhold}},
		{registry.Position{Action: registry.Ingest, Status: registry.Pending, Held: true}, []registry.Act{cancel, abort, remove, priority, hold}},
		{registry.Position{Action: registry.Ingest, Status: registry.Failed, Attempt: 1, Commitment: registry.Announced}, []registry.Act{requeue, priority, hold, registry.ActAbandon}},
		{registry.Position{Action: registry.Ingest, Status: registry.Failed, Attempt: 1, Commitment: registry.Preserved}, []registry.Act{requeue, remove, priority, hold}},
		{
			registry.Position{Action: registry.Ingest, Stage: registry.Notify, Status: registry.Failed, Attempt: 1, Commitment: registry.Preserved, Notifies: true},
			[]registry.Act{requeue, remove, priority, hold, registry.ActGiveUp},
		},
		{registry.Position{Action: registry.Ingest, Status: registry.Running, Commitment: registry.Preserved}, []registry.Act{priority, hold}},
		{registry.Position{Action: registry.Batch, Status: registry.Deleted, JobsLeft: true}, nil},
		{registry.Position{Action: registry.Batch, Status: registry.Cancelled, Unsealed: true}, []registry.Act{abort, remove}},
		{registry.Position{Action: registry.Ingest, Status: registry.Running}, []registry.Act{cancel, abort, priority, hold}},
		{registry.Position{Action: registry.Ingest, Status: registry.Failed, Attempt: 1}, []registry.Act{requeue, abort, remove, priority, hold}},
		{registry.Position{Action: registry.Ingest, Status: registry.Failed}, []registry.Act{abort, remove, priority, hold}}, // a refused row
		{registry.Position{Action: registry.Ingest, Status: registry.Cancelled}, []registry.Act{requeue, abort, remove}},
		{registry.Position{Action: registry.Ingest, Status: registry.Aborted}, []registry.Act{remove}},
		{registry.Position{Action: registry.Ingest, Status: registry.Completed}, nil},
		{registry.Position{Action: registry.Ingest, Status: registry.Deleted}, nil},
		{registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Pending}, []registry.Act{abort, priority, hold}},
		{registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Failed, Attempt: 1}, []registry.Act{requeue, abort, update, remove, priority, hold}},
		{registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Failed, Attempt: 1, JobsFailed: true}, []registry.Act{abort, update, remove, priority, hold}},
		{registry.Position{Action: registry.Batch, Stage: registry.Expand, Status: registry.Failed, Attempt: 1}, []registry.Act{requeue, abort, remove, priority, hold}},
		{registry.Position{Action: registry.Batch, Status: registry.Completed}, []registry.Act{purge}},
		{registry.Position{Action: registry.Tidy, Status: registry.Failed, Attempt: 1}, []registry.Act{requeue, priority, hold}},
	} {
		if tt.p.Stage == "" {
			route, _ := registry.RouteOf(tt.p.Action)
			tt.p.Stage = route.First()
		}
		if got := registry.AllowedActs(tt.p); !slices.Equal(got, tt.want) {
			t.Errorf("AllowedActs(%+v)=%v, want %v", tt.p, got, tt.want)
		}
	}
}

func TestTransitionErrorText(t *testing.T) {
	for _, tt := range []struct {
		p    registry.Position
		act  registry.Act
		to   registry.Status
		want string
	}{
		{
			registry.Position{Action: registry.Ingest, Stage: registry.Notify, Status: registry.Completed, Attempt: 6},
			registry.ActRequeue, registry.Pending,
			"it is Completed and cannot be requeued; no act is possible any more; state change (Completed -> Pending) is not allowed; allowed here: nothing",
		},
		{
			registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Failed, Attempt: 2},
			registry.ActCancel, registry.Cancelled,
			"it is not running; delete it instead; state change (Failed -> Cancelled) is not allowed; allowed here: requeue, abort, update-report, delete, priority, hold",
		},
		{
			registry.Position{Action: registry.Ingest, Stage: registry.Download, Status: registry.Running, Attempt: 3},
			registry.ActDelete, registry.Deleted,
			"cancel it first, then delete it; state change (Downloading -> Deleted) is not allowed; allowed here: cancel, abort, priority, hold",
		},
		{
			registry.Position{Action: registry.Ingest, Stage: registry.Download, Status: registry.Completed, Attempt: 3},
			registry.ActClaim, registry.Running,
			"state change (Completed -> Downloading) is not allowed; allowed here: nothing",
		},
		{
			registry.Position{Action: registry.Batch, Stage: registry.Expand, Status: registry.Failed, Attempt: 1},
			registry.ActUpdateReport, registry.Pending,
			"it is Failed and cannot be reported again; state change (Failed -> UpdateReporting) is not allowed; allowed here: requeue, abort, delete, priority, hold",
		},
		{
			registry.Position{Action: registry.Ingest, Stage: registry.Notify, Status: registry.Completed, Attempt: 6},
			registry.ActPurge, "",
			"it is Completed and cannot be cleaned up; no act is possible any more; state change (Completed -> gone) is not allowed; allowed here: nothing",
		},
	} {
		if got := registry.CheckAct(tt.p, tt.act, tt.to).Error(); got != tt.want {
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

// TestWhyNot_NamesNoItem checks that the advice for a batch whose jobs failed is whole although no batch is named.
func TestWhyNot_NamesNoItem(t *testing.T) {
	why := registry.WhyNot(registry.Position{Action: registry.Batch, Stage: registry.Report, Status: registry.Failed, Attempt: 1, Closing: 1, JobsFailed: true}, registry.ActRequeue)
	if !strings.Contains(why, "'batch:ID state:failed'") || !strings.Contains(why, "update-report ID`") {
		t.Errorf("the advice is %q", why)
	}
}
