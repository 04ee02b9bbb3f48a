package api_test

import (
	"flag"
	"net/http"
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

// It is served as it is, to each who asks.
func TestSpecification_IsServed(t *testing.T) {
	b := newBench(t)
	want, err := api.Specification()
	must(t, err)
	for range 2 {
		answer, text := b.send(t, http.MethodGet, "/api/v1/openapi.json", "")
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/openapi+json" || text != string(want) {
			t.Errorf("status=%d type=%s, %d bytes, want 200 and %d bytes", answer.StatusCode, answer.Header.Get("Content-Type"), len(text), len(want))
		}
	}
}
