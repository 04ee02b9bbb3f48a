package bagit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
)

// ValidateFS checks the bag whose base directory is the root of fsys. For a folder on disk, pass
// safefs.Open's file system, which does not follow links out of the folder. Several files are
// hashed at the same time, and the algorithms of a large file too. Symbolic links and special files
// are refused, never followed. Options.FindBase is ignored.
//
// The error comes from reading or is the cause of ctx; there is no Report then. A file whose size
// changes while it is read is ErrSize.
func ValidateFS(ctx context.Context, fsys fs.FS, opts Options) (*Report, error) {
	opts.FindBase = false
	opts.Form = cmp.Or(opts.Form, FormFolder)
	v := NewValidator(opts)
	defer v.Close() //nolint:errcheck // does something only after a failure
	top, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("validate folder: %w", err)
	}
	names := make([]string, 0, len(top))
	for _, e := range top {
		names = append(names, e.Name())
	}
	v.ExpectManifests(names...)

	g, gctx := newGroup(ctx)
	files := make(chan folderFile, 64)
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error { return v.addFiles(gctx, fsys, files) })
	}
	err = v.walk(gctx, fsys, files)
	close(files)
	if werr := g.Wait(); werr != nil {
		err = werr // the walk only reports that it was stopped
	}
	if err != nil {
		return nil, fmt.Errorf("validate folder: %w", err)
	}
	return v.Finish()
}

// folderFile is a file to be added.
type folderFile struct {
	name  string
	entry fs.DirEntry
}

// walk sends all files below the root. It lists a folder in portions, so that hashing starts before
// a long list is read.
func (v *Validator) walk(ctx context.Context, fsys fs.FS, files chan<- folderFile) error {
	for folders := []string{"."}; len(folders) > 0; {
		last := len(folders) - 1
		inside, err := v.list(ctx, fsys, folders[last], files)
		if err != nil {
			return err
		}
		folders = append(folders[:last], inside...)
	}
	return nil
}

// list sends the files of one folder, and returns the folders in it.
func (v *Validator) list(ctx context.Context, fsys fs.FS, folder string, files chan<- folderFile) (inside []string, err error) {
	f, err := fsys.Open(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, fmt.Errorf("list %q: it is no longer a folder", folder)
	}
	const portion = 256
	for {
		entries, err := dir.ReadDir(portion)
		for _, d := range entries {
			name := path.Join(folder, d.Name())
			switch {
			case d.IsDir():
				v.AddDir(name)
				inside = append(inside, name)
			case !d.Type().IsRegular():
				v.Refuse(name, fileKind(d.Type()))
			default:
				select {
				case files <- folderFile{name, d}:
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
		}
		switch {
		case err == io.EOF: //nolint:errorlint // a wrapped io.EOF is not the end of the folder
			return inside, nil
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
	}
}

// addFiles adds files until the channel is closed.
func (v *Validator) addFiles(ctx context.Context, fsys fs.FS, files <-chan folderFile) error {
	for f := range files {
		if err := v.addFile(ctx, fsys, f.name, f.entry); err != nil {
			return err
		}
	}
	return nil
}

// addFile adds a file. It takes the size from the open file, because a lookup by path below an
// os.Root opens all folders on the way again. If the file need not be read, it takes the size from
// the folder's entry.
func (v *Validator) addFile(ctx context.Context, fsys fs.FS, name string, d fs.DirEntry) (err error) {
	if !v.reads(name) {
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("add %q: %w", name, err)
		}
		late := &lazyFile{fsys: fsys, name: name}
		return errors.Join(v.Add(ctx, name, info.Size(), late), late.close())
	}
	f, err := fsys.Open(name)
	if err != nil {
		return fmt.Errorf("add %q: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("add %q: %w", name, err)
	}
	if !info.Mode().IsRegular() { // the file was replaced after its folder was listed
		v.Refuse(name, fileKind(info.Mode()))
		return nil
	}
	return v.Add(ctx, name, info.Size(), f)
}

// lazyFile opens a file on the first read. A tag manifest that was added meanwhile can make that
// read necessary.
type lazyFile struct {
	fsys fs.FS
	name string
	file fs.File
}

// Read implements io.Reader.
func (l *lazyFile) Read(p []byte) (int, error) {
	if l.file == nil {
		f, err := l.fsys.Open(l.name)
		if err != nil {
			return 0, err
		}
		l.file = f
	}
	return l.file.Read(p)
}

func (l *lazyFile) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

func fileKind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a special file"
}
