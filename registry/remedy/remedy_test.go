package remedy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/remedy"
)

// TestFix: the producer must act exactly if the deposit is at fault, and there is advice whenever
// something must be done.
func TestFix(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		status       registry.Status
		class        registry.ErrorClass
		code, remedy string
		want         string
		requeue      bool
	}{
		{"completed", registry.Completed, "", "", "", "", false},
		{"running", registry.Running, "", "", "wait", "", false},
		{"a wrong digest", registry.Failed, registry.ContentFault, "digest-mismatch", "", "the producer compares the file with the original, corrects the file or its digest; if it is mended at its address, an admin requeues the item, for anything else the producer submits this deposit alone", true},
		{"a missing file", registry.Failed, registry.ContentFault, "http-404", "put it there", "the producer puts the file there, then an admin requeues the item; if the address is wrong, the producer corrects it, and submits this deposit alone", true},
		{"a bad payload", registry.Failed, registry.ContentFault, "E007", "", "the producer corrects the deposit; if it is mended at its address, an admin requeues the item, for anything else the producer submits this deposit alone", true},
		{"a bad container", registry.Failed, registry.ContentFault, "unpack-format", "", "the producer packs the container again; if it is mended at its address, an admin requeues the item, for anything else the producer submits this deposit alone", true},
		{"the system, unknown", registry.Failed, registry.SystemFault, "http-404", "", "an admin finds the cause and requeues the item", true},
		{"the system, known", registry.Failed, registry.SystemFault, "ezid-away", "see that EZID is up", "see that EZID is up, then requeue the item", true},
		{"a profile that it keeps", registry.Failed, registry.SystemFault, registry.CodeUnfitProfile, "", "an admin corrects the profile of the collection, then the producer submits this deposit alone", false},
		{"a batch", registry.Failed, registry.JobsFault, "jobs", "", "requeue the failed jobs, then ask the batch for an updated report", false},
		{"cancelled", registry.Cancelled, "", "", "see that EZID is up", "nothing, or an admin requeues it", true},
		{"deleted", registry.Deleted, "", "", "", "nothing, or the producer submits it again", false},
		{"aborted", registry.Aborted, "", "", "", "nothing, or the producer submits it again", false},
	} {
		it := registry.WorkItem{Action: registry.Ingest, Stage: registry.Download, Status: tt.status, Attempt: 1, ErrorClass: tt.class, Spec: fetchedSpec}
		fix := remedy.Of(it, tt.code, tt.remedy)
		got := fix.Text
		if fix.Requeue != tt.requeue {
			t.Errorf("%s: a requeue is a part of %q: %v", tt.name, got, fix.Requeue)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if content := tt.class == registry.ContentFault; content != strings.HasPrefix(got, "the producer ") {
			t.Errorf("%s: %q tells the wrong one to act", tt.name, got)
		}
	}
	for _, tt := range []struct {
		action  registry.Action
		status  registry.Status
		class   registry.ErrorClass
		want    string
		requeue bool
	}{
		{registry.Task, registry.Failed, registry.SystemFault, "an admin finds the cause and requeues the item", true},
		{registry.Task, registry.Failed, registry.ContentFault, "correct what its arguments name, then requeue the task; if the arguments are wrong, submit another one", true},
		{registry.Task, registry.Cancelled, "", "nothing, or an admin requeues it", true},
		{registry.Task, registry.Aborted, "", "nothing, or submit the task again", false},
		{registry.Task, registry.Running, "", "", false},
		{registry.StepProcess, registry.Failed, registry.SystemFault, "repair or retry its process, if that is in error still", false},
		{registry.StepProcess, registry.Failed, registry.ContentFault, "repair or retry its process, if that is in error still", false},
		{registry.StepProcess, registry.Cancelled, "", "repair or retry its process, if that is in error still", false},
		{registry.StepProcess, registry.Completed, "", "", false},
	} {
		it := registry.WorkItem{Action: tt.action, Stage: registry.Run.Of("work"), Status: tt.status, Attempt: 1, ErrorClass: tt.class}
		if got := remedy.Of(it, "", ""); got.Text != tt.want || got.Requeue != tt.requeue {
			t.Errorf("%s, %s: %+v, want %q", tt.action, tt.status, got, tt.want)
		}
	}
	row := registry.WorkItem{Action: registry.Ingest, Status: registry.Failed, ErrorClass: registry.ContentFault}
	if got, want := remedy.Of(row, "digest", ""), (remedy.Fix{Remedy: registry.Remedy{Advice: registry.AdviceRow}, Text: "the producer corrects the row and submits it alone, in a new batch"}); got != want {
		t.Errorf("a refused row: %+v, want %+v", got, want)
	}
}

// The specs of a container at an address, of one that was uploaded, and of an uploaded manifest of
// files at addresses.
var (
	fetchedSpec  = json.RawMessage(`{"type":"container","url":"https://h.test/a.zip"}`)
	uploadedSpec = json.RawMessage(`{"type":"container","url":"upload:u1"}`)
	listSpec     = json.RawMessage(`{"type":"object-manifest","url":"upload:u1"}`)
)

// TestFix_Requeue: a requeue is advised exactly if the item then reads data that may have changed.
// Uploads never change, and staged files must be fetched again.
func TestFix_Requeue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		action  registry.Action
		stage   registry.Stage
		spec    json.RawMessage
		code    string
		requeue bool
		from    registry.Stage
	}{
		{"an uploaded container", registry.Ingest, registry.Process, uploadedSpec, "unpack-format", false, ""},
		{"an uploaded file of another digest", registry.Ingest, registry.Download, uploadedSpec, "digest-mismatch", false, ""},
		{"a container at an address", registry.Ingest, registry.Process, fetchedSpec, "unpack-format", true, registry.Download},
		{"a file at an address", registry.Ingest, registry.Download, fetchedSpec, "digest-mismatch", true, ""},
		{"a file of an uploaded manifest", registry.Ingest, registry.Download, listSpec, "size-mismatch", true, ""},
		{"a file that is not there", registry.Ingest, registry.Download, listSpec, "http-404", true, ""},
		{"an ARK of another object", registry.Ingest, registry.Process, fetchedSpec, "identifier-mismatch", false, ""},
		{"an ARK that a storage cannot keep", registry.Ingest, registry.Process, fetchedSpec, "name-taken", false, ""},
		{"an update of nothing", registry.Ingest, registry.Process, fetchedSpec, "no-object", false, ""},
		{"an uploaded manifest of a batch", registry.Batch, registry.Expand, listSpec, "manifest", false, ""},
		{"a manifest of a batch at an address", registry.Batch, registry.Expand, fetchedSpec, "manifest", true, ""},
	} {
		it := registry.WorkItem{Action: tt.action, Stage: tt.stage, Status: registry.Failed, Attempt: 1, ErrorClass: registry.ContentFault, Spec: tt.spec}
		fix := remedy.Of(it, tt.code, "")
		if fix.Requeue != tt.requeue || fix.From != tt.from {
			t.Errorf("%s: requeue %v from %q, want %v from %q", tt.name, fix.Requeue, fix.From, tt.requeue, tt.from)
		}
		if told := strings.Contains(fix.Text, "requeue"); told != fix.Requeue || !strings.Contains(fix.Text, string(tt.from)) {
			t.Errorf("%s: %q", tt.name, fix.Text)
		}
	}
}
