package dir

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"time"
)

// Below the scratch folder, pending/KEY/ has the checkpointed files of KEY's writers. Other folders
// have files that exist during one call.
const (
	pendingFolder = "pending"
	replaceFolder = "replace"
	staleAfter    = 24 * time.Hour // no call takes so long
)

// scratchNote describes the scratch folder, in the form that OCFL requires of an extension.
const scratchNote = `{
  "extensionName": "holdfast-scratch",
  "description": "Uncommitted files of Holdfast's directory storage. Not part of any object."
}
`

// pendingPath returns the folder of key's checkpointed files.
func (s *Store) pendingPath(key string) string {
	return path.Join(s.scratch, pendingFolder) + "/" + key
}

// createScratch makes a new, empty file in the folder kind ("pending/KEY", "replace") of the
// scratch folder. It returns the file and its path below the root.
func (s *Store) createScratch(kind string) (*os.File, string, error) {
	for {
		folder, err := s.folder(s.scratch+"/"+kind, nil)
		if err != nil {
			return nil, "", err
		}
		err = folder.Close()
		if err != nil {
			return nil, "", err
		}
		s.describeScratch()
		name := s.scratch + "/" + kind + "/" + rand.Text()
		f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another writer removed the empty folder
		}
		return f, name, err
	}
}

// describeScratch writes the note into the scratch folder, for people and strict validators. It
// ignores errors.
func (s *Store) describeScratch() {
	f, err := s.root.OpenFile(s.scratch+"/config.json", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return
	}
	_, _ = f.WriteString(scratchNote)
	_ = f.Close()
}

// linkScratch gives the unnamed file f a name in the scratch folder named in, durable if asked, and
// returns its path below the root.
func (s *Store) linkScratch(f *os.File, in string, durable bool) (string, error) {
	for {
		folder, err := s.folder(in, nil)
		if err != nil {
			return "", err
		}
		s.describeScratch()
		base := rand.Text()
		err = linkOpen(f, folder, base)
		if err == nil && durable {
			err = s.syncs.sync(folder)
		}
		again := errors.Is(err, fs.ErrNotExist) && s.removed(folder, in)
		err = errors.Join(err, folder.Close())
		if again {
			continue // another writer removed the empty folder
		}
		return in + "/" + base, err
	}
}

// prune removes the folder name and its parents while they are empty, but never the scratch folder.
func (s *Store) prune(name string) {
	for name != "." && !within(s.scratch, name) {
		parent, err := s.openFolder(path.Dir(name))
		if err != nil {
			return
		}
		err = removeFolder(parent, path.Base(name))
		_ = parent.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
		name = path.Dir(name)
	}
}

// sweepStale removes what killed processes left in the folder kind of the scratch folder.
func (s *Store) sweepStale(kind string, now time.Time) {
	folder, err := s.openFolder(s.scratch + "/" + kind)
	if err != nil {
		return
	}
	defer folder.Close() //nolint:errcheck // a read-only handle
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, base := range names {
		name := s.scratch + "/" + kind + "/" + base
		if info, err := s.lstat(name); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > staleAfter {
			_ = s.root.Remove(name)
		}
	}
}
