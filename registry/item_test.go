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

// TestProfileDigests: a new collection gets the default algorithm, and keeps its own when a later
// profile names none. One that was saved without an algorithm means sha512 for ever.
func TestProfileDigests(t *testing.T) {
	old := registry.Collection{Mnemonic: "c", Version: 1}
	named := func(algorithm string) registry.Collection {
		return registry.Collection{Mnemonic: "c", Version: 1, Profile: registry.Profile{DigestAlgorithm: algorithm}}
	}
	for _, tt := range []struct {
		have    registry.Collection
		asked   string
		want    string
		version int
	}{
		{registry.Collection{}, "", "sha256", 1},
		{registry.Collection{}, "sha512", "sha512", 1},
		{old, "", "sha512", 1},
		{old, "sha512", "sha512", 1},
		{old, "sha256", "sha256", 2},
		{named("sha256"), "", "sha256", 1},
		{named("sha256"), "sha512", "sha512", 2},
		{named("sha512"), "", "sha512", 1},
	} {
		next, err := tt.have.Next(registry.Collection{Mnemonic: "c", Profile: registry.Profile{DigestAlgorithm: tt.asked}})
		if err != nil || next.Profile.Digests() != tt.want || next.Version != tt.version {
			t.Errorf("%q over %+v: %s, version %d, %v; want %s, version %d", tt.asked, tt.have, next.Profile.Digests(), next.Version, err, tt.want, tt.version)
		}
	}
}

func TestUploadURL(t *testing.T) {
	if got := registry.UploadURL("abc"); got != "upload:abc" {
		t.Errorf("URL %s", got)
	}
}

// TestHeading: batches and jobs are called by their titles, with the name below. What has no title of
// its own is called by its name.
func TestHeading(t *testing.T) {
	t.Parallel()
	titled := json.RawMessage(`{"title":"Glass plates"}`)
	for _, tt := range []struct {
		want, below string
		it          registry.WorkItem
	}{
		{"Glass plates", "plates.checkm", registry.WorkItem{ID: "i", Action: registry.Batch, Name: "plates.checkm", Spec: titled}},
		{"plates.checkm", "", registry.WorkItem{ID: "i", Action: registry.Batch, Name: "plates.checkm", Spec: json.RawMessage(`{}`)}},
		{"Glass plates", "plate-1.tif", registry.WorkItem{ID: "i", Action: registry.Ingest, Name: "plate-1.tif", Spec: titled}},
		{"plate-1.tif", "", registry.WorkItem{ID: "i", Action: registry.Ingest, Name: "plate-1.tif", Spec: json.RawMessage(`{"title":"Glass plates","title_shared":true}`)}},
		{"plate-1.tif", "", registry.WorkItem{ID: "i", Action: registry.Ingest, Name: "plate-1.tif", Spec: json.RawMessage(`{"title":"plate-1.tif"}`)}},
		{"harvest", "", registry.WorkItem{ID: "i", Action: registry.Task, Name: "harvest", Spec: titled}},
		{"i", "", registry.WorkItem{ID: "i", Action: registry.Batch}},
	} {
		if got, below := tt.it.Heading(), tt.it.NameBelow(); got != tt.want || below != tt.below {
			t.Errorf("%q over %q, want %q over %q", got, below, tt.want, tt.below)
		}
	}
}
