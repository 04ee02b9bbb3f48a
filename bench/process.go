package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// stopsWithin is how long a process may take to start or to stop. Then it is killed.
const stopsWithin = 30 * time.Second

// process is a running holdfast: `up`, or one role of a fleet.
type process struct {
	name    string
	cmd     *exec.Cmd
	log     string        // file of standard error
	metrics string        // address of its metrics, "" if nobody asks
	trace   string        // file of strace's summary, "" without strace
	started time.Duration // from fork to the line that says that it is ready
}

// firstWrite is an output that closes seen at its first write.
type firstWrite struct {
	once sync.Once
	seen chan struct{}
}

// Write implements io.Writer.
func (w *firstWrite) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.seen) })
	return len(p), nil
}

// start runs holdfast with args and waits until it is ready. Its log lies in folder. With
// b.tracing it runs under strace, which counts its system calls.
func (b *bench) start(ctx context.Context, folder, name string, env []string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(folder, name+".log")}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the process has its own
	args = append([]string{b.binary}, args...)
	if b.tracing {
		p.trace = filepath.Join(folder, name+".strace")
		args = append(straceCommand(p.trace), args...)
	}
	p.cmd = exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // what is measured
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopsWithin
	ready := &firstWrite{seen: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(environment(), env...), ready, log
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	patience := time.NewTimer(stopsWithin)
	defer patience.Stop()
	select {
	case <-ready.seen:
		p.started = time.Since(begun)
		return p, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-patience.C:
		err = fmt.Errorf("not ready within %s", stopsWithin)
	}
	return nil, errors.Join(fmt.Errorf("start holdfast %s: %w", name, err), p.stop())
}

// stop ends the process as Ctrl-C would, and waits for it. The error of a process that ended badly
// contains its log.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	kill := time.AfterFunc(stopsWithin, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	err := p.cmd.Wait()
	if err == nil {
		return nil
	}
	logged, readErr := os.ReadFile(p.log)
	return errors.Join(fmt.Errorf("holdfast %s ended: %w: %s", p.name, err, logged), readErr)
}

// memory returns a figure of /proc/PID/status in bytes: VmRSS is the present resident memory, VmHWM
// its peak. It returns 0 where there is no such file.
func (p *process) memory(field string) int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	return fieldOf(raw, field+": %d kB") << 10
}

// forgetPeak makes VmHWM begin again with the present memory.
func (p *process) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0)
}
