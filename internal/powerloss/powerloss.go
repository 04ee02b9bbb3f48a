// Package powerloss tells what a disk may hold after the power failed, at any moment of a program's
// run. It is for tests.
//
// A run under strace gives a [History] of every operation on the files below one folder. From that,
// an [Image] of any moment is made: the worst that the promises of POSIX allow, or one of many that
// lie between the worst and what the program saw.
//
// The model of a disk is a pessimistic one, weaker than ext4 or XFS:
//
//   - The bytes of a file are durable after fsync, fdatasync or syncfs, and only those that had been
//     written when the call began. Of later writes any may be on disk, whole or in part.
//   - A name is durable after an fsync of its folder, or syncfs. Of the later operations on one
//     folder, the disk may hold those up to any point. Different folders are independent, but a
//     rename from one to another is on disk in both or in neither.
//   - An fsync of a file does not make its name durable.
//
// It does not know hardware that lies about a flush, and no changes through shared memory maps.
package powerloss

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// traced are the system calls that change files, or the descriptors by which they are changed.
var traced = []string{
	"open", "openat", "openat2", "creat", "close", "dup", "dup2", "dup3", "fcntl",
	"write", "pwrite64", "writev", "pwritev", "pwritev2", "lseek", "copy_file_range", "sendfile", "splice",
	"fsync", "fdatasync", "sync", "syncfs", "sync_file_range",
	"link", "linkat", "symlink", "symlinkat", "rename", "renameat", "renameat2", "unlink", "unlinkat",
	"mkdir", "mkdirat", "rmdir", "ftruncate", "truncate", "fallocate", "fchmod", "fchmodat", "chmod",
}

// Command returns the command that runs a program under strace and writes what it does to trace.
func Command(trace, program string, args ...string) *exec.Cmd {
	const longest = "16777216" // bytes of one write that strace shows
	return exec.Command("strace", append([]string{
		"-f", "-y", "-qq", "-s", longest, "-e", "signal=none", "-o", trace, "-e", "trace=" + strings.Join(traced, ","), program,
	}, args...)...)
}

// SlowSyncfs makes each syncfs of a Command's program take 200 ms longer, as if another program
// filled the page cache.
func SlowSyncfs(c *exec.Cmd) {
	c.Args = slices.Insert(c.Args, 1, "-e", "inject=syncfs:delay_exit=200000")
}

// Traced returns the program that a started Command runs; strace itself takes no signals. After its
// end, it is a process that is done.
func Traced(c *exec.Cmd) (*os.Process, error) {
	id := strconv.Itoa(c.Process.Pid)
	children, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	child, _, _ := strings.Cut(string(children), " ")
	if errors.Is(err, fs.ErrNotExist) || err == nil && child == "" {
		return c.Process, nil
	}
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(child)
	if err != nil {
		return nil, err
	}
	return os.FindProcess(pid)
}

// History is what a program did to the files below one folder, in order.
type History struct {
	root  string                // absolute
	begin func() (*disk, error) // what the folder held when the program started
	ops   []op
	sent  []message
}

// op is one operation, or the beginning of a sync.
type op struct {
	apply func(*disk) error
	syncs bool // something may become durable
}

// message is what the program wrote to a socket after a number of operations.
type message struct {
	at   int
	text string
}

// Len returns the number of operations. The points of a history are 0 (before the first one) to Len.
func (h *History) Len() int { return len(h.ops) }

// Syncs returns the points just before something becomes durable, and the end. The worst image
// differs from point to point only there.
func (h *History) Syncs() []int {
	var points []int
	for i, o := range h.ops {
		if o.syncs {
			points = append(points, i)
		}
	}
	return append(points, len(h.ops))
}

// Sent returns the point at which the program first wrote each of the texts to a socket in one
// message; ok is false if it never did.
func (h *History) Sent(texts ...string) (point int, ok bool) {
	for _, m := range h.sent {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(m.text, text)
		}
		if all {
			return m.at, true
		}
	}
	return 0, false
}

// Image is the content of the folder on a disk.
type Image struct {
	top *node
}

// Write makes the image in folder, which must be missing.
func (i *Image) Write(folder string) error {
	return i.top.write(folder, map[*node]string{})
}

func (n *node) write(name string, written map[*node]string) error {
	if !n.folder {
		if other, ok := written[n]; ok {
			return os.Link(other, name)
		}
		written[n] = name
		return errors.Join(os.WriteFile(name, n.data, 0o600), os.Chmod(name, n.mode))
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		return err
	}
	for base, child := range n.names {
		if err := child.write(name+"/"+base, written); err != nil {
			return err
		}
	}
	return os.Chmod(name, n.mode|fs.FileMode(0o700))
}
