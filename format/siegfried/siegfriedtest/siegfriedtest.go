// Package siegfriedtest runs a real siegfried server, with PRONOM's signatures of 2025, for tests: as a child process on a
// free port of 127.0.0.1, which ends with the test.
package siegfriedtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Start starts a server and returns its address. Where it cannot be built the test is skipped, or fails when
// REQUIRE_SERVICES is 1, as in CI.
func Start(t testing.TB) (url string) {
	t.Helper()
	binary := build(t)
	var err error
	for range 5 {
		// The port is free now; should another process take it first, the next one is tried.
		if url, err = run(t, binary, freeAddress(t)); err == nil {
			return url
		}
	}
	t.Fatalf("start siegfried: %v", err)
	return ""
}

func run(t testing.TB, binary, address string) (string, error) {
	cmd := exec.Command(binary, "-serve", address)
	var log bytes.Buffer
	cmd.Stderr, cmd.Dir = &log, t.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+cmd.Dir)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // killed on purpose, or told by its log
	}()
	end := func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		<-exited
	}
	url := "http://" + address
	if err := await(url, exited); err != nil {
		end()
		return "", fmt.Errorf("%w: %s", err, log.String())
	}
	t.Cleanup(end)
	return url, nil
}

// await returns when the server answers.
func await(url string, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if answer, err := http.DefaultClient.Do(req); err == nil {
			http.DefaultClient.CloseIdleConnections()
			return answer.Body.Close()
		}
		select {
		case <-again.C:
		case <-exited:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return errors.New("it does not answer")
		}
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}

// build returns the server's binary.
func build(t testing.TB) string {
	t.Helper()
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	script := exec.Command(filepath.Join(filepath.Dir(strings.TrimSpace(string(mod))), "scripts", "testserver.sh"), "siegfried")
	var said bytes.Buffer
	script.Stderr = &said
	out, err := script.Output()
	if err != nil {
		if os.Getenv("REQUIRE_SERVICES") == "1" {
			t.Fatalf("siegfried is required: %v\n%s", err, said.String())
		}
		t.Skipf("siegfried cannot be built: %v\n%s", err, said.String())
	}
	return strings.TrimSpace(string(out))
}
