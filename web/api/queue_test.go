package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/wire"
)

func TestQueueStatus(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	b.batchOf(t, "a")
	c := b.as(t, registry.RoleOperator)
	must(t, c.AddHold(ctx, registry.Hold{Scope: registry.HoldAll, Reason: "storage moves"}))
	got, err := b.as(t, registry.RoleViewer).QueueStatus(ctx)
	must(t, err)
	if got.Paused == nil || got.Paused.Actor != "the operator" || got.Paused.Reason != "storage moves" || got.Holds != 1 ||
		!got.Accepting.On || len(got.Stages) != len(registry.Stages()) {
		t.Errorf("queue=%+v, want it paused by the operator", got)
	}
	held := int64(0)
	for _, s := range got.Stages {
		held += s.Held
		if s.Ready != 0 {
			t.Errorf("stage %+v of a paused queue has items that are ready", s)
		}
	}
	if held == 0 {
		t.Error("nothing is held")
	}
}

// TestNotAccepting checks that uploads are refused before their bytes are read while submissions
// are not accepted.
func TestNotAccepting(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	before := b.upload(t, "before.txt", "before")
	operator, depositor := b.as(t, registry.RoleOperator), b.as(t, registry.RoleDepositor)
	first, err := depositor.Submit(ctx, wire.SubmitRequest{URL: "https://example.org/a", Type: "file"}, "key")
	must(t, err)
	must(t, operator.SetAccepting(ctx, registry.Accepting{Reason: "storage moves"}))
	staged := len(b.staged(t))

	refused := func(err error) {
		t.Helper()
		problemOf(t, err, http.StatusServiceUnavailable, wire.CodeNotAccepting)
		var closed *registry.NotAccepting
		if !errors.As(err, &closed) || closed.On || closed.Reason != "storage moves" || closed.Actor != "the operator" || closed.Since.IsZero() {
			t.Errorf("error=%#v, want a NotAccepting with reason and actor", err)
		}
	}
	body := strings.NewReader("later")
	_, err = depositor.SendUpload(ctx, oneRequest{Filename: "later.txt", Body: body, Size: body.Size()})
	refused(err)
	if body.Len() == 0 {
		t.Error("the bytes of a refused upload were sent")
	}
	_, err = depositor.Submit(ctx, wire.SubmitRequest{URL: "https://example.org/b", Type: "file"}, "")
	refused(err)
	_, err = depositor.Submit(ctx, wire.SubmitRequest{UploadID: before.ID, Type: "file"}, "")
	refused(err)
	if got := len(b.staged(t)); got != staged {
		t.Errorf("%d files are staged, want %d: the upload that was there stays, and no other comes", got, staged)
	}
	again, err := depositor.Submit(ctx, wire.SubmitRequest{URL: "https://example.org/a", Type: "file"}, "key")
	if err != nil || again.BatchID != first.BatchID {
		t.Errorf("repeat: %+v, %v; want batch %s", again, err, first.BatchID)
	}
	for _, path := range []string{"/api/v1/uploads?filename=x", "/api/v1/batches"} {
		answer, text := b.send(t, "POST", path, `{"url":"https://example.org/c","type":"file"}`)
		wantProblem(t, answer, text, http.StatusServiceUnavailable, wire.CodeNotAccepting)
		if got := answer.Header.Get("Retry-After"); got != "60" {
			t.Errorf("%s: Retry-After=%q, want 60", path, got)
		}
	}

	must(t, operator.SetAccepting(ctx, registry.Accepting{On: true, Reason: "moved"}))
	_, err = depositor.Submit(ctx, wire.SubmitRequest{UploadID: before.ID, Type: "file"}, "")
	must(t, err)
	got, err := depositor.Accepting(ctx)
	must(t, err)
	if !got.On || got.Reason != "moved" || got.Actor != "the operator" {
		t.Errorf("accepting=%+v", got)
	}
}

// withTape gives a bench a second storage.
func withTape(b *bench, o *api.Options) {
	o.Objects = append(o.Objects, ocfl.Named{Root: b.objects, Name: "tape"})
}

func TestPutCollection_Storages(t *testing.T) {
	b := newBench(t, withTape)
	for storages, want := range map[string]string{
		`["tape","storage"]`: "",
		`["storage","disk"]`: `unknown storage; use one of the existing ones (storage, tape)`,
		`["tape","tape"]`:    `storage \"tape\" is named twice`,
		`["staging"]`:        "the name is the staging volume's",
		`["Tape"]`:           "lower-case letters",
	} {
		answer, text := b.send(t, http.MethodPut, "/api/v1/collections/s",
			`{"owner":"ark:/99999/o","collections":["ark:/99999/c"],"storages":`+storages+`}`)
		if good := answer.StatusCode == http.StatusOK; good != (want == "") || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", storages, answer.StatusCode, text, want)
		}
	}
}

func TestHolds_OfVolumesAndWorkers(t *testing.T) {
	b := newBench(t, withTape)
	ctx := t.Context()
	must(t, b.as(t, registry.RoleAdmin).PutCollection(ctx, registry.Collection{Mnemonic: "maps", Profile: registry.Profile{
		Owner: "ark:/99999/o", Collections: []string{"ark:/99999/c"}, Storages: []string{"storage", "tape"}, ReleaseOneByOne: true,
	}}))
	maps, err := b.store.Collection(ctx, "maps")
	must(t, err)
	if len(maps.Profile.Storages) != 2 || !maps.Profile.ReleaseOneByOne {
		t.Errorf("profile=%+v", maps.Profile)
	}
	c := b.as(t, registry.RoleOperator)
	for _, h := range []registry.Hold{
		{Scope: registry.HoldVolume, Key: "tape", Reason: "r"},
		{Scope: registry.HoldVolume, Key: registry.DefaultStaging, Reason: "r"},
		{Scope: registry.HoldVolume, Key: registry.DefaultStorage, Reason: "r"},
		{Scope: registry.HoldWorker, Key: "some-host", Reason: "r"},
	} {
		must(t, c.AddHold(ctx, h))
		must(t, c.RemoveHold(ctx, h.Scope, h.Key))
	}
	err = c.AddHold(ctx, registry.Hold{Scope: registry.HoldVolume, Key: "tapes", Reason: "r"})
	p := problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
	if !strings.Contains(p.Detail, "staging, storage, tape") {
		t.Errorf("detail=%q, want the volumes there are", p.Detail)
	}
}

func TestLimits(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	admin := b.as(t, registry.RoleAdmin)
	must(t, admin.SetLimit(ctx, registry.Limit{Scope: registry.HoldStage, Key: "run:work", Most: 2}))
	must(t, admin.SetLimit(ctx, registry.Limit{Scope: registry.HoldCollection, Key: "default", Most: 9, Weight: 3}))
	problemOf(t, admin.SetLimit(ctx, registry.Limit{Scope: registry.HoldCollection, Key: "nobody", Most: 9}), http.StatusNotFound, wire.CodeNotFound)
	problemOf(t, admin.SetLimit(ctx, registry.Limit{Scope: registry.HoldStage, Key: "moon", Most: 9}), http.StatusUnprocessableEntity, wire.CodeInvalid)
	if err := admin.SetLimit(ctx, registry.Limit{Scope: registry.HoldStage, Key: "downlod", Most: 9}); err == nil || !strings.Contains(err.Error(), "did you mean download?") {
		t.Errorf("a misspelt stage: %v", err)
	}
	problemOf(t, b.as(t, registry.RoleOperator).SetLimit(ctx, registry.Limit{Scope: registry.HoldStage, Key: "run:work", Most: 9}), http.StatusForbidden, wire.CodeForbidden)
	all, err := b.as(t, registry.RoleViewer).Limits(ctx)
	must(t, err)
	if len(all) != 2 || all[0].Weight != 3 || all[1].Most != 2 || all[1].Actor != "the admin" {
		t.Errorf("limits %+v", all)
	}
	must(t, admin.RemoveLimit(ctx, registry.HoldStage, "run:work"))
	problemOf(t, admin.RemoveLimit(ctx, registry.HoldStage, "run:work"), http.StatusNotFound, wire.CodeNotFound)
}

// TestThroughput checks that staff read the throughput, and depositors do not.
func TestThroughput(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	must(t, b.store.NoteThroughput(ctx))
	got, err := b.as(t, registry.RoleViewer).Throughput(ctx, registry.ThroughputDay)
	must(t, err)
	if got.Step != 900 || len(got.Rows) != 1 || got.Rows[0].Waiting == nil || *got.Rows[0].Waiting != 0 {
		t.Errorf("throughput %+v", got)
	}
	_, err = b.as(t, registry.RoleViewer).Throughput(ctx, "year")
	problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeInvalid)
	_, err = b.as(t, registry.RoleDepositor).Throughput(ctx, registry.ThroughputHour)
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
}

// TestHoldings checks that staff read how full volumes are and what is checked, and depositors do not.
func TestHoldings(t *testing.T) {
	b := newBench(t)
	b.preserve(t, "ark:/99999/fk9", map[string]string{"producer/a": "text"})
	got, err := b.as(t, registry.RoleViewer).Holdings(t.Context())
	must(t, err)
	if got.Files == 0 || len(got.Checked) != 3 || got.Checked[0].Files != got.Files || len(got.Copies) != 1 || got.Copies[0].Versions != 1 {
		t.Errorf("holdings %+v", got)
	}
	if len(got.Volumes) != 2 || got.Volumes[0].Name != registry.DefaultStaging || got.Volumes[0].Total <= got.Volumes[0].Used {
		t.Errorf("volumes %+v", got.Volumes)
	}
	_, err = b.as(t, registry.RoleDepositor).Holdings(t.Context())
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
}
