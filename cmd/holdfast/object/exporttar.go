package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/export"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// toTar writes the files as one tar. The tar gets its name when it is complete, correct and synced.
// Until then it is beside that name as .NAME.holdfast-part; a later run keeps its correct bytes and
// continues there. If the service refuses the export that this run began, nothing of it stays.
func (x *exporter) toTar(ctx context.Context, c *client.Client, o registry.Object) (err error) {
	name := filepath.Base(filepath.Clean(x.out))
	root, err := os.OpenRoot(filepath.Dir(filepath.Clean(x.out)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	note, part := "."+name+noteName, "."+name+".holdfast-part"
	free := func(name string) error {
		if _, err := root.Lstat(name); err == nil {
			return exit.Fix(fmt.Errorf("%s: %w", filepath.Join(root.Name(), name), errOccupied), "give a new file by --out, or move the existing one away")
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := free(name); err != nil {
		if _, gone := root.Lstat(note); gone != nil || !errors.Is(err, errOccupied) {
			return err
		}
		// A run that was killed after publishing leaves the name and the note.
	}
	held, err := x.claim(o, root, note, func() error { return errors.Join(free(name), free(part)) })
	if err != nil {
		return err
	}
	defer func() {
		if refused(err) && !held.begun {
			if gone := root.Remove(part); !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
			err = errors.Join(err, held.done())
		}
		err = errors.Join(err, held.Close())
	}()
	p, err := x.parcel(ctx, c, o, held.exportNote)
	if err != nil {
		return err
	}
	if err := x.count(ctx, p); err != nil {
		return err
	}
	if free(name) != nil {
		if err := x.published(ctx, root, p, name); err != nil {
			return err
		}
		x.found = x.files
	} else if err := writeTar(ctx, root, p, part); err != nil {
		return err
	} else if err := publish(root, part, name); err != nil {
		return err
	}
	if err := root.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return err
	}
	return held.done()
}

// published verifies a tar that has its name already.
func (x *exporter) published(ctx context.Context, root *os.Root, p *export.Package, name string) error {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // read only
	info, err := file.Stat()
	if err != nil {
		return err
	}
	size, err := p.TarSize(ctx)
	if err != nil {
		return err
	}
	good := int64(-1)
	if info.Size() == size {
		if good, err = p.CheckTar(ctx, file, size); err != nil {
			return err
		}
	}
	if good < size-export.TarEnd {
		return exit.Fix(fmt.Errorf("%s: %w", x.out, errChangedIt), "move it away and run the export again, or give another place by --out")
	}
	return nil
}

// writeTar writes the missing bytes of the tar into the part.
func writeTar(ctx context.Context, root *os.Root, p *export.Package, part string) (err error) {
	file, err := root.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	good, err := p.CheckTar(ctx, file, info.Size())
	if err != nil {
		return err
	}
	err = tarFrom(ctx, file, p, good)
	for again := new(export.RewriteError); errors.As(err, &again); {
		err = tarFrom(ctx, file, p, again.Start)
	}
	if err != nil {
		return err
	}
	return file.Sync()
}

func tarFrom(ctx context.Context, file *os.File, p *export.Package, from int64) error {
	if err := file.Truncate(from); err != nil {
		return err
	}
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return err
	}
	return p.WriteTar(ctx, file, from, file)
}
