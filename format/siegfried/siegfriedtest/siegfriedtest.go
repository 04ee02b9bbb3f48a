// Package siegfriedtest runs a real siegfried server, with PRONOM's signatures of 2025, for tests:
// as a child process on a free port of 127.0.0.1, which ends with the test.
package siegfriedtest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/holdfast/holdfast/internal/proctest"
)

// Start starts a server and returns its address. If it cannot be built, the test is skipped, or
// fails if REQUIRE_SERVICES is 1, as in CI.
func Start(t testing.TB) (url string) {
	t.Helper()
	binary := proctest.Built(t, "siegfried")
	err := proctest.OnFreePort(t, func(address string) error {
		url = "http://" + address
		return run(t, binary, address)
	})
	if err != nil {
		t.Fatalf("start siegfried: %v", err)
	}
	return url
}

func run(t testing.TB, binary, address string) error {
	cmd := exec.Command(binary, "-serve", address)
	var log bytes.Buffer
	cmd.Stderr, cmd.Dir = &log, t.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+cmd.Dir)
	s, err := proctest.Start(cmd, func(ctx context.Context) bool { return answers(ctx, "http://"+address) })
	if err != nil {
		return fmt.Errorf("%w: %s", err, log.String())
	}
	t.Cleanup(func() { s.End(os.Kill) })
	return nil
}

func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	http.DefaultClient.CloseIdleConnections()
	return answer.Body.Close() == nil
}
