package api_test

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/npmtest"
	"github.com/holdfast/holdfast/registry"
)

// tusjsVersion is the independent client that uploads are tried with.
const tusjsVersion = "4.3.1"

//go:embed testdata/tusjs_client.js
var tusjsClient string

// TestTus_JS sends a file with tus-js-client, interrupts it and resumes.
func TestTus_JS(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := newBench(t)
	const size = 5<<20 + 77
	node := npmtest.Node(ctx, t, "tus-js-client", tusjsVersion, tusjsClient, b.server.URL+"/api/v1/uploads", tokenText(registry.RoleDepositor), "5242957")
	var stderr strings.Builder
	node.Stderr = &stderr
	stdout, err := node.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s\n%s\n%s", err, stdout, stderr.String(), b.log)
	}
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(i*31 + i>>8)
	}
	steps := []string{"whole", "aborted and resumed", "resumed after the end", "with its beginning", "length later", "without PATCH", "terminated"}
	for lines := bufio.NewScanner(strings.NewReader(string(stdout))); lines.Scan(); {
		var did struct {
			Step string `json:"step"`
			URL  string `json:"url"`
			Same *bool  `json:"same"`
			Kept *bool  `json:"kept"`
		}
		must(t, json.Unmarshal(lines.Bytes(), &did))
		if len(steps) == 0 || did.Step != steps[0] {
			t.Fatalf("did %q, want %v", did.Step, steps)
		}
		steps = steps[1:]
		at, err := url.Parse(did.URL)
		must(t, err)
		if did.Step == "terminated" {
			if answer, _ := b.send(t, http.MethodHead, at.Path, "", tusHeader()...); answer.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %d, want 404", did.Step, answer.StatusCode)
			}
			continue
		}
		b.wantStored(t, at.Path, string(want))
		if did.Same != nil && (!*did.Same || !*did.Kept) {
			t.Errorf("%s: it began anew", did.Step)
		}
	}
	if len(steps) > 0 {
		t.Errorf("not done: %v\n%s", steps, stderr.String())
	}
	if left := b.scratch(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
