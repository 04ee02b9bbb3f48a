package bagit

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"
)

// FolderTarget writes a bag into a folder, which should be empty: a file that exists already is an error (fs.ErrExist)
// and is not touched. Files are flushed to the disk one by one, folders by Close, so that after Close the bag
// survives a loss of power. The root stays open.
func FolderTarget(root *os.Root) Target {
	return &folderTarget{root: root, dirs: map[string]bool{".": true}}
}

type folderTarget struct {
	root *os.Root
	dirs map[string]bool // in which something was made
}

// Mkdir implements Target.
func (t *folderTarget) Mkdir(name string) error {
	if t.dirs[name] {
		return nil
	}
	if err := t.root.MkdirAll(name, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	for dir := name; dir != "."; dir = path.Dir(dir) {
		t.dirs[dir] = true
	}
	return nil
}

// Create implements Target.
func (t *folderTarget) Create(name string, _ int64) (io.WriteCloser, error) {
	if err := t.Mkdir(path.Dir(name)); err != nil {
		return nil, err
	}
	f, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create file: %w", err)
	}
	return &syncedFile{f}, nil
}

// Close implements Target.
func (t *folderTarget) Close() error {
	for name := range t.dirs {
		dir, err := t.root.Open(name)
		if err != nil {
			return fmt.Errorf("flush folder: %w", err)
		}
		if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
			return fmt.Errorf("flush folder: %w", err)
		}
	}
	return nil
}

type syncedFile struct{ *os.File }

// Close implements io.Closer: the content is on the disk when it returns nil.
func (f *syncedFile) Close() error { return errors.Join(f.Sync(), f.File.Close()) }

// TarTarget writes a bag as a tar into w, below the folder base, which is how a bag is packed (BagIt 0.97,
// section 4). All files carry the time modified; sizes must be known before. Close ends the tar and leaves w open.
func TarTarget(w io.Writer, base string, modified time.Time) Target {
	return &tarTarget{tw: tar.NewWriter(w), base: base, modified: modified}
}

type tarTarget struct {
	tw       *tar.Writer
	base     string
	modified time.Time
}

// Mkdir implements Target.
func (t *tarTarget) Mkdir(name string) error {
	return t.header(tar.TypeDir, path.Join(t.base, name)+"/", 0o755, 0)
}

// Create implements Target.
func (t *tarTarget) Create(name string, size int64) (io.WriteCloser, error) {
	if size < 0 {
		return nil, fmt.Errorf("create file in tar: size is not known: %w", ErrSize)
	}
	if err := t.header(tar.TypeReg, path.Join(t.base, name), 0o644, size); err != nil {
		return nil, err
	}
	return tarFile{t.tw}, nil
}

func (t *tarTarget) header(kind byte, name string, mode, size int64) error {
	hdr := &tar.Header{Typeflag: kind, Name: name, Mode: mode, Size: size, ModTime: t.modified, Format: tar.FormatPAX}
	if err := t.tw.WriteHeader(hdr); err != nil {
		return fmt.Errorf("create file in tar: %w", err)
	}
	return nil
}

// Close implements Target.
func (t *tarTarget) Close() error { return t.tw.Close() }

// tarFile is the file that the tar is at. Its Close tells whether all of it was written.
type tarFile struct{ tw *tar.Writer }

// Write implements io.Writer.
func (f tarFile) Write(p []byte) (int, error) { return f.tw.Write(p) }

// Close implements io.Closer.
func (f tarFile) Close() error { return f.tw.Flush() }
