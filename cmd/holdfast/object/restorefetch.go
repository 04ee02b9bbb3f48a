package object

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// freeFile returns an error if name exists.
func freeFile(name string) error {
	if _, err := os.Lstat(name); err == nil {
		return exit.Fix(fmt.Errorf("%s: %w", name, errOccupied), "give a new file by --out, or move the existing one away")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fetchRestored downloads a restored object to a file. The file gets its name when it is complete,
// correct and synced. Until then it is beside that name, in a part named by the digest of the
// whole, so that a later run resumes the right one.
func fetchRestored(ctx context.Context, a *cli.App, c *client.Client, r registry.Restoration, out string) (err error) {
	out = filepath.Clean(out)
	root, err := os.OpenRoot(filepath.Dir(out))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	name := filepath.Base(out)
	part := fmt.Sprintf(".%s.%s.holdfast-part", name, r.SHA256[:16])
	file, err := root.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return errExporting
	} // a file system without locks has none
	f := &fetching{c: c, restored: r, file: file}
	err = f.all(ctx)
	if err == nil {
		err = publish(root, part, name)
	}
	if err != nil {
		if code := exit.Of(err); code == exit.Interrupted || code == exit.Temporary || code == exit.NoSpace {
			a.Note("the fetched part is kept. To resume: %s", a.Again)
		}
		return fmt.Errorf("fetch the restored tar of %s: %w", r.ObjectID, err)
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// fetching is a download under way.
type fetching struct {
	c        *client.Client
	restored registry.Restoration
	file     *os.File
	sum      hash.Hash // of the bytes so far
	have     int64
}

// all fetches the whole file. If the bytes of an earlier run prove wrong, it fetches everything
// again, once.
func (f *fetching) all(ctx context.Context) error {
	if err := f.look(); err != nil {
		return err
	}
	found := f.have
	err := f.rest(ctx)
	if exit.As[*client.DigestError](err) && found > 0 {
		if err := f.file.Truncate(0); err != nil {
			return err
		}
		if err := f.look(); err != nil {
			return err
		}
		err = f.rest(ctx)
	}
	if err != nil {
		return err
	}
	return f.file.Sync()
}

// look computes the digest of the existing bytes. A part that is too long is discarded.
func (f *fetching) look() error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > f.restored.SizeBytes {
		if err := f.file.Truncate(0); err != nil {
			return err
		}
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	f.sum = sha256.New()
	f.have, err = io.Copy(f.sum, f.file)
	return err
}

// rest fetches the missing bytes. It reconnects as long as each connection brings some.
func (f *fetching) rest(ctx context.Context) error {
	for f.have < f.restored.SizeBytes {
		before := f.have
		err := f.once(ctx)
		if err != nil && (ctx.Err() != nil || f.have == before || exit.Of(err) != exit.Temporary) {
			return err
		}
	}
	if got := hex.EncodeToString(f.sum.Sum(nil)); got != f.restored.SHA256 {
		return &client.DigestError{What: f.restored.Name, Algorithm: "sha256", Want: f.restored.SHA256, Got: got}
	}
	return nil
}

func (f *fetching) once(ctx context.Context) (err error) {
	body, err := f.c.Restored(ctx, f.restored, f.have)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	n, err := io.Copy(io.MultiWriter(f.file, f.sum), judgedLater{body})
	f.have += n
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
