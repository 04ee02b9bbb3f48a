// Package clamdtest runs Debian's clamd for tests: as a child process on a unix socket and a free port of 127.0.0.1, with a
// configuration and one signature of its own, since the real database is not to be had.
package clamdtest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Virus is what the server knows, and Signature the name that it gives it.
const (
	Virus     = "HOLDFAST-HARMLESS-STRING-THAT-TESTS-CALL-A-VIRUS"
	Signature = "Holdfast.Test.UNOFFICIAL"
)

// MaxStream is the longest stream, and MaxFile the largest file, that the server takes.
const (
	MaxStream = 4 << 20
	MaxFile   = 1 << 20
)

// Server is a running clamd.
type Server struct {
	Addr   string // host:port
	Socket string // path
	dir    string
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start starts a clamd, which ends with the test; more are further lines of its configuration, before its own. Where there is none on
// the machine the test is skipped, or fails when REQUIRE_SERVICES is 1, as in CI.
func Start(t testing.TB, more ...string) *Server {
	t.Helper()
	binary, err := exec.LookPath("clamd")
	if errors.Is(err, exec.ErrNotFound) {
		binary, err = exec.LookPath("/usr/sbin/clamd")
	}
	if err != nil {
		if os.Getenv("REQUIRE_SERVICES") == "1" {
			t.Fatalf("clamd is required (apt-get install clamav-daemon): %v", err)
		}
		t.Skipf("clamd is absent (apt-get install clamav-daemon): %v", err)
	}
	for range 5 {
		// The port is free now; should another process take it first, the next one is tried.
		var s *Server
		if s, err = run(t, binary, more); err == nil {
			t.Cleanup(s.Kill)
			return s
		}
	}
	t.Fatalf("start clamd: %v", err)
	return nil
}

func run(t testing.TB, binary string, more []string) (*Server, error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "clamd-") //nolint:usetesting // t.TempDir is longer than a socket's path may be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{Addr: freeAddress(t), Socket: filepath.Join(dir, "s"), dir: dir, exited: make(chan struct{})}
	host, port, _ := net.SplitHostPort(s.Addr)
	config := append(more,
		"Foreground yes", "LocalSocket "+s.Socket, "TCPAddr "+host, "TCPSocket "+port, "DatabaseDirectory "+dir, "TemporaryDirectory "+dir,
		fmt.Sprintf("StreamMaxLength %d", MaxStream), fmt.Sprintf("MaxFileSize %d", MaxFile), fmt.Sprintf("MaxScanSize %d", MaxStream),
		"AlertExceedsMax yes", "")
	signature := "Holdfast.Test:0:*:" + hex.EncodeToString([]byte(Virus)) + "\n"
	err = errors.Join(os.WriteFile(filepath.Join(dir, "local.ndb"), []byte(signature), 0o600),
		os.WriteFile(filepath.Join(dir, "clamd.conf"), []byte(strings.Join(config, "\n")), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(binary, "--config-file="+filepath.Join(dir, "clamd.conf"))
	var log bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(s.exited)
		_ = s.cmd.Wait() // killed on purpose, or told by its log
	}()
	if err := s.await(); err != nil {
		s.Kill()
		return nil, fmt.Errorf("%w:\n%s", err, log.String())
	}
	return s, nil
}

// Kill ends the server, as a crash would.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.exited
}

// await returns when it answers.
func (s *Server) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		var dialer net.Dialer
		unix, err := dialer.DialContext(ctx, "unix", s.Socket)
		if err == nil {
			unix.Close()
			tcp, err := dialer.DialContext(ctx, "tcp", s.Addr)
			if err == nil {
				return tcp.Close()
			}
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
