package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/open"
)

// ErrPlace says what a place of backups is. It does not quote the address, which may have a password.
var ErrPlace = errors.New("a place of backups is an existing folder, by its path or as file:///FOLDER, or s3://BUCKET/PREFIX")

// ErrFolder says that a backup was asked for by the name of a folder.
var ErrFolder = errors.New("this is a folder, and not a backup")

// File is a backup in a place.
type File struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`   // when it was made, by its name
	Size int64     `json:"size"` // bytes
	Of   string    `json:"of"`   // the beginning of the Registry's name; keys and four digits: of a PostgreSQL database
}

// place is where backups are.
type place interface {
	// list returns the backups, oldest first.
	list(ctx context.Context) ([]File, error)
	// create writes a new file, which appears when it is complete and durable, or not at all. It
	// returns the file's name in the place.
	create(ctx context.Context, name string, write func(io.Writer) error) (string, error)
	// open opens a file; fs.ErrNotExist if there is none.
	open(ctx context.Context, name string) (io.ReadCloser, int64, error)
	remove(ctx context.Context, name string) error
	// tidy removes what killed writers of a Registry's backups left, if it is older than a time.
	tidy(ctx context.Context, of string, age time.Duration) error
	close() error
}

// openPlace opens a place by its address.
func openPlace(ctx context.Context, address string) (place, error) {
	if strings.HasPrefix(address, "s3:") {
		s, err := open.URL(ctx, address)
		if err != nil {
			return nil, err
		}
		return bucket{s}, nil
	}
	where := address
	if strings.HasPrefix(address, "file:") {
		u, err := url.Parse(address)
		if err != nil || u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !strings.HasPrefix(u.Path, "/") {
			return nil, ErrPlace
		}
		where = u.Path
	} else if strings.Contains(address, "://") {
		return nil, ErrPlace
	}
	info, err := os.Stat(where)
	if err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder: %w", where, ErrPlace)
	}
	return folder(where), nil
}

// split separates the address of a backup into those of its place and its name.
func split(address string) (where, name string) {
	query := ""
	if strings.HasPrefix(address, "s3:") {
		address, query, _ = strings.Cut(address, "?")
		if query != "" {
			query = "?" + query
		}
	} else if rest, ok := strings.CutPrefix(address, "file://"); ok {
		if plain, err := url.PathUnescape(rest); err == nil {
			address = plain
		}
	}
	i := strings.LastIndexByte(address, '/')
	switch {
	case i < 0:
		return ".", address
	case i == 0:
		return "/", address[1:]
	}
	return address[:i] + query, address[i+1:]
}

// A name has the beginning of the Registry's name and the time, so that names sort by time.
var nameForm = regexp.MustCompile(`^holdfast-([0-9a-z]{1,8})-([0-9]{8}T[0-9]{6}Z)\.tar\.zst$`)

const nameTime = "20060102T150405Z"

// nameOf returns the name of a Registry's backup of a time.
func nameOf(of string, at time.Time) string {
	return "holdfast-" + of + "-" + at.UTC().Format(nameTime) + ".tar.zst"
}

// shortName returns the beginning of a Registry's name that stands in the names of its backups.
func shortName(source string) string {
	name := strings.TrimPrefix(source, "urn:uuid:")
	return name[:min(len(name), 8)]
}

// shortAddress returns what stands in the names of the backups of a Registry on PostgreSQL, which have
// its keys and not its name. Of two in one place neither may remove the other's, so it tells their
// databases apart, and does not change with a password.
func shortAddress(database string) string {
	if u, err := url.Parse(database); err == nil {
		database = u.Host + u.Path
	}
	sum := sha256.Sum256([]byte(database))
	return fmt.Sprintf("keys%x", sum[:2])
}

// fileOf reads a name; ok is false if it is not of a backup.
func fileOf(name string, size int64) (f File, ok bool) {
	parts := nameForm.FindStringSubmatch(name)
	if parts == nil {
		return f, false
	}
	at, err := time.Parse(nameTime, parts[2])
	return File{Name: name, At: at, Size: size, Of: parts[1]}, err == nil
}

// byTime sorts backups, oldest first.
func byTime(files []File) []File {
	slices.SortFunc(files, func(a, b File) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return files
}

// folder is a place in the file system. Its files are for their owner only, unlike those of a
// storage, since they have keys.
type folder string

// unfinished ends the names of files that are being written.
const unfinished = ".unfinished"

func (f folder) list(context.Context) (all []File, err error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed just now
		} else if err != nil {
			return nil, err
		}
		if file, ok := fileOf(e.Name(), info.Size()); ok && info.Mode().IsRegular() {
			all = append(all, file)
		}
	}
	return byTime(all), nil
}

func (f folder) create(_ context.Context, name string, write func(io.Writer) error) (_ string, err error) {
	temporary := filepath.Join(string(f), name+unfinished)
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_, _ = file.Close(), os.Remove(temporary) // the error that led here says more
		}
	}()
	if err := write(file); err != nil {
		return "", err
	}
	if err := file.Sync(); err != nil {
		return "", err
	}
	// A link, unlike a rename, never replaces a backup that is there.
	if err := os.Link(temporary, filepath.Join(string(f), name)); err != nil {
		return "", err
	}
	return name, errors.Join(file.Close(), os.Remove(temporary), syncFolder(string(f)))
}

func (f folder) open(_ context.Context, name string) (io.ReadCloser, int64, error) {
	file, err := os.Open(filepath.Join(string(f), name))
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s: %w", file.Name(), ErrFolder)
	} else if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", file.Name())
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

func (f folder) remove(_ context.Context, name string) error {
	return errors.Join(os.Remove(filepath.Join(string(f), name)), syncFolder(string(f)))
}

func (f folder) tidy(_ context.Context, of string, age time.Duration) error {
	entries, err := os.ReadDir(string(f))
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), unfinished)
		if file, is := fileOf(name, 0); !ok || !is || file.Of != of || time.Since(file.At) < age {
			continue
		}
		if gone := os.Remove(filepath.Join(string(f), e.Name())); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

func (f folder) close() error { return nil }

// syncFolder makes the names in a folder durable.
func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// bucket is a place in S3. The backups of each Registry are below a prefix of its own.
type bucket struct{ open.Store }

func (b bucket) list(ctx context.Context) (all []File, err error) {
	for info, err := range b.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		if file, ok := fileOf(path.Base(info.Key), info.Size); ok {
			file.Name = info.Key
			all = append(all, file)
		}
	}
	return byTime(all), nil
}

func (b bucket) create(ctx context.Context, name string, write func(io.Writer) error) (string, error) {
	if file, ok := fileOf(name, 0); ok {
		name = file.Of + "/" + name
	}
	w, err := b.Create(ctx, name)
	if err != nil {
		return "", err
	}
	if err := write(w); err != nil {
		return "", errors.Join(err, w.Abort())
	}
	if _, err := w.Commit(ctx); err != nil {
		return "", errors.Join(err, w.Close())
	}
	return name, nil
}

func (b bucket) open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	info, err := b.Stat(ctx, name)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	} else if err != nil {
		return nil, 0, err
	}
	r, err := b.Open(ctx, name, 0, -1)
	return r, info.Size, err
}

func (b bucket) remove(ctx context.Context, name string) error { return b.Delete(ctx, name) }

// tidy leaves the uploads of others alone: a backup of keys and settings is one request.
func (b bucket) tidy(ctx context.Context, of string, age time.Duration) error {
	if age > 0 {
		return nil
	}
	return b.DeleteUnfinished(ctx, of)
}

func (b bucket) close() error { return b.Close() }
