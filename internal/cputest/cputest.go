// Package cputest measures benchmarks by processor time, which other work on the machine affects
// less than wall time.
package cputest

import (
	"syscall"
	"testing"
	"time"
)

// Used returns the processor time that this process has used.
func Used(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
