// Package cputest measures benchmarks by the processor's time, which other work on the machine
// changes less than the clock's.
package cputest

import (
	"syscall"
	"testing"
	"time"
)

// Used is the processor's time that this process has had.
func Used(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
