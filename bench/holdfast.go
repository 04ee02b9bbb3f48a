package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/web/client"
)

// service is a running `holdfast up`.
type service struct {
	client  *client.Client
	started time.Duration // from fork to the line that reports readiness

	proc *exec.Cmd
	log  string
}

// firstWrite is an io.Writer that signals its first write.
type firstWrite struct {
	once sync.Once
	seen chan struct{}
}

// Write implements io.Writer.
func (w *firstWrite) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.seen) })
	return len(p), nil
}

// up starts Holdfast on a new folder, with additional settings.
func (b *bench) up(ctx context.Context, folder string, settings ...string) (*service, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	s := &service{log: filepath.Join(folder, "log")}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()                                                                           //nolint:errcheck // the process has its own handle
	s.proc = exec.CommandContext(ctx, b.binary, "up", "--dir", data, "--listen", "127.0.0.1:0") //nolint:gosec // the measured program
	s.proc.Cancel = func() error { return s.proc.Process.Signal(syscall.SIGTERM) }
	s.proc.WaitDelay = stopsWithin
	ready := &firstWrite{seen: make(chan struct{})}
	s.proc.Env, s.proc.Stdout, s.proc.Stderr = append(environment(), settings...), ready, log
	begun := time.Now()
	if err := s.proc.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", b.binary, err)
	}
	patience := time.NewTimer(stopsWithin)
	defer patience.Stop()
	select {
	case <-ready.seen:
		s.started = time.Since(begun)
		s.client, err = connect(data)
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-patience.C:
		err = fmt.Errorf("not ready within %s", stopsWithin)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start holdfast: %w", err), s.stop())
	}
	return s, nil
}

// stopsWithin is how long a process may take to start or to end. Then it is killed.
const stopsWithin = 30 * time.Second

// connect reads the connection data that `up` writes for clients in its folder.
func connect(data string) (*client.Client, error) {
	raw, err := os.ReadFile(filepath.Join(data, node.ClientFile))
	if err != nil {
		return nil, err
	}
	var at node.Client
	if err := json.Unmarshal(raw, &at); err != nil {
		return nil, err
	}
	return client.New(at.URL, at.Token, client.Options{}), nil
}

// environment returns this process's environment without HOLDFAST_* variables. It allows the source
// on loopback, and disables the limits on disk space, so that a full disk does not delay the run.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HOLDFAST_") {
			env = append(env, v)
		}
	}
	return append(env, "HOLDFAST_NET_ALLOW=127.0.0.1", "HOLDFAST_STAGING_FULL=100", "HOLDFAST_STAGING_RESERVE=0",
		"HOLDFAST_STAGING_FULL_UNESTIMATED=100", "HOLDFAST_LOG_LEVEL=warn")
}

// stop ends the process as Ctrl-C does and waits for it. If it fails, the error contains its log.
func (s *service) stop() error {
	if s.client != nil {
		s.client.Close()
	}
	if err := s.proc.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	kill := time.AfterFunc(stopsWithin, func() { _ = s.proc.Process.Kill() })
	defer kill.Stop()
	err := s.proc.Wait()
	if err == nil {
		return nil
	}
	said, readErr := os.ReadFile(s.log)
	return errors.Join(fmt.Errorf("holdfast ended: %w: %s", err, said), readErr)
}

// memory returns a field of /proc/PID/status in bytes: VmRSS is the current memory, VmHWM the peak.
// It returns 0 if there is no such file.
func (s *service) memory(field string) int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.proc.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		var kib int64
		if _, err := fmt.Sscanf(line, field+": %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}
