package registry

import (
	"fmt"
	"slices"
	"strings"
)

// DefaultStorage and DefaultStaging name the volumes that every Holdfast has: the storage of collections that name none,
// and what lies outside storage while it is worked on.
const (
	DefaultStorage = "storage"
	DefaultStaging = "staging"
)

// mostStorages bounds how many storages a collection may have.
const mostStorages = 16

// CheckStorageName returns an error that wraps ErrInvalid unless a storage can have this name: 1 to 63 small letters,
// digits, - and _, beginning with a letter or digit, and not the staging volume's.
func CheckStorageName(name string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' }
	switch {
	case name == "" || len(name) > 63 || strings.ContainsFunc(name, bad) || strings.ContainsAny(name[:1], "-_"):
		return fmt.Errorf("%w: storage %q: a storage's name has 1 to 63 small letters, digits, - and _, and begins with none of the last two", ErrInvalid, name)
	case name == DefaultStaging:
		return fmt.Errorf("%w: storage %q: the name is the staging volume's", ErrInvalid, name)
	}
	return nil
}

// CheckStorages returns an error that wraps ErrInvalid unless a collection can have these storages; none stand for
// [DefaultStorage].
func CheckStorages(names []string) error {
	if len(names) > mostStorages {
		return fmt.Errorf("%w: %d storages, a collection has %d at most", ErrInvalid, len(names), mostStorages)
	}
	for i, name := range names {
		if err := CheckStorageName(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%w: storage %q is named twice; name it once", ErrInvalid, name)
		}
	}
	return nil
}

// StorageNames are the storages that hold a replica of each version, at least one: a version is written to the first and
// copied to the others from there.
func (p Profile) StorageNames() []string {
	if len(p.Storages) == 0 {
		return []string{DefaultStorage}
	}
	return slices.Clone(p.Storages)
}
