package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"
)

// Options says what a backup is made of, and where it is put. All fields must be set, except Extra.
type Options struct {
	Database string            // the Registry's, as in HOLDFAST_DATABASE_URL
	Extra    map[string][]byte // the keys and the settings, by names of members
	To       string            // the address of the place
	Version  string            // of this program
	Keep     Keep
	// Lock keeps a file locked until it is closed or the process ends, or returns an error if another
	// process has it.
	Lock func(name string) (*os.File, error)
	// Step, unless nil, is called before each step with its name; its error ends Make there.
	Step func(name string) error
}

// Made is what Make did.
type Made struct {
	File
	Manifest Manifest `json:"manifest"`
	Removed  []string `json:"removed"` // older backups that were not to be kept
}

// unfinishedFor is how old what a writer left must be, if another one may be at work. Keys and settings are
// written in a moment.
const unfinishedFor = time.Hour

// CopyFolder ends the name of the folder beside a SQLite file in which Make copies it, on the same
// volume. A killed Make leaves the folder; the next one empties it.
const CopyFolder = ".backup"

// Make makes a backup, reads it back from its place, and checks it wholly. Then it removes older ones
// that are not to be kept, and never before. SQLite is copied while others write to it; of PostgreSQL
// only keys and settings are saved. A backup that was written and not found right is an error, and is
// removed again, so that nobody counts on it. Two calls for one SQLite database exclude each other; two
// for PostgreSQL in the same second are fs.ErrExist for one of them.
func Make(ctx context.Context, o Options) (made Made, outcome error) {
	step := o.Step
	if step == nil {
		step = func(string) error { return nil }
	}
	to, err := openPlace(ctx, o.To)
	if err != nil {
		return made, fmt.Errorf("open the place of backups: %w", err)
	}
	defer func() { outcome = errors.Join(outcome, to.close()) }()
	made.Manifest = Manifest{Format: Format, Version: o.Version, At: time.Now().UTC()}
	of := shortAddress(o.Database)
	var members []content
	if path, ok := strings.CutPrefix(o.Database, "sqlite:"); ok {
		if _, err := os.Stat(path); err != nil {
			return made, fmt.Errorf("find the database: %w", err) // before anything is made beside it
		}
		scratch, release, err := scratchFolder(path+CopyFolder, o.Lock)
		if err != nil {
			return made, err
		}
		defer func() { outcome = errors.Join(outcome, release()) }()
		database, c, err := copyDatabase(ctx, o.Database, filepath.Join(scratch, DatabaseName), step)
		if err != nil {
			return made, err
		}
		made.Manifest.Database, of = &c, shortName(c.Source)
		members = append(members, database)
	}
	members = append(members, extras(o.Extra)...)
	dead := unfinishedFor
	if made.Manifest.Database != nil {
		dead = 0 // nobody else makes one
	}
	if err := to.tidy(ctx, of, dead); err != nil {
		return made, fmt.Errorf("remove what an earlier backup left: %w", err)
	}
	if err := step("write"); err != nil {
		return made, err
	}
	name, err := to.create(ctx, nameOf(of, made.Manifest.At), func(w io.Writer) error {
		if err := write(w, made.Manifest, members); err != nil {
			return err
		}
		return step("publish")
	})
	if err != nil {
		return made, fmt.Errorf("write the backup: %w", err)
	}
	if err := step("verify"); err != nil {
		return made, err
	}
	if made.Manifest, made.Size, err = readBack(ctx, to, name, members); err != nil {
		return made, errors.Join(fmt.Errorf("read back the backup %s: %w", name, err), to.remove(context.WithoutCancel(ctx), name))
	}
	made.File, _ = fileOf(filepath.Base(name), made.Size)
	made.Name = name // with the folder that a bucket has
	if err := step("rotate"); err != nil {
		return made, err
	}
	made.Removed, err = rotate(ctx, to, o.Keep, made.File)
	return made, err
}

// copyDatabase copies a database and checks the copy.
func copyDatabase(ctx context.Context, address, to string, step func(string) error) (m content, c sqldb.Content, err error) {
	if err := step("copy"); err != nil {
		return m, c, err
	}
	if err := sqldb.Copy(ctx, address, to); err != nil {
		return m, c, err
	}
	if err := step("inspect"); err != nil {
		return m, c, err
	}
	if c, err = sqldb.Inspect(ctx, to); err != nil {
		return m, c, fmt.Errorf("check the copy of the database: %w", err)
	}
	m, err = onDisk(DatabaseName, to)
	return m, c, err
}

// scratchFolder makes an empty folder that one process has until it releases it.
func scratchFolder(path string, lock func(string) (*os.File, error)) (inside string, release func() error, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", nil, fmt.Errorf("make the folder for the copy of the database: %w", err)
	}
	held, err := lock(filepath.Join(path, "lock"))
	if err != nil {
		return "", nil, fmt.Errorf("a backup is being made already, in %s: %w", path, err)
	}
	inside = filepath.Join(path, "copy")
	err = os.RemoveAll(inside)
	if err == nil {
		err = os.Mkdir(inside, 0o700)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("empty the folder for the copy of the database: %w", err), held.Close())
	}
	return inside, func() error { return errors.Join(os.RemoveAll(inside), held.Close()) }, nil
}

// onDisk returns a member in a file that stays as it is.
func onDisk(name, path string) (content, error) {
	file, err := os.Open(path)
	if err != nil {
		return content{}, err
	}
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return content{}, err
	}
	return content{
		Member: Member{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))},
		open:   func() (io.ReadCloser, error) { return os.Open(path) },
	}, nil
}

// readBack reads a backup that was just written, and compares it with what was to be in it. The copy
// of the database was checked before: with the same bytes, the one in the backup is as good.
func readBack(ctx context.Context, from place, name string, members []content) (Manifest, int64, error) {
	m, size, err := readFrom(ctx, from, name, func(_ Member, r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		if err != nil {
			return damaged(err)
		}
		return nil
	})
	if err != nil {
		return m, size, err
	}
	if len(m.Members) != len(members) {
		return m, size, fmt.Errorf("%w: it has %d members instead of %d", ErrDamaged, len(m.Members), len(members))
	}
	for i, c := range members {
		if m.Members[i] != c.Member {
			return m, size, fmt.Errorf("%w: %s is not what was written", ErrDamaged, c.Name)
		}
	}
	return m, size, nil
}

// readFrom reads a backup in a place.
func readFrom(ctx context.Context, from place, name string, one func(Member, io.Reader) error) (m Manifest, size int64, err error) {
	r, size, err := from.open(ctx, name)
	if err != nil {
		return m, size, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	m, err = read(faultReader{r}, size, func(member Member, content io.Reader) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		return one(member, content)
	})
	return m, size, err
}

// List returns the backups in a place, oldest first.
func List(ctx context.Context, where string) (all []File, err error) {
	p, err := openPlace(ctx, where)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	return p.list(ctx)
}

// Newest returns the newest backup in a place of the Registry with this name; ok is false if there is
// none. Of a Registry on PostgreSQL, whose backups have only keys and settings, it is the newest of
// those.
func Newest(ctx context.Context, where, database, source string) (newest File, ok bool, err error) {
	of := shortAddress(database)
	if strings.HasPrefix(database, "sqlite:") {
		of = shortName(source)
	}
	all, err := List(ctx, where)
	for _, f := range all {
		if f.Of == of {
			newest, ok = f, true
		}
	}
	return newest, ok, err
}
