package broker_test

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/queue/broker"
)

// nsqjsVersion is the independent client that the broker is tried with.
const nsqjsVersion = "0.13.0"

//go:embed testdata/nsqjs_client.js
var nsqjsClient string

// unavailable skips the test, or fails it where everything must be there.
func unavailable(t *testing.T, why string, err error) {
	t.Helper()
	if os.Getenv("REQUIRE_SERVICES") == "1" {
		t.Fatalf("%s: %v (and REQUIRE_SERVICES=1)", why, err)
	}
	t.Skipf("%s: %v", why, err)
}

// installNSQJS returns a folder whose node_modules has nsqjs. It is installed once per machine, and appears whole or
// not at all, so that several test runs may do it at a time.
func installNSQJS(ctx context.Context, t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "holdfast-test", "nsqjs-"+nsqjsVersion)
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "nsqjs", "package.json")); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatalf("make cache: %v", err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "nsqjs-*")
	if err != nil {
		t.Fatalf("make cache: %v", err)
	}
	defer os.RemoveAll(temp)
	install := exec.CommandContext(ctx, "npm", "install", "--prefix", temp, "--no-audit", "--no-fund", "--ignore-scripts",
		"nsqjs@"+nsqjsVersion)
	install.Dir = temp
	if out, err := install.CombinedOutput(); err != nil {
		t.Logf("npm: %s", out)
		unavailable(t, "npm cannot install nsqjs", err)
	}
	if err := os.Rename(temp, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // else another run was first
			t.Fatalf("keep nsqjs: %v", err)
		}
	}
	return dir
}

// The client of another project, in another language, works with the broker.
func TestNSQJS(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			unavailable(t, tool+" is not installed", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := installNSQJS(ctx, t)
	b := open(t, broker.Options{})
	web := serve(t, b)

	node := exec.CommandContext(ctx, "node", "-", b.Addr(), strings.TrimPrefix(web.URL, "http://"))
	node.Dir = t.TempDir()
	node.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
	node.Stdin = strings.NewReader(nsqjsClient)
	var stderr strings.Builder
	node.Stderr = &stderr
	stdout, err := node.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s\n%s", err, stdout, stderr.String())
	}

	// One line for each thing that it did.
	type step struct {
		Step     string   `json:"step"`
		Bodies   []string `json:"bodies,omitempty"`
		Attempts int      `json:"attempts,omitempty"`
		Error    string   `json:"error,omitempty"`
		Early    bool     `json:"early,omitempty"`
	}
	var got []step
	for lines := bufio.NewScanner(strings.NewReader(string(stdout))); lines.Scan(); {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("decode %q: %v", lines.Text(), err)
		}
		got = append(got, s)
	}
	want := []step{
		{Step: "publish and finish", Bodies: []string{"one"}, Attempts: 1},
		{Step: "many", Bodies: []string{"m1", "m2", "m3"}},
		{Step: "deferred", Bodies: []string{"later"}, Attempts: 1},
		{Step: "requeue", Bodies: []string{"again"}, Attempts: 3},
		{Step: "touch", Bodies: []string{"touched"}, Attempts: 1},
		{Step: "timeout", Bodies: []string{"slow"}, Attempts: 2},
		{Step: "finish too late", Error: "E_FIN_FAILED"},
		{Step: "bad topic", Error: "E_BAD_TOPIC"},
		{Step: "lookup", Bodies: []string{"found"}, Attempts: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s\n%s", diff, stderr.String())
	}
	for _, topic := range b.Stats().Topics {
		for _, ch := range topic.Channels {
			if left := ch.Depth + ch.InFlight + ch.Deferred; left > 0 {
				t.Errorf("%s: %d messages left", topic.Name, left)
			}
		}
	}
}
