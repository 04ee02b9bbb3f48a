// Package dir is a storage.Store in a directory of a file system: the object a/b is the file
// DIR/a/b, byte for byte.
//
// A file gets its name by link(2) after its content was synced and made read-only. Then its folder
// is synced. Therefore every file under its final name is complete and durable, and no name is
// taken twice. If the kernel supports O_TMPFILE, an unfinished file has no name, and a killed
// process leaves nothing behind. Only checkpointed files have one, in a scratch folder that mirrors
// the keys and that no key can reach.
//
// All access goes through os.Root, or through openat2(2) with RESOLVE_BENEATH, so that no name and no
// symbolic link leads out of DIR.
package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/storage"
)

// defaultScratch is below "extensions", the one folder of an OCFL storage root that may contain
// something other than objects (OCFL 1.1, 4.1). A root thus stays valid whenever a process is
// killed.
const defaultScratch = "extensions/holdfast-scratch"

// objectMode is read-only, which protects a committed object from accidental writes, also by its
// owner.
const objectMode fs.FileMode = 0o444

// folderMode is the mode of new folders, before the umask.
const folderMode fs.FileMode = 0o755

// Store is a storage.Store in a directory. Several of them, in one or several processes, may use
// the same directory.
type Store struct {
	root    *os.Root
	top     *os.File // the directory itself, for statfs
	path    string   // as given to Open, for messages
	scratch string   // slash-separated, below root
	unnamed bool     // O_TMPFILE and linking by descriptor work here
	walks   bool     // open names by os.Root only
	whole   bool     // one syncfs may stand for the fsyncs of many files
	syncs   syncer
	crowded atomic.Pointer[time.Time] // until when a syncfs is not worth its time
	room    Room

	mu      sync.Mutex
	durable map[string]identity // folders known to be durable, with all their parents
}

// Option changes the behaviour of Open.
type Option func(*Store)

// WithScratch sets the folder of checkpointed and half-replaced files (slash-separated, below DIR)
// instead of extensions/holdfast-scratch. All processes that share DIR must use the same one.
func WithScratch(name string) Option {
	return func(s *Store) { s.scratch = name }
}

// WithNamedFiles gives every uncommitted file a name in the scratch folder at once, as if the file
// system did not support unnamed files.
func WithNamedFiles() Option {
	return func(s *Store) { s.unnamed = false }
}

// Create makes the directory path and its parents if they are missing, and opens it as Open does.
func Create(path string, opts ...Option) (*Store, error) {
	if err := os.MkdirAll(path, folderMode); err != nil {
		return nil, fmt.Errorf("create storage directory %s: %w", path, err)
	}
	return Open(path, opts...)
}

// Open returns the store in the directory path. The directory must exist, since an unmounted volume
// must not be mistaken for an empty one. It must also be writable. Open tests both, so that a wrong
// setting is noticed at the start. The store must be closed.
func Open(path string, opts ...Option) (*Store, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open storage directory %s: %w", path, err)
	}
	s := &Store{root: root, path: path, scratch: defaultScratch, unnamed: true, durable: make(map[string]identity)}
	s.crowded.Store(&time.Time{})
	countBytes("written", 0) // so that the series exist
	countBytes("read", 0)
	for _, opt := range opts {
		opt(s)
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("open storage directory %s: %w", path, err), s.Close())
	}
	return s, nil
}

// prepare validates the options and tests what the directory supports.
func (s *Store) prepare() error {
	if err := storage.CheckKey(s.scratch); err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	var err error
	if s.top, err = s.root.Open("."); err != nil {
		return err
	}
	s.whole = syncsWhole(s.top)
	if err := s.checkNames(); err != nil {
		return err
	}
	if s.unnamed {
		f, err := openUnnamed(s.top)
		if err == nil {
			err = errors.Join(checkLinkable(f), f.Close())
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("not writable: %w", err)
		}
		s.unnamed = false
	}
	f, name, err := s.createScratch("probe")
	if err != nil {
		return fmt.Errorf("not writable: %w", err)
	}
	return errors.Join(f.Close(), s.root.Remove(name))
}

// Room limits how much of its volume a store may use.
type Room struct {
	// Reserve returns how many bytes of a volume of this size writers must leave free; nil: none.
	// Replace (for small objects that keep a store valid) and deletions ignore it.
	Reserve func(total int64) int64
	// Measured replaces the file system's figures, for tests; nil: none.
	Measured func(storage.Space) storage.Space
}

// KeepTo limits the store to a room. It must be called before the store is used.
func (s *Store) KeepTo(r Room) { s.room = r }

// measure returns the space of the volume, and how much of it writers must leave free.
func (s *Store) measure() (space storage.Space, reserve int64, err error) {
	if space, err = fileSystemSpace(s.top); err != nil {
		return space, 0, err
	}
	if s.room.Measured != nil {
		space = s.room.Measured(space)
	}
	if s.room.Reserve != nil {
		reserve = s.room.Reserve(space.Total)
	}
	return space, reserve, nil
}

// Close closes the directory. Writers and readers that are still open stay usable; the store does
// not.
func (s *Store) Close() error {
	var top error
	if s.top != nil {
		top = s.top.Close()
	}
	return errors.Join(top, s.root.Close())
}

// String returns the directory's path, for messages.
func (s *Store) String() string { return "dir " + s.path }

// check returns an error for keys that are malformed, or that lie in or above the scratch folder.
func (s *Store) check(key string) error {
	if err := storage.CheckKey(key); err != nil {
		return err
	}
	if within(key, s.scratch) || within(s.scratch, key) {
		return &storage.KeyError{Key: key, Reason: "reserved by the store"}
	}
	return nil
}

// within reports whether name is folder or lies below it.
func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

// Space implements storage.Store with the file system's figures, as in df, less the reserve.
func (s *Store) Space(context.Context) (storage.Space, error) {
	space, reserve, err := s.measure()
	space.Total = max(0, space.Total-reserve)
	return space, err
}

var (
	_ storage.Store    = (*Store)(nil)
	_ storage.Copier   = (*Store)(nil)
	_ storage.Replacer = (*Store)(nil)
	_ storage.Batcher  = (*Store)(nil)
)
