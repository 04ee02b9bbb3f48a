package api_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// TestBatch_Read reads a batch with the client, from its submission to its end.
func TestBatch_Read(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleViewer)
	ctx := t.Context()
	batchID, jobID := b.preserve(t, "ark:/99999/fk4one", map[string]string{"producer/a": "a"})

	progress, err := c.BatchProgress(ctx, batchID)
	must(t, err)
	if !progress.Settled || progress.Completed != 1 || progress.State != registry.StateCompleted {
		t.Errorf("progress=%+v, want one completed job", progress)
	}
	want := registry.JobResult{
		ItemID: jobID, Row: 1, Line: 1, Name: "payload", State: registry.StateCompleted, ARK: "ark:/99999/fk4one", ObjectID: "ark:/99999/fk4one",
		Version: 1, LocalIDs: []string{"local"},
	}
	jobs, err := c.BatchJobs(ctx, batchID, "", 0)
	must(t, err)
	if diff := cmp.Diff([]registry.JobResult{want}, jobs.Rows); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	report, err := c.ReportOf(ctx, batchID, 0)
	must(t, err)
	if report.Jobs != 1 || report.Completed != 1 || report.Closing != 1 {
		t.Errorf("report=%+v, want one completed job", report)
	}
	stored, err := c.ReportJobs(ctx, registry.ReportQuery{BatchID: batchID, Closing: report.Closing})
	must(t, err)
	if diff := cmp.Diff(jobs.Rows, stored); diff != "" {
		t.Errorf("a report's job differs from the job (-job +report):\n%s", diff)
	}
	_, err = c.ReportOf(ctx, batchID, 9)
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)

	it, err := c.Item(ctx, jobID)
	must(t, err)
	if it.ParentID != batchID || it.State != registry.StateCompleted {
		t.Errorf("item=%+v, want the completed job", it)
	}
	events, err := c.Events(ctx, jobID, 0, 500)
	must(t, err)
	some, err := c.Events(ctx, jobID, events[0].Seq, 1)
	must(t, err)
	if len(events) < 10 || len(some) != 1 || some[0].Seq != events[1].Seq {
		t.Errorf("events=%d, page=%+v, want the whole history and its second", len(events), some)
	}
	attempts, err := c.Attempts(ctx, jobID)
	must(t, err)
	if len(attempts) != 6 {
		t.Errorf("attempts=%d, want one a stage", len(attempts))
	}
	why, err := c.Why(ctx, jobID)
	must(t, err)
	if why.Reason != registry.ReasonSettled {
		t.Errorf("why=%+v, want settled", why)
	}
	_, err = c.Batch(ctx, jobID)
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
	_, err = c.Item(ctx, "none")
	if !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("error=%v, want ErrNotFound", err)
	}
}

func TestBatch_ListPagesAndHidesSecrets(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"one", "two", "three"} {
		b.batchOf(t, name)
	}
	c := b.as(t, registry.RoleViewer)
	var names []string
	q := registry.ItemQuery{Limit: 2}
	for {
		page, err := c.Batches(t.Context(), q)
		must(t, err)
		for _, it := range page.Rows {
			names = append(names, it.Name)
			if text := string(it.Spec); strings.Contains(text, "SECRET") || !strings.Contains(text, "h.test/"+it.Name) {
				t.Errorf("spec=%s, want the address without its secrets", text)
			}
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"three", "two", "one"}, names); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		q    registry.ItemQuery
		want int
	}{
		{registry.ItemQuery{Text: "thr"}, 1},
		{registry.ItemQuery{Status: registry.Failed}, 0},
		{registry.ItemQuery{Collection: "default"}, 3},
		{registry.ItemQuery{Collection: "none"}, 0},
	} {
		q, want := tt.q, tt.want
		if page, err := c.Batches(t.Context(), q); err != nil || len(page.Rows) != want || page.Rows == nil {
			t.Errorf("%+v: %d rows (%v), want %d", q, len(page.Rows), err, want)
		}
	}
	if page, err := c.Items(t.Context(), registry.ItemQuery{Action: registry.Ingest, Stage: registry.Estimate}); err != nil || len(page.Rows) != 3 {
		t.Errorf("jobs=%d (%v), want 3", len(page.Rows), err)
	}
}

func TestCommand(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	_, jobID := b.batchOf(t, "a")
	c := b.as(t, registry.RoleOperator)
	it, err := c.Command(ctx, registry.Command{ItemID: jobID, Act: registry.ActCancel, Reason: "a mistake"})
	must(t, err)
	if it.Status != registry.Cancelled {
		t.Errorf("status=%s, want cancelled", it.Status)
	}
	_, err = c.Command(ctx, registry.Command{ItemID: jobID, Act: registry.ActCancel})
	p := problemOf(t, err, http.StatusConflict, wire.CodeTransition)
	var refused *registry.TransitionError
	if !errors.As(err, &refused) || len(refused.Allowed) != 3 || p.AllowedActs[0] != registry.ActRequeue {
		t.Errorf("error=%v, want a TransitionError that allows requeue", err)
	}
	for _, bad := range []registry.Command{
		{ItemID: jobID, Act: "complete"},
		{ItemID: jobID, Act: registry.ActRequeue, From: registry.Notify},
		{ItemID: jobID, Act: registry.ActRequeue, From: "lunch"},
	} {
		_, err = c.Command(ctx, bad)
		problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeInvalid)
	}
	_, err = c.Command(ctx, registry.Command{ItemID: "none", Act: registry.ActCancel})
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
	it, err = c.Command(ctx, registry.Command{ItemID: jobID, Act: registry.ActRequeue, From: registry.Estimate})
	must(t, err)
	if it.Status != registry.Pending || it.RetryCount != 1 {
		t.Errorf("item=%+v, want it pending again", it)
	}
	events, err := b.store.Events(ctx, jobID, 0, 100)
	must(t, err)
	if text := string(events[1].Data); events[1].Actor != "the operator" || !strings.Contains(text, "a mistake") {
		t.Errorf("event=%+v, want actor and reason", events[1])
	}
}

func TestHolds(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	batchID, _ := b.batchOf(t, "a")
	c := b.as(t, registry.RoleOperator)
	for _, h := range []registry.Hold{
		{Scope: registry.HoldAll, Reason: "r"},
		{Scope: registry.HoldStage, Key: "download", Reason: "r"},
		{Scope: registry.HoldCollection, Key: "default", Reason: "r"},
		{Scope: registry.HoldBatch, Key: batchID, Reason: "r"},
	} {
		must(t, c.AddHold(ctx, h))
		all, err := c.Holds(ctx)
		must(t, err)
		if len(all) != 1 || all[0].Scope != h.Scope || all[0].Key != h.Key || all[0].Actor != "the operator" {
			t.Errorf("holds=%+v, want %+v", all, h)
		}
		must(t, c.RemoveHold(ctx, h.Scope, h.Key))
		if err := c.RemoveHold(ctx, h.Scope, h.Key); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("second release: %v, want ErrNotFound", err)
		}
	}
}

func TestCollections(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	c := b.as(t, registry.RoleAdmin)
	priority := 7
	profile := registry.Profile{Owner: "ark:/99999/o", Collections: []string{"ark:/99999/c"}, DigestAlgorithm: "sha256", NOIDTemplate: "fk4{.reeeek}", Minting: registry.MintEZID, Priority: &priority}
	must(t, c.PutCollection(ctx, registry.Collection{Mnemonic: "maps", Profile: profile}))
	got, err := c.Collection(ctx, "maps")
	must(t, err)
	profile.Name = "maps"
	if diff := cmp.Diff(profile, got.Profile); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
	all, err := c.Collections(ctx)
	must(t, err)
	if len(all) != 2 {
		t.Errorf("collections=%d, want 2", len(all))
	}
	workers, err := c.Workers(ctx)
	if err != nil || len(workers) != 0 {
		t.Errorf("workers=%v (%v), want none", workers, err)
	}
}

// TestReport_Download downloads a report in both formats. Invalid requests are refused before
// anything is sent.
func TestReport_Download(t *testing.T) {
	b := newBench(t)
	batchID, jobID := b.preserve(t, "ark:/99999/fk4one", map[string]string{"producer/a": "a"})
	path := "/api/v1/batches/" + batchID + "/report"

	answer, text := b.send(t, http.MethodGet, path+".csv", "")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	must(t, err)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/csv" || len(rows) != 2 || rows[1][2] != jobID || rows[1][5] != "ark:/99999/fk4one" ||
		answer.Header.Get("Content-Disposition") != "attachment; filename=report-"+batchID+"-1.csv" {
		t.Errorf("%d %v\n%s", answer.StatusCode, answer.Header, text)
	}
	_, text = b.send(t, http.MethodGet, path+".json?closing=1&list=completed", "")
	var got struct {
		registry.BatchReport
		Failed    []registry.JobResult `json:"failed_jobs"`
		Completed []registry.JobResult `json:"completed_jobs"`
	}
	must(t, json.Unmarshal([]byte(text), &got))
	if got.Failed != nil || len(got.Completed) != 1 || got.Completed[0].ItemID != jobID || got.BatchID != batchID || got.Jobs != 1 {
		t.Errorf("%+v\n%s", got, text)
	}
	_, text = b.send(t, http.MethodGet, path+"/jobs?list=failed", "")
	var page registry.Page[registry.JobResult]
	must(t, json.Unmarshal([]byte(text), &page))
	if page.Rows == nil || len(page.Rows) != 0 {
		t.Errorf("jobs that failed: %s", text)
	}
	for query, location := range map[string]string{
		".csv?closing=x": "query.closing", ".json?list=all": "query.list", ".csv?change=new,old": "query.change", ".json?limit=2": "query.limit",
		"/jobs?list=all": "query.list", "/jobs?change=old": "query.change",
	} {
		answer, text := b.send(t, http.MethodGet, path+query, "")
		if p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid); len(p.Faults) != 1 || p.Faults[0].Location != location {
			t.Errorf("%s: %+v, want one fault at %s", query, p.Faults, location)
		}
	}
	answer, text = b.send(t, http.MethodGet, path+".csv?closing=2", "")
	wantProblem(t, answer, text, http.StatusNotFound, wire.CodeNotFound)
}

// TestCancelBatch: a depositor cancels what it submitted itself, and nothing else.
func TestCancelBatch(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	mine, theirs := b.as(t, registry.RoleDepositor), b.as(t, registry.RoleOperator)
	submit := func(c *caller, name string) string {
		answer, err := c.Submit(ctx, wire.SubmitRequest{Collection: "default", URL: "http://h.test/" + name}, "")
		must(t, err)
		return answer.BatchID
	}
	own, other := submit(mine, "own"), submit(theirs, "other")
	_, err := mine.CancelBatch(ctx, other, "", "")
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
	if it, err := mine.Item(ctx, other); err != nil || it.Status != registry.Pending {
		t.Errorf("status=%s (%v), want pending", it.Status, err)
	}
	_, err = b.as(t, registry.RoleViewer).CancelBatch(ctx, own, "", "")
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
	it, err := mine.CancelBatch(ctx, own, "sent twice", "once")
	must(t, err)
	if it.Status != registry.Cancelled {
		t.Errorf("status=%s, want cancelled", it.Status)
	}
	if again, err := mine.CancelBatch(ctx, own, "sent twice", "once"); err != nil || again.Status != registry.Cancelled {
		t.Errorf("a repeat: status=%s (%v), want cancelled", again.Status, err)
	}
	_, err = mine.CancelBatch(ctx, own, "", "")
	problemOf(t, err, http.StatusConflict, wire.CodeTransition)
	if it, err := theirs.CancelBatch(ctx, other, "", ""); err != nil || it.Status != registry.Cancelled {
		t.Errorf("an operator: status=%s (%v), want cancelled", it.Status, err)
	}
	audit, err := b.store.Audit(ctx, registry.AuditQuery{Limit: 10})
	must(t, err)
	if !slices.ContainsFunc(audit.Rows, func(e registry.Event) bool {
		return e.Type == "cancel" && e.ItemID == own && e.Actor == "the depositor" && strings.Contains(string(e.Data), "sent twice")
	}) {
		t.Errorf("not audited: %+v", audit.Rows)
	}
}

// TestSubmit_Corrects: a depositor corrects what it submitted itself, once, when it has failed. It is
// told so before the payload is sent, in plain words.
func TestSubmit_Corrects(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	mine, theirs := b.as(t, registry.RoleDepositor), b.as(t, registry.RoleOperator)
	submit := func(c *caller, name, corrects string) (string, error) {
		r := wire.SubmitRequest{Collection: "default", URL: "http://h.test/" + name}
		if corrects != "" {
			r.Corrects = &registry.Corrects{BatchID: corrects}
		}
		answer, err := c.Submit(ctx, r, "key "+name)
		return answer.BatchID, err
	}
	// refused wants that a check before says the same as the submission.
	refused := func(c *caller, id string, status int, code wire.Code, words string) {
		t.Helper()
		_, err := submit(c, "never", id)
		check := c.CheckSubmission(ctx, wire.SubmitRequest{Collection: "default", Corrects: &registry.Corrects{BatchID: id}})
		for _, err := range []error{err, check} {
			p := problemOf(t, err, status, code)
			text := p.Error()
			for _, f := range p.Faults {
				text += " " + f.Location + ": " + f.Message
			}
			if !strings.Contains(text, words) {
				t.Errorf("%q, want %q", text, words)
			}
		}
	}
	own, err := submit(mine, "own", "")
	must(t, err)
	other, err := submit(theirs, "other", "")
	must(t, err)
	refused(mine, own, http.StatusUnprocessableEntity, wire.CodeInvalid, "body.corrects.batch_id: batch "+own+" is Pending, and more of it may fail")
	for _, id := range []string{own, other} {
		c, err := b.store.Claim(ctx, registry.ClaimRequest{RequestID: id, Stage: registry.Expand, Worker: "w", Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Minute})
		must(t, err)
		_, err = b.store.Settle(ctx, registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "404"})
		must(t, err)
	}
	refused(mine, other, http.StatusForbidden, wire.CodeForbidden, "submitted by another depositor")
	_, err = mine.PrepareGraph(ctx, wire.GraphRequest{Nodes: []wire.NodeRequest{{Key: "a", SubmitRequest: wire.SubmitRequest{URL: "http://h.test/a", Corrects: &registry.Corrects{BatchID: other}}}}}, "")
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
	refused(mine, "none", http.StatusNotFound, wire.CodeNotFound, "")
	first, err := submit(mine, "corrected", own)
	must(t, err)
	if again, err := submit(mine, "corrected", own); err != nil || again != first {
		t.Errorf("a repeat is %s (%v), want %s", again, err, first)
	}
	refused(mine, own, http.StatusConflict, wire.CodeConflict, "batch "+own+" was already submitted, corrected, as batch "+first)
	if _, err := submit(theirs, "operator", other); err != nil {
		t.Error(err)
	}
}

// TestSubmit_Folder: a folder that was packed is shown as one, whoever names the upload.
func TestSubmit_Folder(t *testing.T) {
	b := newBench(t)
	ctx, c := t.Context(), b.as(t, registry.RoleDepositor)
	u, err := c.SendUpload(ctx, oneRequest{Filename: "letters.tar", Body: strings.NewReader("a letter"), Size: -1})
	must(t, err)
	answer, err := c.Submit(ctx, wire.SubmitRequest{UploadID: u.ID, Type: "file", Folder: true}, "")
	must(t, err)
	if it, err := c.Item(ctx, answer.BatchID); err != nil || it.Name != "letters/" {
		t.Errorf("it is called %q (%v), want letters/", it.Name, err)
	}
}

// TestSubmit_DryRun checks the fields of a request before its payload is sent.
func TestSubmit_DryRun(t *testing.T) {
	b := newBench(t)
	ctx, c := t.Context(), b.as(t, registry.RoleDepositor)
	must(t, c.CheckSubmission(ctx, wire.SubmitRequest{Collection: "default", Title: "Plates"}))
	p := problemOf(t, c.CheckSubmission(ctx, wire.SubmitRequest{Collection: "default", ARK: "nonsense", LocalIDs: []string{""}, URL: "ftp://h.test/x"}), http.StatusUnprocessableEntity, wire.CodeInvalid)
	if len(p.Faults) != 3 {
		t.Errorf("faults=%v, want those of ark, local id and url", p.Faults)
	}
	problemOf(t, c.CheckSubmission(ctx, wire.SubmitRequest{Collection: "none"}), http.StatusNotFound, wire.CodeNotFound)
	must(t, b.as(t, registry.RoleAdmin).SetAccepting(ctx, registry.Accepting{Reason: "moving"}))
	problemOf(t, c.CheckSubmission(ctx, wire.SubmitRequest{Collection: "default"}), http.StatusServiceUnavailable, wire.CodeNotAccepting)
	if page, err := b.store.Items(ctx, registry.ItemQuery{}); err != nil || len(page.Rows) != 0 {
		t.Errorf("%d items (%v), want none", len(page.Rows), err)
	}
}
