package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/holdfast/holdfast/storage"
)

// wrap maps an error of the file system to one of the contract; op is a verb such as "commit".
func wrap(op, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s %q: %w: %w", op, key, storage.ErrNoSpace, err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s: %w", op, &storage.KeyError{Key: key, Reason: "a part of it is an object"})
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s: %w", op, &storage.KeyError{Key: key, Reason: "is a folder of other objects"})
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EILSEQ):
		return fmt.Errorf("%s: %w", op, &storage.KeyError{Key: key, Reason: "not a name that the file system accepts"})
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s %q: %w", op, key, storage.ErrNotFound)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s %q: %w", op, key, storage.ErrExists)
	}
	return fmt.Errorf("%s %q: %w", op, key, err)
}

// absent reports whether err means "no such object" to a reader: nothing exists, or an object is in
// the place of a folder.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// cannotLink reports whether a hard link is impossible (another file system, another owner's file,
// too many links) but a copy is not.
func cannotLink(err error) bool {
	return errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EMLINK) ||
		errors.Is(err, syscall.ENOTSUP)
}
