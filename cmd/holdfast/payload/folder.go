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

// Folder is a folder that is sent as a tar file, which is made while it is sent. The same names,
// bytes and times give the same tar file, whoever owns them and wherever they lie: so the same
// folder is recognised as the same content.
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

// tarTrailer ends a tar file: two blocks of zeros.
const tarTrailer = 1024

// OpenFolder reads the names and sizes in a folder, in sorted order. The error joins one for every
// entry that cannot be sent: links, devices, sockets and pipes. Nothing is sent then.
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
	// WalkDir reads each folder sorted by name.
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

// ErrNotAFile is the error of what can be no payload: links, devices, sockets and pipes.
var ErrNotAFile = exit.Coded(exit.Content, "neither a file nor a folder", "")

var (
	errEmptyFolder = exit.Coded(exit.Content, "no file is in the folder", "")
	errChanged     = exit.Coded(exit.Temporary, "the file was changed while it was being sent", "submit it again when nothing writes to it")
)

func entryOf(dir, name string, d fs.DirEntry) (tarEntry, error) {
	where := path.Join(dir, name)
	switch {
	case d.IsDir():
		return tarEntry{name: name + "/", size: -1}, nil
	case d.Type()&fs.ModeSymlink != 0:
		return tarEntry{}, exit.Fix(fmt.Errorf("%s: %w: a link", where, ErrNotAFile), "replace it by the file it points to, or remove it")
	case !d.Type().IsRegular():
		return tarEntry{}, exit.Fix(fmt.Errorf("%s: %w", where, ErrNotAFile), "remove it")
	}
	info, err := d.Info()
	if err != nil {
		return tarEntry{}, fmt.Errorf("%s: %w", where, err)
	}
	return tarEntry{name: name, size: info.Size(), exec: info.Mode()&0o111 != 0, modified: info.ModTime()}, nil
}

// add counts an entry in, header and padding included.
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
		h.ModTime = e.modified.Truncate(time.Microsecond) // which is what is kept
	}
	return h
}

// bag says whether it is a bag.
func (f *Folder) bag() bool {
	var top intake.TopFolder
	for _, e := range f.entries {
		top.Meet(e.name)
	}
	return top.Bag()
}

// send writes the tar file to w, from the beginning. It ends early when ctx does, and with
// errChanged when a file no longer has the size that it had.
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
		// One byte more than there was is as wrong as one too few.
		extra, _ := io.CopyN(io.Discard, file, 1)
		if n+extra != e.size {
			err = errChanged
		}
	}
	return errors.Join(err, file.Close())
}

// reader returns the tar file as a stream; closing it ends the goroutine that makes it.
func (f *Folder) reader(ctx context.Context) io.ReadCloser {
	r, w := io.Pipe()
	s := &folderStream{PipeReader: r, over: make(chan struct{})}
	go func() {
		defer close(s.over)
		w.CloseWithError(f.send(ctx, w))
	}()
	return s
}

// readerAt is reader from an offset on. It makes what lies before, too, and throws it away.
func (f *Folder) readerAt(ctx context.Context, offset int64) (io.ReadCloser, error) {
	r := f.reader(ctx)
	if _, err := io.CopyN(io.Discard, r, offset); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// folderStream is a tar file while it is made.
type folderStream struct {
	*io.PipeReader
	over chan struct{}
}

// Close ends the making, and waits for its end.
func (s *folderStream) Close() error {
	err := s.PipeReader.Close()
	<-s.over
	return err
}

// Close lets the folder go.
func (f *Folder) Close() error { return f.root.Close() }

// byteCounter counts what is written to it.
type byteCounter int64

// Write implements io.Writer.
func (c *byteCounter) Write(p []byte) (int, error) {
	*c += byteCounter(len(p))
	return len(p), nil
}
