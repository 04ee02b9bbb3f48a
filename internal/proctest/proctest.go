// Package proctest runs servers as child processes of a test. A server answers when Start returns,
// and has ended when End returns.
package proctest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startTimeout is how long a server may take to start; the slowest, clamd, needs a few seconds on a
// busy machine.
const startTimeout = 60 * time.Second

// Server is a running child process.
type Server struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

// Start starts cmd and returns when answers, which it calls repeatedly, returns true. If the server
// ends first, or does not answer within a minute, Start returns an error and leaves no process. The
// server's own log has the cause.
func Start(cmd *exec.Cmd, answers func(ctx context.Context) bool) (*Server, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Server{cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(s.exited)
		_ = cmd.Wait() // killed on purpose, or its log has the cause
	}()
	if err := s.await(answers); err != nil {
		s.End(os.Kill)
		return nil, err
	}
	return s, nil
}

func (s *Server) await(answers func(ctx context.Context) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if answers(ctx) {
			return nil
		}
		select {
		case <-again.C:
		case <-s.exited:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return errors.New("it does not answer")
		}
	}
}

// Process returns the process, for signals.
func (s *Server) Process() *os.Process { return s.cmd.Process }

// End ends the server by a signal and waits for its end. It does nothing if the server has ended.
func (s *Server) End(signal os.Signal) {
	_ = s.cmd.Process.Signal(signal) // it may have ended
	<-s.exited
}

// OnFreePort calls start with a free address of 127.0.0.1. If start fails, it retries with another
// address, up to five times: another process may have taken the first one. It returns the last
// error.
func OnFreePort(t testing.TB, start func(address string) error) error {
	t.Helper()
	var err error
	for range 5 {
		if err = start(freeAddress(t)); err == nil {
			return nil
		}
	}
	return err
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

// Absent skips the test because something is missing, or fails it if REQUIRE_SERVICES is 1, as in
// CI.
func Absent(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv("REQUIRE_SERVICES") == "1" {
		t.Fatalf("%s is required: %v", what, err)
	}
	t.Skipf("%s is absent: %v", what, err)
}

// Built returns the binary of a server that is a module below tools; the first use on a machine
// builds it. If that fails, it calls Absent.
func Built(t testing.TB, name string) string {
	t.Helper()
	binary, err := build(t, name)
	if err != nil {
		Absent(t, name, err)
	}
	return binary
}

// BuiltIfPossible is like Built, but skips the test even in CI if the binary cannot be built: not
// every module proxy has the server.
func BuiltIfPossible(t testing.TB, name string) string {
	t.Helper()
	binary, err := build(t, name)
	if err != nil {
		t.Skipf("%s cannot be built here: %v", name, err)
	}
	return binary
}

// Module returns the folder with the sources of a module, read-only, in the version that the program name
// below tools has. The first use on a machine fetches it. If that fails, it calls Absent.
func Module(t testing.TB, name, path string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", path)
	cmd.Dir = filepath.Join(project(t), "tools", name)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var module struct{ Dir string }
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		Absent(t, path, err)
	}
	return module.Dir
}

// project returns the project's folder.
func project(t testing.TB) string {
	t.Helper()
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	return filepath.Dir(strings.TrimSpace(string(mod)))
}

func build(t testing.TB, name string) (string, error) {
	t.Helper()
	script := exec.Command(filepath.Join(project(t), "scripts", "testserver.sh"), name)
	var said bytes.Buffer
	script.Stderr = &said
	out, err := script.Output()
	if err != nil {
		return "", errors.Join(err, errors.New(said.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
