package api_test

import (
	"net/http"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// failedJobs makes a batch whose n jobs failed, and returns them.
func failedJobs(t *testing.T, b *bench, n int) (batch string, jobs []string) {
	t.Helper()
	r, err := b.store.Submit(t.Context(), registry.Submission{Collection: "default", Spec: registry.Spec{URL: "http://h.test/x"}})
	must(t, err)
	c := b.claim(t, registry.Expand)
	rows := make([]registry.NewJob, n)
	for i := range rows {
		rows[i] = registry.NewJob{Line: int64(i + 1)}
	}
	_, err = b.store.AddJobs(t.Context(), c.Lease, rows)
	must(t, err)
	_, err = b.store.Settle(t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
	must(t, err)
	for range rows {
		b.settle(t, registry.Settlement{Lease: b.claim(t, registry.Estimate).Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "bad"})
	}
	page, err := b.store.Items(t.Context(), registry.ItemQuery{ParentID: r.BatchID})
	must(t, err)
	for _, it := range page.Rows {
		jobs = append(jobs, it.ID)
	}
	return r.BatchID, jobs
}

func TestCommand_Confirmation(t *testing.T) {
	b := newBench(t)
	batch, jobs := failedJobs(t, b, 1)
	c := b.as(t, registry.RoleOperator)
	_, err := c.Command(t.Context(), registry.Command{ItemID: jobs[0], Act: registry.ActDelete})
	p := problemOf(t, err, http.StatusConflict, wire.CodeConfirm)
	if len(p.Consequences) != 1 || p.Consequences[0] != "batch "+batch+" is not completed: its report will not list this job" {
		t.Errorf("consequences %q", p.Consequences)
	}
	it, err := c.Command(t.Context(), registry.Command{ItemID: jobs[0], Act: registry.ActDelete, Confirmed: true})
	must(t, err)
	if it.State != registry.StateDeleted {
		t.Errorf("%+v", it)
	}
}

// TestCommand_DryRun checks that a dry run answers as the act would, and changes nothing.
func TestCommand_DryRun(t *testing.T) {
	b := newBench(t)
	_, jobs := failedJobs(t, b, 1)
	c := b.as(t, registry.RoleOperator)
	it, err := c.Command(t.Context(), registry.Command{ItemID: jobs[0], Act: registry.ActRequeue, From: registry.Estimate, DryRun: true})
	must(t, err)
	if it.Status != registry.Pending || it.Stage != registry.Estimate {
		t.Errorf("answers %s at %s", it.Status, it.Stage)
	}
	_, err = c.Command(t.Context(), registry.Command{ItemID: jobs[0], Act: registry.ActDelete, DryRun: true})
	problemOf(t, err, http.StatusConflict, wire.CodeConfirm)
	_, err = c.Command(t.Context(), registry.Command{ItemID: jobs[0], Act: registry.ActCancel, DryRun: true})
	problemOf(t, err, http.StatusConflict, wire.CodeTransition)
	if it, err := b.store.Item(t.Context(), jobs[0]); err != nil || it.Status != registry.Failed {
		t.Errorf("a dry run left %s, %v", it.Status, err)
	}
}

func TestCommand_WrongValues(t *testing.T) {
	b := newBench(t)
	_, jobs := failedJobs(t, b, 1)
	for _, tt := range []struct{ body, location string }{
		{`{"act":"explode"}`, "body.act"},
		{`{"act":"claim"}`, "body.act"},
		{`{"act":"cancel","from":"estimate"}`, "body.from"},
		{`{"act":"requeue","from":"notify"}`, "body.from"},
		{`{"act":"priority"}`, "body.priority"},
		{`{"act":"requeue","priority":3}`, "body.priority"},
		{`{"act":"hold"}`, "body.reason"},
		{`{"act":"cancel","agrees_to":"ann"}`, "body.agrees_to"},
	} {
		answer, text := b.send(t, http.MethodPost, "/api/v1/items/"+jobs[0]+"/commands", tt.body)
		p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
		if len(p.Faults) == 0 || p.Faults[0].Location != tt.location {
			t.Errorf("%s: faults %+v, want %s", tt.body, p.Faults, tt.location)
		}
	}
}

// TestCommand_AbandonIsTheAdmins checks that neither two operators nor a bulk act can abandon an
// item.
func TestCommand_AbandonIsTheAdmins(t *testing.T) {
	b := newBench(t)
	_, jobs := failedJobs(t, b, 1)
	ask := registry.Command{ItemID: jobs[0], Act: registry.ActAbandon, Reason: "because", Confirmed: true}
	_, err := b.as(t, registry.RoleOperator).Command(t.Context(), ask)
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
	_, err = b.as(t, registry.RoleAdmin).Command(t.Context(), ask)
	problemOf(t, err, http.StatusConflict, wire.CodeTransition) // it has announced nothing
	_, err = b.as(t, registry.RoleAdmin).Bulk(t.Context(), wire.BulkRequest{Query: "state:failed", CommandRequest: wire.CommandRequest{Act: "abandon"}}, "")
	if p := problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeInvalid); len(p.Faults) != 1 || p.Faults[0].Location != "body.act" {
		t.Errorf("faults %+v", p.Faults)
	}
}

func TestBulk(t *testing.T) {
	b := newBench(t)
	failedJobs(t, b, 3)
	c := b.as(t, registry.RoleOperator)
	states, err := c.CountItems(t.Context(), registry.ItemQuery{Match: registry.Query{Terms: []registry.Term{{Field: "state", Value: "failed"}}}})
	must(t, err)
	if len(states) != 1 || states[registry.StateFailed] != 3 {
		t.Errorf("counts %v", states)
	}
	ask := wire.BulkRequest{Query: "state:failed", CommandRequest: wire.CommandRequest{Act: "requeue", Reason: "because"}}
	it, err := c.Bulk(t.Context(), ask, "k")
	must(t, err)
	again, err := c.Bulk(t.Context(), ask, "k")
	must(t, err)
	if it.Action != registry.Bulk || it.ID != again.ID || it.CreatedBy == "" || it.Name != "requeue state:failed" {
		t.Errorf("%+v, then %s", it, again.ID)
	}
	ask.Reason = "another"
	_, err = c.Bulk(t.Context(), ask, "k")
	problemOf(t, err, http.StatusConflict, wire.CodeIdempotency)

	_, err = b.as(t, registry.RoleDepositor).Bulk(t.Context(), ask, "")
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
	for _, tt := range []struct{ body, location string }{
		{`{"query":"","act":"requeue"}`, "body.query"},
		{`{"query":"nonsense:x","act":"requeue"}`, "body.query"},
		{`{"query":"state:failed","act":"explode"}`, "body.act"},
		{`{"query":"state:failed","act":"requeue","from":"nowhere"}`, "body.from"},
	} {
		answer, text := b.send(t, http.MethodPost, "/api/v1/bulk", tt.body)
		p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
		if len(p.Faults) == 0 || p.Faults[0].Location != tt.location {
			t.Errorf("%s: faults %+v, want %s", tt.body, p.Faults, tt.location)
		}
	}
}
