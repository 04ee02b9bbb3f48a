package dir

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"github.com/holdfast/holdfast/safefs"
)

// inode identifies a file among those of one machine that exist at the same time.
type inode struct {
	dev, ino uint64
}

// inodeOf returns the inode of an open or named file.
func inodeOf(info fs.FileInfo) inode {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return inode{dev: uint64(st.Dev), ino: st.Ino} //nolint:unconvert // the type of Dev depends on the system
	}
	return inode{}
}

// names returns how many names (hard links) a file has.
func names(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // its type depends on the system
	}
	return 1
}

// identity identifies a file among all of its file system, including deleted ones. Inode numbers
// are soon reused, so it includes the time of birth.
type identity struct {
	ino  uint64
	born int64 // nanoseconds since 1970; 0 if the file system does not report it
}

// same reports whether a and b are certainly one file.
func (a identity) same(b identity) bool { return a == b && a.born != 0 }

// maxDurable limits the memory for known folders; forgetting one costs a needless fsync.
const maxDurable = 4096

// folder opens the folder name, makes it if it is missing, and ensures that its name and those of
// its parents are durable. If another process removed and remade a folder meanwhile, the folder has
// another identity and is synced again.
func (s *Store) folder(name string, changed *folders) (*os.File, error) {
	for {
		f, err := s.openFolder(name)
		if err == nil {
			id, err := identify(f)
			if err == nil && (name == "." || s.isDurable(name, id) || changed.has(name, id)) {
				return f, nil
			}
			if err := errors.Join(err, f.Close()); err != nil {
				return nil, err
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		f, err = s.makeFolder(name, changed)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it, or its parent, was empty and another call removed it
		}
		return f, err
	}
}

// makeFolder makes the folder name if it is missing, syncs its parent and opens it.
func (s *Store) makeFolder(name string, changed *folders) (*os.File, error) {
	parent, err := s.folder(path.Dir(name), changed)
	if err != nil {
		return nil, err
	}
	defer parent.Close() //nolint:errcheck // nothing was written through this handle
	if err := makeFolderIn(parent, path.Base(name)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	// Opened before the sync, so that the sync covers the name of this very folder.
	f, err := s.openFolder(name)
	if err != nil {
		return nil, err
	}
	id, err := identify(f)
	if err == nil && changed != nil {
		changed.make(name, id)
		return f, nil
	}
	if err == nil {
		err = s.syncs.sync(parent)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.setDurable(name, id)
	return f, nil
}

// openAt opens name for reading.
func (s *Store) openAt(name string, flag int) (*os.File, error) {
	if !s.walks {
		if f, err := safefs.OpenBeneath(s.top, name, flag); err == nil || errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return s.root.OpenFile(name, flag, 0)
}

// lstat describes name without following a final link.
func (s *Store) lstat(name string) (fs.FileInfo, error) {
	if !s.walks {
		if info, err := safefs.LstatBeneath(s.top, name); err == nil || errors.Is(err, fs.ErrNotExist) {
			return info, err
		}
	}
	return s.root.Lstat(name)
}

// openFolder opens the folder name. A file with that name gives ENOTDIR. A pipe does not block.
func (s *Store) openFolder(name string) (*os.File, error) {
	return s.openAt(name, openFolderFlags)
}

// removed reports whether the open folder, which was at name, has been removed.
func (s *Store) removed(folder *os.File, name string) bool {
	if info, err := folder.Stat(); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink == 0 {
			return true
		}
	}
	_, err := s.lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// isDurable reports whether the folder name is still the one that was synced.
func (s *Store) isDurable(name string, id identity) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.durable[name]
	return ok && known.same(id)
}

// setDurable records that the folder name was synced.
func (s *Store) setDurable(name string, id identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.durable) >= maxDurable {
		clear(s.durable)
	}
	s.durable[name] = id
}

// syncer lets concurrent commits into one folder share an fsync. A call that comes during an fsync
// waits for the next one, which covers all calls that came meanwhile. The zero value is ready to
// use.
type syncer struct {
	mu      sync.Mutex
	folders map[inode]*syncRounds
}

// syncRounds has the running fsync and the one that follows it.
type syncRounds struct {
	current, next *syncRound
}

// syncRound is one fsync; err is set before done is closed.
type syncRound struct {
	done chan struct{}
	err  error
}

// sync runs an fsync of folder that begins after this call, or shares one, and returns its result.
func (s *syncer) sync(folder *os.File) error {
	info, err := folder.Stat()
	if err != nil {
		return err
	}
	return s.round(inodeOf(info), folder.Sync)
}

// round runs do after this call began, or waits for another call with the same id to do so.
func (s *syncer) round(id inode, do func() error) error {
	s.mu.Lock()
	if s.folders == nil {
		s.folders = make(map[inode]*syncRounds)
	}
	rounds := s.folders[id]
	mine := &syncRound{done: make(chan struct{})}
	switch {
	case rounds == nil:
		rounds = &syncRounds{current: mine}
		s.folders[id] = rounds
		s.mu.Unlock()
	case rounds.next == nil:
		rounds.next = mine
		before := rounds.current
		s.mu.Unlock()
		<-before.done
		s.mu.Lock()
		rounds.current, rounds.next = mine, nil
		s.mu.Unlock()
	default:
		other := rounds.next
		s.mu.Unlock()
		<-other.done
		return other.err
	}

	mine.err = do()
	s.mu.Lock()
	// A waiting round keeps the entry. It becomes the current one as soon as done is closed.
	if rounds.next == nil {
		delete(s.folders, id)
	}
	s.mu.Unlock()
	close(mine.done)
	return mine.err
}
