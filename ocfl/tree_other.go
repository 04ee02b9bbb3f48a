//go:build !unix

package ocfl

import "io/fs"

// linkedInode returns false: hard links are not recognized on this system.
func linkedInode(fs.FileInfo) (inode, bool) { return inode{}, false }
