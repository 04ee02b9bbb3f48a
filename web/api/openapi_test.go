package api_test

import (
	"net/http"
	"testing"

	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/web/api"
)

//go:generate go test . -run ^TestGenerated -update

// TestGeneratedSpecification checks that docs/openapi.json is generated from the present types.
func TestGeneratedSpecification(t *testing.T) {
	text, err := api.Specification()
	must(t, err)
	generatedtest.File(t, "docs/openapi.json", string(text))
}

// TestSpecification_IsServed checks that everybody gets the specification.
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
