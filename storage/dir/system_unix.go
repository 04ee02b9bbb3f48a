//go:build unix

package dir

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast/holdfast/storage"
)

// removeFolder removes the empty folder base in parent. Unlike os.Remove it never removes a file
// that has taken the name.
func removeFolder(parent *os.File, base string) error {
	if err := unix.Unlinkat(int(parent.Fd()), base, unix.AT_REMOVEDIR); err != nil {
		return &os.PathError{Op: "rmdir", Path: parent.Name() + "/" + base, Err: err}
	}
	return nil
}

// statIn describes the file base in parent, without following a link.
func statIn(parent *os.File, base string) (attributes, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(parent.Fd()), base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return attributes{}, &os.PathError{Op: "fstatat", Path: parent.Name() + "/" + base, Err: err}
	}
	sec, nsec := st.Mtim.Unix()
	return attributes{ino: st.Ino, size: st.Size, modified: time.Unix(sec, nsec)}, nil
}

// makeFolderIn makes the folder base in parent.
func makeFolderIn(parent *os.File, base string) error {
	if err := unix.Mkdirat(int(parent.Fd()), base, uint32(folderMode)); err != nil {
		return &os.PathError{Op: "mkdir", Path: parent.Name() + "/" + base, Err: err}
	}
	return nil
}

// fileSystemSpace returns the size and usage of f's file system. As in df, blocks reserved for the
// superuser count as neither.
func fileSystemSpace(f *os.File) (storage.Space, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return storage.Space{}, fmt.Errorf("statfs %s: %w", f.Name(), err)
	}
	block := int64(st.Bsize) //nolint:unconvert // its type depends on the system
	used := int64(st.Blocks-st.Bfree) * block
	return storage.Space{Total: used + int64(st.Bavail)*block, Used: used}, nil
}
