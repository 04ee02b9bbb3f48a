package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/internal/cputime"
)

// cost is what processes of Holdfast used.
type cost struct {
	cpu     time.Duration // user and system
	written int64         // bytes, by /proc/PID/io: those that dirtied the page cache or went past it
}

// costOf reads what a process used since its start. It returns zeros where /proc does not tell.
func costOf(pid int) (c cost) {
	own, _ := cputime.Of(pid)
	c.cpu = own.CPU
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)); err == nil {
		c.written = fieldOf(raw, "write_bytes: %d")
	}
	return c
}

// fieldOf returns the number of the first line that has a format, or 0.
func fieldOf(text []byte, format string) (n int64) {
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, format, &n); err == nil {
			return n
		}
	}
	return 0
}

// each is what a subject's run cost, divided by the number of jobs, files or items in it.
type each struct{ cpu, written float64 }

// spent notes the cost of one round of a subject. The part of the table that names the subject
// shows the median of its rounds.
func (b *bench) spent(subject string, used cost, pieces int64) {
	if used.cpu == 0 {
		return // there is no /proc
	}
	if b.costs == nil {
		b.costs = map[string][]each{}
	}
	n := float64(pieces)
	b.costs[subject] = append(b.costs[subject], each{used.cpu.Seconds() / n, float64(used.written) / n})
}

// eachOf writes the costs of a subject for the table: "" when none were noted.
func (b *bench) eachOf(subject string) string {
	rounds := b.costs[subject]
	if len(rounds) == 0 {
		return ""
	}
	var cpu, written []float64
	for _, r := range rounds {
		cpu, written = append(cpu, r.cpu), append(written, r.written)
	}
	slices.Sort(cpu)
	slices.Sort(written)
	text := fmt.Sprintf("%s, %s", unitOf(cpu[len(cpu)/2], "s", "ms"), unitOf(written[len(written)/2]/1e6, "MB", "kB"))
	calls, ok := b.calls[subject]
	if !ok {
		return text + ", -, -"
	}
	return text + fmt.Sprintf(", %.1f, %.0f", calls.syncs, calls.opens)
}

// unitOf writes a value in a unit, or in its thousandth when it is below 1.
func unitOf(v float64, unit, thousandth string) string {
	if v < 1 {
		return figures(v*1000) + " " + thousandth
	}
	return figures(v) + " " + unit
}

// calls are numbers of system calls: of a run, or for each job.
type calls struct{ syncs, opens float64 }

// straceCommand runs a program under strace, which writes a summary of the calls of all its threads
// to a file when the program ends. The program stays the child of this process (-D).
func straceCommand(trace string) []string {
	return []string{"strace", "-D", "-f", "-c", "-qq", "--seccomp-bpf", "-o", trace, "-e", "trace=fsync,fdatasync,syncfs,openat,openat2"}
}

// traceable says whether strace is installed.
func traceable() bool {
	_, err := exec.LookPath("strace")
	return err == nil
}

// callsOf adds up the summaries of all processes of a service that has ended.
func callsOf(ctx context.Context, folder string) (total calls, err error) {
	traces, err := filepath.Glob(filepath.Join(folder, "*.strace"))
	if err == nil && len(traces) == 0 {
		err = errors.New("strace left no summary")
	}
	for _, name := range traces {
		one, readErr := readTrace(ctx, name)
		err = errors.Join(err, readErr)
		total.syncs += one.syncs
		total.opens += one.opens
	}
	return total, err
}

// readTrace waits for the summary, which strace writes after the program's end, and reads it.
func readTrace(ctx context.Context, name string) (c calls, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, stopsWithin, fmt.Errorf("%s is not complete", name))
	defer cancel()
	tick := time.NewTicker(asked)
	defer tick.Stop()
	for {
		raw, err := os.ReadFile(name)
		if err != nil {
			return c, err
		}
		if counts, ok := summary(string(raw)); ok {
			return counts, nil
		}
		select {
		case <-ctx.Done():
			return c, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// summary reads the lines "% time, seconds, usecs/call, calls, [errors,] syscall" of strace -c. It
// returns false while the last one, the total, is missing.
func summary(text string) (c calls, complete bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		var n float64
		if _, err := fmt.Sscan(fields[3], &n); err != nil {
			continue
		}
		switch fields[len(fields)-1] {
		case "fsync", "fdatasync", "syncfs":
			c.syncs += n
		case "openat", "openat2":
			c.opens += n
		case "total":
			complete = true
		}
	}
	return c, complete
}
