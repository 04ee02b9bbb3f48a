package payload

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/intake"
)

// Folder is a folder that is sent as a tar file, made while it is sent. The tar depends on names,
// bytes and times only, and not on owners or the folder's place, so the same folder is recognised
// as the same content.
type Folder struct {
	root    *os.Root
	entries []tarEntry
	size    int64 // of the tar file
	Bytes   int64 // of the files
	Files   int64
}

type tarEntry struct {
	name string
	size int64 // -1: a folder
	exec bool

	modified time.Time // of a file; not in the tar file
}

// tarTrailer is the size of a tar's end: two blocks of zeros.
const tarTrailer = 1024

// OpenFolder reads the names and sizes in a folder, sorted. It returns an error for each entry that
// cannot be sent: links, devices, sockets and pipes.
func OpenFolder(dir string) (_ *Folder, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Close())
		}
	}()
	f := &Folder{root: root, size: tarTrailer}
	var faults []error
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == "." {
			return nil
		}
		e, err := entryOf(dir, name, d)
		if err != nil {
			faults = append(faults, err)
			return nil
		}
		return f.add(e)
	})
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", dir, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if f.Files == 0 {
		return nil, exit.Fix(fmt.Errorf("%s: %w", dir, errEmptyFolder), "put the files to preserve into it")
	}
	return f, nil
}

// ErrNotAFile is the error of links, devices, sockets and pipes, which cannot be payloads.
var ErrNotAFile = exit.Coded(exit.Content, "neither a file nor a folder", "")

var (
	errEmptyFolder = exit.Coded(exit.Content, "the folder has no files", "")
	errChanged     = exit.Coded(exit.Temporary, "the file was changed while it was being sent", "submit it again when no program writes to it")
)

func entryOf(dir, name string, d fs.DirEntry) (tarEntry, error) {
	where := path.Join(dir, name)
	switch {
	case d.IsDir():
		return tarEntry{name: name + "/", size: -1}, nil
	case d.Type()&fs.ModeSymlink != 0:
		return tarEntry{}, exit.Fix(fmt.Errorf("%s: %w: a link", where, ErrNotAFile), "replace it with the file that it points to, or remove it")
	case !d.Type().IsRegular():
		return tarEntry{}, exit.Fix(fmt.Errorf("%s: %w", where, ErrNotAFile), "remove it")
	}
	info, err := d.Info()
	if err != nil {
		return tarEntry{}, fmt.Errorf("%s: %w", where, err)
	}
	return tarEntry{name: name, size: info.Size(), exec: info.Mode()&0o111 != 0, modified: info.ModTime()}, nil
}

// add counts an entry, with its header and padding.
func (f *Folder) add(e tarEntry) error {
	var c byteCounter
	if err := tar.NewWriter(&c).WriteHeader(e.header()); err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	f.size += int64(c)
	if e.size >= 0 {
		f.size += (e.size + 511) / 512 * 512
		f.Bytes += e.size
		f.Files++
	}
	f.entries = append(f.entries, e)
	return nil
}

func (e tarEntry) header() *tar.Header {
	h := &tar.Header{Name: e.name, Typeflag: tar.TypeReg, Size: max(e.size, 0), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	switch {
	case e.size < 0:
		h.Typeflag, h.Mode = tar.TypeDir, 0o755
	case e.exec:
		h.Mode = 0o755
	}
	if !e.modified.IsZero() {
		h.ModTime = e.modified.Truncate(time.Microsecond) // the precision that the tar keeps
	}
	return h
}

// bag reports whether the folder is a bag.
func (f *Folder) bag() bool {
	var top intake.TopFolder
	for _, e := range f.entries {
		top.Add(e.name)
	}
	return top.Bag()
}

// send writes the tar file to w. It ends early if ctx does. It returns errChanged if a file's size
// has changed.
func (f *Folder) send(ctx context.Context, w io.Writer) error {
	t := tar.NewWriter(w)
	for _, e := range f.entries {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := t.WriteHeader(e.header()); err != nil {
			return fmt.Errorf("send %s: %w", e.name, err)
		}
		if e.size < 0 {
			continue
		}
		if err := f.sendFile(t, e); err != nil {
			return fmt.Errorf("send %s: %w", path.Join(f.root.Name(), e.name), err)
		}
	}
	return t.Close()
}

func (f *Folder) sendFile(w io.Writer, e tarEntry) error {
	file, err := f.root.Open(e.name)
	if err != nil {
		return err
	}
	n, err := io.Copy(w, io.LimitReader(file, e.size))
	if err == nil {
		// A file that has grown has changed, too.
		extra, _ := io.CopyN(io.Discard, file, 1)
		if n+extra != e.size {
			err = errChanged
		}
	}
	return errors.Join(err, file.Close())
}

// reader returns the tar file as a stream. Closing it ends the goroutine that makes it.
func (f *Folder) reader(ctx context.Context) io.ReadCloser {
	r, w := io.Pipe()
	s := &folderStream{PipeReader: r, over: make(chan struct{})}
	go func() {
		defer close(s.over)
		w.CloseWithError(f.send(ctx, w))
	}()
	return s
}

// readerAt returns the stream from an offset on. It makes and discards the bytes before.
func (f *Folder) readerAt(ctx context.Context, offset int64) (io.ReadCloser, error) {
	r := f.reader(ctx)
	if _, err := io.CopyN(io.Discard, r, offset); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// folderStream is the stream of a tar file.
type folderStream struct {
	*io.PipeReader
	over chan struct{}
}

// Close stops the goroutine and waits for it.
func (s *folderStream) Close() error {
	err := s.PipeReader.Close()
	<-s.over
	return err
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// byteCounter counts the bytes written to it.
type byteCounter int64

// Write implements io.Writer.
func (c *byteCounter) Write(p []byte) (int, error) {
	*c += byteCounter(len(p))
	return len(p), nil
}
