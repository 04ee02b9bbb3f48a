package dir

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/storage"
)

// publish gives one file, whose bytes are durable, the name key, and makes the name durable, also
// one that is taken.
func (s *Store) publish(key string, link func(folder *os.File, base string) error) error {
	changed := newFolders()
	defer changed.close()
	taken := s.name(key, link, changed)
	if taken != nil && !errors.Is(taken, fs.ErrExist) {
		return taken
	}
	if err := s.syncFolders(changed, false); err != nil {
		return err
	}
	return taken
}

// name calls link with the folder of key, and notes the folders to sync. It repeats that if the
// folder is removed meanwhile.
func (s *Store) name(key string, link func(folder *os.File, base string) error, changed *folders) error {
	for in := path.Dir(key); ; {
		folder, ok := changed.open[in]
		if !ok {
			var err error
			if folder, err = s.folder(in, changed); err != nil {
				return err
			}
			changed.open[in] = folder
		}
		err := link(folder, path.Base(key))
		if errors.Is(err, fs.ErrExist) {
			err = s.explainTaken(key, err)
		}
		if errors.Is(err, fs.ErrNotExist) && s.removed(folder, in) {
			delete(changed.open, in)
			_ = folder.Close() // nothing was written through this handle
			continue           // a DeletePrefix or Delete of another object removed the folder
		}
		if err == nil || errors.Is(err, fs.ErrExist) { // whoever took it may have died before it was durable
			changed.names[in] = true
		}
		return err
	}
}

// explainTaken returns a KeyError if a folder, not an object, is at key.
func (s *Store) explainTaken(key string, err error) error {
	if info, statErr := s.lstat(key); statErr == nil && info.IsDir() {
		return &storage.KeyError{Key: key, Reason: "is a folder of other objects"}
	}
	return err
}

// folders are those in which files get names. A nil set has none.
type folders struct {
	names map[string]bool     // folders with names that may not be durable yet
	made  map[string]identity // folders whose own name may not be durable yet
	open  map[string]*os.File
}

func newFolders() *folders {
	return &folders{names: make(map[string]bool), made: make(map[string]identity), open: make(map[string]*os.File)}
}

// make notes that the folder name was made, or found before anybody knew it to be durable.
func (c *folders) make(name string, id identity) {
	c.made[name] = id
	c.names[path.Dir(name)] = true
}

// has reports whether this set has the folder with this identity.
func (c *folders) has(name string, id identity) bool {
	if c == nil {
		return false
	}
	made, ok := c.made[name]
	return ok && made.same(id)
}

func (c *folders) close() {
	for _, f := range c.open {
		_ = f.Close() // nothing was written through this handle
	}
}

// syncFolders makes names durable, and remembers the new folders as such. If there are several, and
// together is set, it does so with one syncfs.
func (s *Store) syncFolders(changed *folders, together bool) error {
	err := errors.ErrUnsupported
	if together && len(changed.names) > few {
		err = s.syncAll()
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = s.syncEach(changed)
	}
	if err == nil {
		s.synced(changed)
	}
	return err
}

// synced remembers new folders as durable.
func (s *Store) synced(changed *folders) {
	for name, id := range changed.made {
		s.setDurable(name, id)
	}
}

func (s *Store) syncEach(changed *folders) error {
	var group errgroup.Group
	group.SetLimit(fsyncsAtOnce)
	for name := range changed.names {
		group.Go(func() error {
			if folder, ok := changed.open[name]; ok {
				return s.syncs.sync(folder)
			}
			folder, err := s.openFolder(name)
			if errors.Is(err, fs.ErrNotExist) {
				return nil // DeletePrefix removed it, and what was named in it
			} else if err != nil {
				return err
			}
			return errors.Join(s.syncs.sync(folder), folder.Close())
		})
	}
	return group.Wait()
}
