// Package safefs reads folders without following links out of them.
package safefs

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// FS is an open folder. It gives the same names and errors as os.Root.FS in less time: a file is
// opened by one system call where the system has OpenBeneath. It is safe for concurrent use.
type FS struct {
	rooted
	root *os.Root
	top  *os.File
}

// rooted is the interface of os.Root.FS.
type rooted interface {
	fs.FS
	fs.ReadDirFS
	fs.ReadFileFS
	fs.StatFS
}

// Open opens a folder. The caller must close it.
func Open(name string) (*FS, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	top, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	all, ok := root.FS().(rooted)
	if !ok {
		return nil, errors.Join(errors.New("os.Root.FS cannot list folders"), top.Close(), root.Close())
	}
	return &FS{rooted: all, root: root, top: top}, nil
}

// Close closes the folder. All other calls must have returned. Files that were opened stay open.
func (f *FS) Close() error { return errors.Join(f.top.Close(), f.root.Close()) }

// Open implements fs.FS. What it returns for a folder is an fs.ReadDirFile.
func (f *FS) Open(name string) (fs.File, error) {
	if fs.ValidPath(name) {
		if opened, err := OpenBeneath(f.top, name, os.O_RDONLY); err == nil {
			return &file{File: opened, in: f, name: name}, nil
		}
	}
	return f.rooted.Open(name) // it can say what is wrong with the name
}

// file is an open file or folder.
type file struct {
	*os.File
	in   *FS
	name string
}

// ReadDir implements fs.ReadDirFile. An os.File that was opened by os.Root looks up each entry at
// once; here an entry is looked up when it is asked for Info.
func (f *file) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := f.File.ReadDir(n)
	for i, e := range entries {
		entries[i] = &entry{DirEntry: e, in: f.in, name: path.Join(f.name, e.Name())}
	}
	return entries, err
}

// entry is an entry of a folder. Its Info cannot describe anything outside the FS.
type entry struct {
	fs.DirEntry
	in   *FS
	name string
}

// Info implements fs.DirEntry.
func (e *entry) Info() (fs.FileInfo, error) {
	if info, err := LstatBeneath(e.in.top, e.name); err == nil {
		return info, nil
	}
	return e.in.root.Lstat(e.name)
}
