package dir

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/holdfast/holdfast/storage"
)

// publish calls link with the folder of key, and makes the new name durable. It repeats that if the
// folder is removed meanwhile.
func (s *Store) publish(key string, link func(folder *os.File, base string) error) error {
	for {
		folder, err := s.folder(path.Dir(key), nil)
		if err != nil {
			return err
		}
		err = link(folder, path.Base(key))
		switch {
		case err == nil:
			err = s.syncs.sync(folder)
		case errors.Is(err, fs.ErrExist):
			err = s.explainTaken(key, err)
		}
		again := errors.Is(err, fs.ErrNotExist) && s.removed(folder, path.Dir(key))
		err = errors.Join(err, folder.Close())
		if again {
			continue // a DeletePrefix or Delete of another object removed the folder
		}
		return err
	}
}

// explainTaken returns a KeyError if a folder, not an object, is at key.
func (s *Store) explainTaken(key string, err error) error {
	if info, statErr := s.root.Lstat(key); statErr == nil && info.IsDir() {
		return &storage.KeyError{Key: key, Reason: "is a folder of other objects"}
	}
	return err
}
