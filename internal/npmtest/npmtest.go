// Package npmtest runs JavaScript clients of other projects, so that programs that know only the
// specifications test our protocols. Folder gives their files.
package npmtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/proctest"
)

// Node returns a command that runs script with args in a folder of its own, with the npm package
// name at exactly that version. The package is installed once per machine. If node or npm is
// missing, the test is skipped, or fails if REQUIRE_SERVICES is 1.
func Node(ctx context.Context, t testing.TB, name, version, script string, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		proctest.Absent(t, "node", err)
	}
	node := exec.CommandContext(ctx, "node", append([]string{"-"}, args...)...)
	node.Dir = t.TempDir()
	node.Env = append(os.Environ(), "NODE_PATH="+strings.TrimSuffix(Folder(ctx, t, name, version), filepath.FromSlash(name)))
	node.Stdin = strings.NewReader(script)
	return node
}

// Folder returns the folder of the npm package name at exactly that version. The package is installed
// once per machine. If npm is missing, or the package cannot be had, the test is skipped, or fails if
// REQUIRE_SERVICES is 1. The folder appears in one step, so that several test runs may install
// concurrently.
func Folder(ctx context.Context, t testing.TB, name, version string) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		proctest.Absent(t, "npm", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	flat := strings.ReplaceAll(name, "/", "-") // @scope/name
	dir := filepath.Join(cache, "holdfast-test", flat+"-"+version)
	found := filepath.Join(dir, "node_modules", name)
	if _, err := os.Stat(filepath.Join(found, "package.json")); err == nil {
		return found
	}
	err = os.MkdirAll(filepath.Dir(dir), 0o755)
	temp, failed := os.MkdirTemp(filepath.Dir(dir), flat+"-*")
	if err := errors.Join(err, failed); err != nil {
		t.Fatalf("make cache: %v", err)
	}
	defer os.RemoveAll(temp)
	npm := exec.CommandContext(ctx, "npm", "install", "--prefix", temp, "--no-audit", "--no-fund", "--ignore-scripts", name+"@"+version)
	npm.Dir = temp
	if out, err := npm.CombinedOutput(); err != nil {
		t.Logf("npm: %s", out)
		proctest.Absent(t, "the npm package "+name, err)
	}
	if err := os.Rename(temp, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // otherwise another run was first
			t.Fatalf("keep %s: %v", name, err)
		}
	}
	return found
}
