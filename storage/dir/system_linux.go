package dir

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// descriptors is where the kernel shows a process its open files; link(2) accepts paths there.
const descriptors = "/proc/self/fd/"

// openFolderFlags are those to open a folder; the kernel refuses a pipe before it could block.
const openFolderFlags = os.O_RDONLY | unix.O_DIRECTORY

// openUnnamed makes a file without a name in the directory top. It returns errors.ErrUnsupported if
// the kernel or the file system cannot.
func openUnnamed(top *os.File) (*os.File, error) {
	fd, err := unix.Openat(int(top.Fd()), ".", unix.O_RDWR|unix.O_CLOEXEC|unix.O_TMPFILE, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open a file without a name in", Path: top.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), top.Name()+"/(no name)"), nil
}

// checkLinkable returns errors.ErrUnsupported if an unnamed file cannot get a name.
func checkLinkable(f *os.File) error {
	if _, err := os.Lstat(descriptor(f)); err != nil {
		return errors.Join(errors.ErrUnsupported, err)
	}
	return nil
}

func descriptor(f *os.File) string { return descriptors + strconv.FormatUint(uint64(f.Fd()), 10) }

// linkOpen gives the open file f a further name, base in folder. The error is fs.ErrExist if the
// name is taken and fs.ErrNotExist if the folder was removed.
func linkOpen(f, folder *os.File, base string) error {
	from := descriptor(f)
	err := unix.Linkat(unix.AT_FDCWD, from, int(folder.Fd()), base, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "linkat", Old: from, New: folder.Name() + "/" + base, Err: err}
	}
	return nil
}

// tryLock locks a file for as long as it is open here, or returns an error if it is locked.
func tryLock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return &os.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return nil
}

// startWriteback tells the kernel to start writing a range of f to disk, so that the final fsync
// has less to do. It is only a hint.
func startWriteback(f *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}

// identify returns the identity of an open file.
func identify(f *os.File) (identity, error) {
	var st unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &st)
	if err != nil {
		return identity{}, &os.PathError{Op: "statx", Path: f.Name(), Err: err}
	}
	id := identity{ino: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id, nil
}

// wholeSyncs are the file systems of which one syncfs may stand for the fsyncs of many files: it
// waits for the disk, and each file tells of its failed writes afterwards. FUSE does not pass a
// syncfs on to its server, and a file of an overlay does not know the errors of the file below.
var wholeSyncs = map[uint32]bool{
	unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true, unix.F2FS_SUPER_MAGIC: true,
	0x2fc12fc1 /* ZFS */ : true, unix.TMPFS_MAGIC: true,
}

// syncsWhole reports whether one syncfs of f's file system may stand for the fsyncs of many files.
func syncsWhole(f *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &st) == nil && wholeSyncs[uint32(st.Type)]
}

// syncFileSystem makes everything on f's file system durable, if it syncsWhole.
func syncFileSystem(f *os.File) error {
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: f.Name(), Err: err}
	}
	return nil
}

// writeError returns the error that the kernel met when it last wrote f's bytes to disk, and that no
// one has been told of through f. Another syncfs may have met it.
func writeError(f *os.File) error {
	if err := unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WAIT_BEFORE); err != nil {
		return &os.PathError{Op: "sync_file_range", Path: f.Name(), Err: err}
	}
	return nil
}
