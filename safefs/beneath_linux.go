package safefs

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OpenBeneath opens name, which cannot lead out of the directory top, with one system call
// (openat2), where os.Root needs one for each folder on the way. Any error but fs.ErrNotExist means:
// try os.Root, since the kernel or a container's filter may refuse this call.
func OpenBeneath(top *os.File, name string, flag int) (*os.File, error) {
	fd, err := unix.Openat2(int(top.Fd()), name, &unix.OpenHow{
		Flags: uint64(flag | unix.O_CLOEXEC), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "openat2", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), top.Name()+"/"+name), nil
}

// LstatBeneath describes name without following a final link. Errors are those of OpenBeneath.
func LstatBeneath(top *os.File, name string) (fs.FileInfo, error) {
	f, err := OpenBeneath(top, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // a read-only handle
	return f.Stat()
}
