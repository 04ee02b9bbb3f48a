package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// extras returns members in memory, by name.
func extras(all map[string][]byte) (out []content) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, held(name, all[name]))
	}
	return out
}

// Verify reads a whole backup and checks it: its digests, and the database in it, which it copies into
// a folder for that and removes again.
func Verify(ctx context.Context, address, temporary string) (m Manifest, err error) {
	scratch, err := os.MkdirTemp(temporary, "holdfast-verify-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	return extract(ctx, address, scratch)
}

// RestoreOptions has the options of Restore. All must be set, except Step.
type RestoreOptions struct {
	From string // the address of the backup
	Dir  string // the folder to make; it must not exist, or be empty
	Lock func(name string) (*os.File, error)
	Step func(name string) error // as in Options
}

// ErrNotEmpty says that the folder to restore to has something in it.
var ErrNotEmpty = errors.New("the folder is not empty; name one that does not exist yet")

// restoring ends the name of the folder beside Dir in which it is made.
const restoring = ".restoring"

// lockName is the file by which `holdfast up` takes a folder.
const lockName = "lock"

// Restore makes a folder from a backup, which it checks wholly. Dir appears complete and durable, or
// not at all; a killed Restore leaves a folder beside it, which the next one removes. The database in
// it bears a mark (registry.Restored).
func Restore(ctx context.Context, o RestoreOptions) (m Manifest, err error) {
	step := o.Step
	if step == nil {
		step = func(string) error { return nil }
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return m, err
	}
	if err := isFree(dir); err != nil {
		return m, err
	}
	parent := filepath.Dir(dir)
	made := filepath.Join(parent, "."+filepath.Base(dir)+restoring)
	if err := os.MkdirAll(made, 0o700); err != nil {
		return m, fmt.Errorf("make the folder beside %s: %w", dir, err)
	}
	// The lock moves with the folder: nobody starts on it before this is done.
	lock, err := o.Lock(filepath.Join(made, lockName))
	if err != nil {
		return m, fmt.Errorf("%s is being restored already: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	defer func() {
		if err != nil {
			_ = os.RemoveAll(made) // the next call does it
		}
	}()
	if err := empty(made); err != nil {
		return m, err
	}
	if err := step("extract"); err != nil {
		return m, err
	}
	if m, err = extract(ctx, o.From, made); err != nil {
		return m, err
	}
	if err := step("mark"); err != nil {
		return m, err
	}
	if m.Database != nil {
		_, name := split(o.From)
		mark := registry.Restored{BackupAt: m.At, RestoredAt: time.Now().UTC(), From: name}
		if err := sqldb.MarkRestored(ctx, "sqlite:"+filepath.Join(made, DatabaseName), mark); err != nil {
			return m, fmt.Errorf("mark the restored database: %w", err)
		}
	}
	if err := syncAll(made); err != nil {
		return m, err
	}
	if err := step("publish"); err != nil {
		return m, err
	}
	// A rename replaces an empty folder, and fails for one that is not empty.
	if err := os.Rename(made, dir); errors.Is(err, fs.ErrExist) {
		return m, fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	} else if err != nil {
		return m, fmt.Errorf("give the restored folder its name: %w", err)
	}
	return m, syncFolder(parent)
}

// isFree returns an error unless nothing is at a path but perhaps an empty folder.
func isFree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	return nil
}

// empty removes everything in a folder but the lock.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// extract writes the members of a backup into a folder, and checks all of them and the database.
func extract(ctx context.Context, address, dir string) (m Manifest, err error) {
	where, name := split(address)
	from, err := openPlace(ctx, where)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	m, _, err = readFrom(ctx, from, name, func(member Member, r io.Reader) error {
		if filepath.Base(member.Name) != member.Name || strings.HasPrefix(member.Name, ".") || member.Name == lockName {
			return fmt.Errorf("%w: it has a member called %q", ErrDamaged, member.Name)
		}
		return save(filepath.Join(dir, member.Name), r)
	})
	if err != nil || m.Database == nil {
		return m, err
	}
	c, err := sqldb.Inspect(ctx, filepath.Join(dir, DatabaseName))
	if err != nil {
		return m, fmt.Errorf("check the database in the backup: %w", err)
	}
	if c != *m.Database {
		return m, fmt.Errorf("%w: its database has %+v, and had %+v when it was copied", ErrDamaged, c, *m.Database)
	}
	return m, nil
}

// save writes a private file.
func save(name string, r io.Reader) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, damagedReader{r}); err != nil {
		return errors.Join(err, file.Close())
	}
	return errors.Join(file.Sync(), file.Close())
}

// damagedReader marks the errors of decoding, apart from those of the file that is written.
type damagedReader struct{ io.Reader }

// Read implements io.Reader.
func (r damagedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = damaged(err)
	}
	return n, err
}

// syncAll makes the files of a folder and their names durable.
func syncAll(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := syncFolder(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return syncFolder(dir)
}
