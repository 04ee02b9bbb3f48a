package dir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

var _ storage.AfterLister = (*Store)(nil)

// List implements storage.Store. It reads one folder at a time, and has the names of the folders on
// the path in memory.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return s.ListAfter(ctx, prefix, "")
}

// ListAfter implements storage.AfterLister. It does not read folders whose keys all come before.
func (s *Store) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		folder := "."
		if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
			folder = prefix[:i]
			if storage.CheckKey(folder) != nil || within(folder, s.scratch) {
				return // no key has this prefix
			}
		}
		if strings.IndexByte(prefix, 0) >= 0 {
			return
		}
		top, err := s.openFolder(folder)
		if absent(err) {
			return
		}
		if err != nil {
			yield(storage.Info{}, wrap("list", prefix, err))
			return
		}
		defer top.Close() //nolint:errcheck // a read-only handle
		base := ""
		if folder != "." {
			base = folder + "/"
		}
		w := &lister{store: s, prefix: prefix, after: after, yield: yield}
		w.walk(ctx, top, base)
	}
}

// lister walks a tree in key order.
type lister struct {
	store  *Store
	prefix string
	after  string // skip keys up to this one
	yield  func(storage.Info, error) bool
}

// fail yields an error, which ends the listing.
func (l *lister) fail(err error) bool {
	l.yield(storage.Info{}, wrap("list", l.prefix, err))
	return false
}

// walk yields the objects in folder, whose keys begin with base ("" or ending in a slash). It
// returns false if the listing is over.
func (l *lister) walk(ctx context.Context, folder *os.File, base string) bool {
	entries, err := readFolder(folder)
	if err != nil {
		return l.fail(err)
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			l.yield(storage.Info{}, fmt.Errorf("list %q: %w", l.prefix, err))
			return false
		}
		key := base + entry.name
		if !strings.HasPrefix(key, l.prefix) && !strings.HasPrefix(l.prefix, key) || key == l.store.scratch {
			continue
		}
		if !entry.folder {
			if !strings.HasPrefix(key, l.prefix) || key <= l.after {
				continue
			}
			found, err := statIn(folder, entry.name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return l.fail(err)
			}
			if !l.yield(found.info(key), nil) {
				return false
			}
			continue
		}
		if !l.enter(ctx, key) {
			return false
		}
	}
	return true
}

// enter walks the folder name.
func (l *lister) enter(ctx context.Context, name string) bool {
	base := name + "/"
	if !strings.HasPrefix(base, l.prefix) && !strings.HasPrefix(l.prefix, base) {
		return true
	}
	if base < l.after && !strings.HasPrefix(l.after, base) {
		return true // so is every key in it
	}
	folder, err := l.store.openFolder(name)
	if absent(err) {
		return true
	}
	if err != nil {
		return l.fail(err)
	}
	defer folder.Close() //nolint:errcheck // a read-only handle
	return l.walk(ctx, folder, base)
}

// entry is a regular file or a folder.
type entry struct {
	name   string
	folder bool
}

// readFolder returns the contents of a folder in the order of the keys. A folder in it sorts with
// the slash that follows its name.
func readFolder(folder *os.File) ([]entry, error) {
	dirents, err := folder.ReadDir(-1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries := make([]entry, 0, len(dirents))
	for _, d := range dirents {
		if d.IsDir() || d.Type().IsRegular() {
			entries = append(entries, entry{name: d.Name(), folder: d.IsDir()})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.sortKey(), b.sortKey()) })
	return entries, nil
}

// sortKey returns the name, with a slash for a folder.
func (e entry) sortKey() string {
	if e.folder {
		return e.name + "/"
	}
	return e.name
}
