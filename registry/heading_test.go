package registry_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// TestHeading: a batch goes by the title that it was given, and what has none by its name.
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
