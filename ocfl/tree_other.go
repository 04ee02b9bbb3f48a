//go:build !unix

package ocfl

import "io/fs"

// linkedInode cannot tell here.
func linkedInode(fs.FileInfo) (inode, bool) { return inode{}, false }
