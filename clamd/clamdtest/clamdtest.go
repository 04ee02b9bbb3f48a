// Package clamdtest runs Debian's clamd for tests, as a child process on a unix socket and a free
// port of 127.0.0.1. It uses its own configuration and one signature of its own: the real database
// is not available.
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

	"github.com/holdfast/holdfast/internal/proctest"
)

// Virus is content that the server detects; Signature is the name that it reports.
const (
	Virus     = "HOLDFAST-HARMLESS-STRING-THAT-TESTS-CALL-A-VIRUS"
	Signature = "Holdfast.Test.UNOFFICIAL"
)

// MaxStream is the longest stream, and MaxFile the largest file, that the server accepts.
const (
	MaxStream = 4 << 20
	MaxFile   = 1 << 20
)

// Server is a running clamd.
type Server struct {
	Addr   string // host:port
	Socket string // path
	proc   *proctest.Server
}

// Start starts a clamd, which ends with the test. more are further lines of configuration, before
// its own. If the machine has no clamd, the test is skipped, or fails if REQUIRE_SERVICES is 1, as
// in CI.
func Start(t testing.TB, more ...string) *Server {
	t.Helper()
	binary, err := exec.LookPath("clamd")
	if errors.Is(err, exec.ErrNotFound) {
		binary, err = exec.LookPath("/usr/sbin/clamd")
	}
	if err != nil {
		proctest.Absent(t, "clamd (apt-get install clamav-daemon)", err)
	}
	var s *Server
	err = proctest.OnFreePort(t, func(address string) (err error) {
		s, err = run(t, binary, address, more)
		return err
	})
	if err != nil {
		t.Fatalf("start clamd: %v", err)
	}
	t.Cleanup(s.Kill)
	return s
}

func run(t testing.TB, binary, address string, more []string) (*Server, error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "clamd-") //nolint:usetesting // t.TempDir is longer than a socket's path may be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{Addr: address, Socket: filepath.Join(dir, "s")}
	host, port, _ := net.SplitHostPort(address)
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
	cmd := exec.Command(binary, "--config-file="+filepath.Join(dir, "clamd.conf"))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if s.proc, err = proctest.Start(cmd, s.answers); err != nil {
		return nil, fmt.Errorf("%w:\n%s", err, log.String())
	}
	return s, nil
}

// Kill ends the server, as a crash would.
func (s *Server) Kill() { s.proc.End(os.Kill) }

// answers reports whether both its sockets are open.
func (s *Server) answers(ctx context.Context) bool {
	var dialer net.Dialer
	for network, address := range map[string]string{"unix": s.Socket, "tcp": s.Addr} {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil || conn.Close() != nil {
			return false
		}
	}
	return true
}
