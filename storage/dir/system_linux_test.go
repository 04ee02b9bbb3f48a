package dir

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestWholeSyncs: on file systems that do not promise what a batch needs of a syncfs, each file gets
// an fsync of its own.
func TestWholeSyncs(t *testing.T) {
	for name, magic := range map[string]uint32{
		"fuse": unix.FUSE_SUPER_MAGIC, "overlay": unix.OVERLAYFS_SUPER_MAGIC, "cifs": unix.CIFS_SUPER_MAGIC, "smb": unix.SMB2_SUPER_MAGIC,
		"nfs": unix.NFS_SUPER_MAGIC, "9p": unix.V9FS_MAGIC, "an unknown one": 1,
	} {
		if wholeSyncs[magic] {
			t.Errorf("%s: a syncfs stands for the fsync of each file", name)
		}
	}
}
