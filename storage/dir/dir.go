// Package dir is a storage.Store in a directory of a file system: the object a/b is the file
// DIR/a/b, byte for byte.
//
// A file gets its name by link(2), after its content was synced and made read-only; the folder is
// synced after that. So every file under its own name is whole and durable, and a name is never
// taken twice. Where the kernel can (O_TMPFILE), an unfinished file has no name, and a killed
// process leaves nothing behind. Only checkpointed bytes have one, in a scratch folder that mirrors
// the keys and that no key can reach.
//
// All access goes through os.Root, so no name and no symbolic link leads out of DIR.
package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/holdfast/holdfast/storage"
)

// defaultScratch lies under "extensions" because that is the one folder of an OCFL storage root
// which may hold something other than objects (OCFL 1.1, 4.1): a root that was killed at any moment
// stays a valid one.
const defaultScratch = "extensions/holdfast-scratch"

// objectMode lets nobody write to a committed object, not even its owner by accident.
const objectMode fs.FileMode = 0o444

// folderMode is what folders are made with, less the umask.
const folderMode fs.FileMode = 0o755

// Store is a storage.Store in a directory. Several of them, in one process or many, may serve the
// same directory.
type Store struct {
	root    *os.Root
	top     *os.File // the directory itself, for statfs
	path    string   // as given to Open, for messages
	scratch string   // slash-separated, below root
	unnamed bool     // O_TMPFILE and linking by descriptor work here
	syncs   syncer
	room    Room

	mu      sync.Mutex
	durable map[string]identity // folders known to be on disk, with all their parents
}

// Option changes how Open works.
type Option func(*Store)

// WithScratch keeps checkpointed and half-replaced files in the folder name (slash-separated, below
// DIR) instead of extensions/holdfast-scratch. Processes that share DIR must agree on it.
func WithScratch(name string) Option {
	return func(s *Store) { s.scratch = name }
}

// WithNamedFiles has the store give every uncommitted file a name in the scratch folder at once, as
// it must where the file system has no unnamed files.
func WithNamedFiles() Option {
	return func(s *Store) { s.unnamed = false }
}

// Create makes the directory path, with its parents, where it is missing and opens it as Open does.
func Create(path string, opts ...Option) (*Store, error) {
	if err := os.MkdirAll(path, folderMode); err != nil {
		return nil, fmt.Errorf("create storage directory %s: %w", path, err)
	}
	return Open(path, opts...)
}

// Open returns the store in the directory path. The directory must exist (an unmounted volume must
// not be mistaken for an empty one) and be writable; both are tried here, so that a wrong setting
// shows at the start. The store must be closed.
func Open(path string, opts ...Option) (*Store, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open storage directory %s: %w", path, err)
	}
	s := &Store{root: root, path: path, scratch: defaultScratch, unnamed: true, durable: make(map[string]identity)}
	for _, opt := range opts {
		opt(s)
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("open storage directory %s: %w", path, err), s.Close())
	}
	return s, nil
}

// prepare checks the options and finds out what the directory can do.
func (s *Store) prepare() error {
	if err := storage.CheckKey(s.scratch); err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	var err error
	if s.top, err = s.root.Open("."); err != nil {
		return err
	}
	if err := s.checkNames(); err != nil {
		return err
	}
	if s.unnamed {
		f, err := openUnnamed(s.root)
		if err == nil {
			return f.Close()
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

// Room says how much of its volume a store may take.
type Room struct {
	// Reserve returns how many bytes of a volume of this size writers leave to others; nil: none.
	// Replace, which is for small objects that keep a store right, and removals, go on.
	Reserve func(total int64) int64
	// Measured changes what the file system tells, for tests; nil: it is believed.
	Measured func(storage.Space) storage.Space
}

// KeepTo has the store keep to a room. It must be called before the store is used.
func (s *Store) KeepTo(r Room) { s.room = r }

// measure returns the room of the volume, and how much of it is not for writers.
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

// Close gives back the directory. Writers and readers that are still open stay usable, the store
// does not.
func (s *Store) Close() error {
	var top error
	if s.top != nil {
		top = s.top.Close()
	}
	return errors.Join(top, s.root.Close())
}

// String names the directory.
func (s *Store) String() string { return "dir " + s.path }

// check refuses keys that are malformed or that lie in, or around, the scratch folder.
func (s *Store) check(key string) error {
	if err := storage.CheckKey(key); err != nil {
		return err
	}
	if within(key, s.scratch) || within(s.scratch, key) {
		return &storage.KeyError{Key: key, Reason: "reserved by the store"}
	}
	return nil
}

// within says whether name is folder or lies below it.
func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

// Space implements storage.Store with the figures of the file system, as df counts them, less what
// is reserved for others.
func (s *Store) Space(context.Context) (storage.Space, error) {
	space, reserve, err := s.measure()
	space.Total = max(0, space.Total-reserve)
	return space, err
}

var (
	_ storage.Store    = (*Store)(nil)
	_ storage.Copier   = (*Store)(nil)
	_ storage.Replacer = (*Store)(nil)
)
