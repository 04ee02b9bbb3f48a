//go:build !linux

package dir

import (
	"errors"
	"os"
	"syscall"
)

// openFolderFlags are those to open a folder. A pipe does not block.
const openFolderFlags = os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK

// openUnnamed is not supported here.
func openUnnamed(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

// checkLinkable is not supported here.
func checkLinkable(*os.File) error { return errors.ErrUnsupported }

// linkOpen is not supported here.
func linkOpen(_, _ *os.File, _ string) error { return errors.ErrUnsupported }

// tryLock is not supported here.
func tryLock(*os.File) error { return errors.ErrUnsupported }

// startWriteback does nothing here; the final fsync does all the work.
func startWriteback(*os.File, int64, int64) {}

// identify returns the identity of an open file, without its time of birth.
func identify(f *os.File) (identity, error) {
	info, err := f.Stat()
	if err != nil {
		return identity{}, err
	}
	return identity{ino: inodeOf(info).ino}, nil
}

// syncsWhole reports that syncFileSystem is not supported here.
func syncsWhole(*os.File) bool { return false }

// syncFileSystem would make everything on f's file system durable.
func syncFileSystem(*os.File) error { return errors.ErrUnsupported }

// writeError would return what went wrong when f's bytes were written.
func writeError(*os.File) error { return nil }
