package dir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
)

// namePairs are pairs of names that some file systems treat as one: by case, and by Unicode form
// (NFC and NFD).
var namePairs = [][2]string{{"name", "NAME"}, {"caf\u00e9", "cafe\u0301"}}

// checkNames returns an error if the file system would merge objects with different keys. It tests
// that in the scratch folder and leaves nothing there.
func (s *Store) checkNames() error {
	name := s.scratch + "/probe-" + rand.Text()
	folder, err := s.folder(name, nil)
	if err != nil {
		return fmt.Errorf("not writable: %w", err)
	}
	err = folder.Close()
	for _, pair := range namePairs {
		if err == nil {
			err = s.checkNamePair(name, pair)
		}
	}
	err = errors.Join(err, s.root.RemoveAll(name))
	for empty := s.scratch; empty != "."; empty = path.Dir(empty) {
		parent, openErr := s.openFolder(path.Dir(empty))
		if openErr != nil {
			break
		}
		removeErr := removeFolder(parent, path.Base(empty))
		if _ = parent.Close(); removeErr != nil {
			break // not empty
		}
	}
	return err
}

// checkNamePair makes a file with one name of a pair in a folder, and looks for the other.
func (s *Store) checkNamePair(folder string, pair [2]string) error {
	f, err := s.root.OpenFile(folder+"/"+pair[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("not writable: %w", err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := s.lstat(folder + "/" + pair[1]); err == nil {
		return fmt.Errorf("the file system treats %q and %q as one name, so objects would be merged: use a file system that distinguishes them", pair[0], pair[1])
	}
	return nil
}
