// Package safefs reads folders without following links out of them.
//
// It returns the same names and errors as os.Root.FS in less time. It keeps the last folder open,
// so further files in it are opened in one step instead of through all parent folders.
package safefs

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
)

// FS is an open folder. It is safe for concurrent use.
type FS struct {
	rooted
	root *os.Root
	last atomic.Pointer[folder]
}

// rooted is the interface of os.Root.FS.
type rooted interface {
	fs.FS
	fs.ReadDirFS
	fs.ReadFileFS
	fs.StatFS
}

// folder is a subfolder. Its root is nil until a second file in it is opened.
type folder struct {
	name string
	root *os.Root
}

func (f *folder) close() error {
	if f == nil || f.root == nil {
		return nil
	}
	return f.root.Close()
}

// Open opens a folder. The caller must close it.
func Open(name string) (*FS, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	all, ok := root.FS().(rooted)
	if !ok {
		return nil, errors.Join(errors.New("os.Root.FS cannot list folders"), root.Close())
	}
	return &FS{rooted: all, root: root}, nil
}

// Close closes the folder. All other calls must have returned. Files that were opened stay open.
func (f *FS) Close() error { return errors.Join(f.last.Swap(nil).close(), f.root.Close()) }

// Open implements fs.FS.
func (f *FS) Open(name string) (fs.File, error) {
	end := strings.LastIndexByte(name, '/')
	if end < 0 || !fs.ValidPath(name) {
		return f.rooted.Open(name)
	}
	if root := f.in(name[:end]); root != nil {
		if file, err := root.Open(name[end+1:]); err == nil {
			return file, nil
		}
	}
	// Try the whole path: only then it shows whether a link leads out, another call may have closed
	// the last folder, and errors must contain the whole path.
	return f.rooted.Open(name)
}

// in returns the folder if it is the last one. Otherwise it makes it the last one and returns nil.
func (f *FS) in(name string) *os.Root {
	last := f.last.Load()
	switch {
	case last == nil || last.name != name:
		last = &folder{name: name}
	case last.root != nil:
		return last.root
	default:
		root, err := f.root.OpenRoot(name)
		if err != nil {
			return nil // Open returns the error
		}
		last = &folder{name: name, root: root}
	}
	_ = f.last.Swap(last).close() // opened for reading
	return last.root
}
