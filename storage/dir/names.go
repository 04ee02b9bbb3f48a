package dir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
)

// probes are pairs of names that some file systems take for one: by case, and by the form of
// Unicode (NFC and NFD).
var probes = [][2]string{{"name", "NAME"}, {"caf\u00e9", "cafe\u0301"}}

// checkNames refuses a directory whose file system would merge objects with different keys. It
// tries that in the scratch folder, and leaves nothing there.
func (s *Store) checkNames() error {
	name := s.scratch + "/probe-" + rand.Text()
	folder, err := s.folder(name)
	if err != nil {
		return fmt.Errorf("not writable: %w", err)
	}
	err = folder.Close()
	for _, pair := range probes {
		if err == nil {
			err = s.tellsApart(name, pair)
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
			break // there is something else in it
		}
	}
	return err
}

// tellsApart makes a file of one of two names in a folder and looks for the other.
func (s *Store) tellsApart(folder string, pair [2]string) error {
	f, err := s.root.OpenFile(folder+"/"+pair[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("not writable: %w", err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := s.root.Lstat(folder + "/" + pair[1]); err == nil {
		return fmt.Errorf("the file system takes %q and %q for one name, so objects would be merged: use one that tells them apart", pair[0], pair[1])
	}
	return nil
}
