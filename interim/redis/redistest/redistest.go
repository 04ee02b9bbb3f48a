// Package redistest starts a real redis-server for tests, as a child process on a free port of 127.0.0.1 with a
// folder of its own, and stops it when the test ends.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Server is a running redis-server. Its methods are for the test's own goroutine.
type Server struct {
	t      testing.TB
	binary string
	dir    string
	args   []string
	port   int
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has been waited for
}

// Start starts a server with nothing in it and no persistence, unless further arguments (`--appendonly yes`) say
// otherwise. Without redis-server on the machine the test is skipped, or fails when REQUIRE_SERVICES is 1, as in CI.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("REQUIRE_SERVICES") == "1" {
			t.Fatalf("redis-server is required (apt-get install redis-server): %v", err)
		}
		t.Skipf("redis-server is absent (apt-get install redis-server): %v", err)
	}
	s := &Server{t: t, binary: binary, dir: t.TempDir(), args: args}
	t.Cleanup(s.Kill)
	for range 5 {
		// The port is free now; should another process take it first, the next one is tried.
		s.port = freePort(t)
		if err = s.run(); err == nil {
			return s
		}
	}
	t.Fatalf("start redis-server: %v\n%s", err, s.log())
	return nil
}

// URL is the server's address for redis.Open and HOLDFAST_REDIS_URL.
func (s *Server) URL() string { return "redis://" + s.addr() + "/0" }

// Process is the running server's process, for signals.
func (s *Server) Process() *os.Process { return s.cmd.Process }

// Kill ends the server with SIGKILL, as a power cut would, and waits for its end. Without a running server it does
// nothing.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	// It may have ended by itself; Wait tells either way.
	_ = s.cmd.Process.Kill()
	<-s.exited
	s.cmd = nil
}

// Restart starts the server again, after Kill, on the same port and folder.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.run(); err != nil {
		s.t.Fatalf("restart redis-server: %v\n%s", err, s.log())
	}
}

func (s *Server) run() error {
	args := append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--logfile", s.logfile(),
		"--save", "", "--daemonize", "no",
	}, s.args...)
	cmd := exec.Command(s.binary, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed on purpose, or told by the log
		close(exited)
	}()
	s.cmd, s.exited = cmd, exited
	if err := s.await(); err != nil {
		s.Kill()
		return err
	}
	return nil
}

// await returns when the server answers, and an error when it ends or stays silent.
func (s *Server) await() error {
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if s.answers() {
			return nil
		}
		select {
		case <-again.C:
		case <-s.exited:
			return errors.New("it ended at once")
		case <-deadline.C:
			return errors.New("it does not answer")
		}
	}
}

func (s *Server) answers() bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(context.Background(), "tcp", s.addr())
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	// The process id shows that it is this server and not one that took the port in between.
	if _, err := fmt.Fprint(conn, "INFO server\r\n"); err != nil {
		return false
	}
	want := fmt.Sprintf("process_id:%d\r\n", s.cmd.Process.Pid)
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

func (s *Server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

func (s *Server) logfile() string { return filepath.Join(s.dir, "redis.log") }

func (s *Server) log() string {
	text, err := os.ReadFile(s.logfile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func freePort(t testing.TB) int {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
