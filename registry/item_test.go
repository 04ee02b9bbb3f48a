package registry_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

func TestJobType(t *testing.T) {
	want := map[registry.PayloadType]registry.PayloadType{
		registry.BatchManifest:   registry.ObjectManifest,
		registry.ContainerBatch:  registry.ContainerType,
		registry.SingleFileBatch: registry.FileType,
	}
	for _, p := range registry.PayloadTypes() {
		job, ok := p.JobType()
		if job != want[p] || ok != (want[p] != "") {
			t.Errorf("JobType of %s is %q, %v", p, job, ok)
		}
	}
	if len(registry.PayloadTypes()) != 8 || registry.PayloadTypes()[0] != registry.AutoType {
		t.Errorf("types %v", registry.PayloadTypes())
	}
	if _, ok := registry.PayloadType("nonsense").JobType(); ok {
		t.Error("an unknown type is a batch manifest")
	}
}

func TestProfileDigests(t *testing.T) {
	if got := (registry.Profile{}).Digests(); got != "sha512" {
		t.Errorf("default is %s", got)
	}
	if got := (registry.Profile{DigestAlgorithm: "sha256"}).Digests(); got != "sha256" {
		t.Errorf("set is %s", got)
	}
}

func TestUploadURL(t *testing.T) {
	if got := registry.UploadURL("abc"); got != "upload:abc" {
		t.Errorf("URL %s", got)
	}
}

// TestHeading: a batch is called by its title, and an item without one by its name.
func TestHeading(t *testing.T) {
	t.Parallel()
	titled := json.RawMessage(`{"title":"Glass plates"}`)
	for _, tt := range []struct {
		want string
		it   registry.WorkItem
	}{
		{"Glass plates", registry.WorkItem{ID: "i", Action: registry.Batch, Name: "plates.checkm", Spec: titled}},
		{"plates.checkm", registry.WorkItem{ID: "i", Action: registry.Batch, Name: "plates.checkm", Spec: json.RawMessage(`{}`)}},
		{"plate-1.tif", registry.WorkItem{ID: "i", Action: registry.Ingest, Name: "plate-1.tif", Spec: titled}},
		{"i", registry.WorkItem{ID: "i", Action: registry.Batch}},
	} {
		if got := tt.it.Heading(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
