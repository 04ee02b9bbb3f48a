package api_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry/api"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

// The specification in docs is the one that the types give; go test -update writes it.
func TestSpecification_IsCheckedIn(t *testing.T) {
	got, err := api.Specification()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "docs", "openapi.json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/openapi.json is not up to date; go test ./registry/api -run Specification -update writes it:\n%s", diff)
	}
}
