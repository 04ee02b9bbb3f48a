//go:build unix

package ocfl

import (
	"io/fs"
	"syscall"
)

// linkedInode returns the inode of a file with several hard links.
func linkedInode(info fs.FileInfo) (inode, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink < 2 {
		return inode{}, false
	}
	return inode{dev: uint64(st.Dev), ino: st.Ino}, true //nolint:unconvert // the type of Dev depends on the system
}
