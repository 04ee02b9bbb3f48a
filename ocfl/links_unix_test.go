//go:build unix

package ocfl_test

import (
	"io/fs"
	"syscall"
)

// linksIn is how many names a file has.
func linksIn(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) //nolint:unconvert // other systems count in other widths
	}
	return 0
}
