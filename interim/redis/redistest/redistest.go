// Package redistest runs a real redis-server for tests, as a child process on a free port of
// 127.0.0.1 with a folder of its own. It ends with the test.
package redistest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/proctest"
)

// Server is a running redis-server. Only the test's own goroutine may use it.
type Server struct {
	t      testing.TB
	binary string
	dir    string
	args   []string
	addr   string
	proc   *proctest.Server // nil if none is running
}

// Start starts an empty server without persistence, unless arguments (`--appendonly yes`) say
// otherwise. If the machine has no redis-server, the test is skipped, or fails if REQUIRE_SERVICES
// is 1, as in CI.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		proctest.Absent(t, "redis-server (apt-get install redis-server)", err)
	}
	s := &Server{t: t, binary: binary, dir: t.TempDir(), args: args}
	t.Cleanup(s.Kill)
	err = proctest.OnFreePort(t, func(address string) error {
		s.addr = address
		return s.run()
	})
	if err != nil {
		t.Fatalf("start redis-server: %v\n%s", err, s.log())
	}
	return s
}

// URL returns the server's address for redis.Open and HOLDFAST_REDIS_URL.
func (s *Server) URL() string { return "redis://" + s.addr + "/0" }

// Process returns the server's process, for signals.
func (s *Server) Process() *os.Process { return s.proc.Process() }

// Kill ends the server with SIGKILL, like a power failure, and waits for its end. If no server
// runs, it does nothing.
func (s *Server) Kill() {
	if s.proc == nil {
		return
	}
	s.proc.End(os.Kill)
	s.proc = nil
}

// Restart starts the server again after Kill, on the same port and folder.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.run(); err != nil {
		s.t.Fatalf("restart redis-server: %v\n%s", err, s.log())
	}
}

func (s *Server) run() error {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	cmd := exec.Command(s.binary, append([]string{
		"--port", port, "--bind", host, "--dir", s.dir, "--logfile", s.logfile(), "--save", "", "--daemonize", "no",
	}, s.args...)...)
	proc, err := proctest.Start(cmd, func(ctx context.Context) bool { return s.answers(ctx, cmd) })
	if err != nil {
		return err
	}
	s.proc = proc
	return nil
}

func (s *Server) answers(ctx context.Context, cmd *exec.Cmd) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	// The process id proves that this is the server, not another process that took the port.
	if _, err := fmt.Fprint(conn, "INFO server\r\n"); err != nil {
		return false
	}
	want := fmt.Sprintf("process_id:%d\r\n", cmd.Process.Pid)
	lines := bufio.NewReader(conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return false
		}
		if line == want {
			return true
		}
	}
}

func (s *Server) logfile() string { return filepath.Join(s.dir, "redis.log") }

func (s *Server) log() string {
	text, err := os.ReadFile(s.logfile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}
