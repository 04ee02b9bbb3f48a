package object

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/export"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
	"github.com/holdfast/holdfast/web/client"
)

// Names of an export's own files in the folder or beside the tar. They are removed when it is done.
const (
	ownPrefix  = ".holdfast-"
	noteName   = ".holdfast-export"
	partPrefix = ".holdfast-part-"
)

// toFolder writes the files into the folder. A file gets its name when it is complete, correct and
// synced. The bagit.txt of a bag comes last, so an incomplete folder is no bag. If the service refuses the
// export before a file has its name, nothing of it stays.
func (x *exporter) toFolder(ctx context.Context, c *client.Client, o registry.Object) (err error) {
	if _, missing := os.Lstat(x.out); errors.Is(missing, fs.ErrNotExist) {
		defer func() {
			if refused(err) {
				_ = os.Remove(x.out) // which keeps it unless it is empty
			}
		}()
	}
	if err := os.MkdirAll(x.out, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(x.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	held, err := x.claim(o, root, noteName, func() error { return x.isEmpty(root) })
	if err != nil {
		return err
	}
	defer func() {
		if refused(err) && !held.begun && x.files == 0 {
			err = errors.Join(err, takeBack(root), held.done())
		}
		err = errors.Join(err, held.Close())
	}()
	p, err := x.parcel(ctx, c, o, held.exportNote)
	if err != nil {
		return err
	}
	var last *export.Entry
	total := int64(0)
	for e, err := range p.Entries(ctx) {
		if err != nil {
			return err
		}
		total++
		if e.Name == bagit.DeclarationFile && x.bag {
			last = &e
			continue
		}
		if err := x.put(ctx, root, held.begun, e); err != nil {
			return err
		}
	}
	if last != nil {
		if err := x.put(ctx, root, held.begun, *last); err != nil {
			return err
		}
	}
	if err := x.settle(root, total); err != nil {
		return err
	}
	return held.done()
}

// takeBack removes parts of files and empty folders.
func takeBack(root *os.Root) error {
	var folders []string
	err := fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
		case e.IsDir():
			folders = append(folders, name)
		case strings.HasPrefix(name, partPrefix):
			return root.Remove(name)
		}
		return nil
	})
	for _, name := range slices.Backward(folders) {
		_ = root.Remove(name) // which keeps it unless it is empty
	}
	return err
}

// isEmpty returns an error if the folder has anything but an empty note.
func (x *exporter) isEmpty(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != noteName {
			return exit.Fix(fmt.Errorf("%s: %w: the folder is not empty", x.out, errOccupied), "give a new folder by --out")
		}
	}
	return nil
}

// put writes one file, or verifies the one that an earlier run wrote.
func (x *exporter) put(ctx context.Context, root *os.Root, begun bool, e export.Entry) error {
	if e.Folder() {
		return root.MkdirAll(path.Clean(e.Name), 0o755)
	}
	if strings.HasPrefix(e.Name, ownPrefix) {
		return exit.Fix(fmt.Errorf("%s: %w: the export uses such names for its own files", e.Name, errNameTaken), "export with --tar or --bag")
	}
	name := e.Name
	_, err := root.Lstat(name)
	switch {
	case err == nil && !begun:
		return fmt.Errorf("%s: %w", name, errNameTaken) // for instance, the file system does not distinguish a from A
	case err == nil:
		if err := stillRight(ctx, root, e); err != nil {
			return err
		}
		x.counted(e)
		x.found++
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return unnameable(name, err)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return unnameable(name, err)
	}
	sum := sha256.Sum256([]byte(name))
	part := partPrefix + hex.EncodeToString(sum[:16])
	if err := bring(ctx, root, part, e); err != nil {
		return err
	}
	if err := publish(root, part, name); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", name, errNameTaken)
	} else if err != nil {
		return unnameable(name, err)
	}
	x.counted(e)
	return nil
}

// unnameable adds advice to an error that the name causes.
func unnameable(name string, err error) error {
	if errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EILSEQ) || errors.Is(err, syscall.EINVAL) {
		return exit.Fix(fmt.Errorf("%s: this file system cannot hold the name: %w", name, err), "export to another one, or with --tar")
	}
	return err
}

// stillRight compares an existing file with the record.
func stillRight(ctx context.Context, root *os.Root, e export.Entry) (err error) {
	file, err := root.Open(e.Name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // read only
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = e.Check(ctx, file)
	} else if err == nil {
		err = replica.ErrDamaged
	}
	if errors.Is(err, replica.ErrDamaged) {
		return exit.Fix(fmt.Errorf("%s: %w", e.Name, errChangedIt), "move it away and run the export again, or give another place by --out")
	}
	return err
}

// bring fetches the missing bytes of a part. It reads the existing ones again, because a power cut
// may have damaged them.
func bring(ctx context.Context, root *os.Root, part string, e export.Entry) (err error) {
	file, err := root.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	offset := info.Size()
	if offset > e.Size {
		offset = 0
	}
	err = resumeAt(ctx, file, e, offset)
	for exit.As[*export.RewriteError](err) {
		err = resumeAt(ctx, file, e, 0)
	}
	if errors.Is(err, replica.ErrDamaged) {
		return errors.Join(err, root.Remove(part))
	}
	if err != nil {
		return err
	}
	if !e.Modified.IsZero() {
		if err := root.Chtimes(part, e.Modified, e.Modified); err != nil {
			return fmt.Errorf("%s: set its time: %w", e.Name, err)
		}
	}
	return file.Sync() // before it gets its name: a power cut must not leave a named file with other bytes
}

func resumeAt(ctx context.Context, file *os.File, e export.Entry, offset int64) error {
	if err := file.Truncate(offset); err != nil {
		return err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	return e.Copy(ctx, file, io.NewSectionReader(file, 0, offset), offset)
}

// settle syncs all folders, removes leftover parts and counts the files: a file system may merge
// two names into one.
func (x *exporter) settle(root *os.Root, want int64) error {
	got := int64(0)
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			dir, err := root.Open(name)
			if err != nil {
				return err
			}
			return errors.Join(dir.Sync(), dir.Close())
		case strings.HasPrefix(name, partPrefix):
			return root.Remove(name)
		case name != noteName:
			got++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if x.bag && x.files == 0 {
		want-- // data, which every bag has
	}
	if got != want {
		return exit.Fix(fmt.Errorf("%s: it has %s, the object %s: %w, or another program wrote there", x.out, terminal.Plural(got, "file", "files"), terminal.Plural(want, "file", "files"), errNameTaken),
			"give another place by --out, or export with --tar")
	}
	return nil
}
