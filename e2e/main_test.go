// Package e2e drives the built binary as depositors and operators do: real processes and real
// inputs. It imports no code of ours except the wire's words and test kits.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast/holdfast/internal/browsertest"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "holdfast-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, "holdfast")
	build := exec.CommandContext(context.Background(), "go", "build", "-ldflags", "-s -w", "-o", binary, "../cmd/holdfast")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build holdfast: %v\n%s", err, out)
		return 1
	}
	defer browsertest.Stop()
	return postgrestest.Main(m)
}
