package api_test

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// tusjsVersion is the independent client that uploads are tried with.
const tusjsVersion = "4.3.1"

//go:embed testdata/tusjs_client.js
var tusjsClient string

// unavailable skips the test, or fails it where everything must be there.
func unavailable(t *testing.T, why string, err error) {
	t.Helper()
	if os.Getenv("REQUIRE_SERVICES") == "1" {
		t.Fatalf("%s: %v (and REQUIRE_SERVICES=1)", why, err)
	}
	t.Skipf("%s: %v", why, err)
}

// installTUSJS returns a folder whose node_modules has tus-js-client. It is installed once per machine, and appears whole or
// not at all, so that several test runs may do it at a time.
func installTUSJS(ctx context.Context, t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "holdfast-test", "tus-js-client-"+tusjsVersion)
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "tus-js-client", "package.json")); err == nil {
		return dir
	}
	must(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	temp, err := os.MkdirTemp(filepath.Dir(dir), "tus-js-client-*")
	must(t, err)
	defer os.RemoveAll(temp)
	install := exec.CommandContext(ctx, "npm", "install", "--prefix", temp, "--no-audit", "--no-fund", "--ignore-scripts",
		"tus-js-client@"+tusjsVersion)
	install.Dir = temp
	if out, err := install.CombinedOutput(); err != nil {
		t.Logf("npm: %s", out)
		unavailable(t, "npm cannot install tus-js-client", err)
	}
	if err := os.Rename(temp, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // else another run was first
			t.Fatalf("keep tus-js-client: %v", err)
		}
	}
	return dir
}

// The client of the project that wrote the protocol sends, is stopped, and goes on.
func TestTus_JS(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			unavailable(t, tool+" is not installed", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := installTUSJS(ctx, t)
	b := newBench(t)
	const size = 5<<20 + 77
	node := exec.CommandContext(ctx, "node", "-", b.server.URL+"/api/v1/uploads", secret(registry.RoleDepositor), "5242957")
	node.Dir = t.TempDir()
	node.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
	node.Stdin = strings.NewReader(tusjsClient)
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
